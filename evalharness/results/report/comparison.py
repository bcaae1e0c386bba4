"""Comparisons of runs, for a terminal 80 columns wide and as flat rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evalharness.base.grouping import group_by_key
from evalharness.base.terminal import line, plain_table, remark
from evalharness.results.comparison import Comparison
from evalharness.results.difference import SIGNIFICANT, Difference, headline
from evalharness.results.report.kinds import print_kinds
from evalharness.results.run_labels import labels_of
from evalharness.results.score import ESTIMATED, HELD_OUT, MEASURES, POOLED

_ESTIMATED_SAID = (
    "\u2021 the whole held-out score, estimated from --subset; its p is what its interval leaves out. "
)
POOLED_SAID = "pooled: every task of these families once, families as strata; not the held-out score. "


def p_value(p: float) -> str:
    """Three decimals, in five characters."""
    return "<.001" if p < 0.001 else f"{p:.3f}"


def _title(d: Difference, titles: Mapping[str, str]) -> str:
    named = {HELD_OUT: "held-out", ESTIMATED: "held-out\u2021", POOLED: "pooled"}
    return named.get(d.family) or titles.get(d.family, d.family)


def _row(d: Difference, titles: Mapping[str, str]) -> list[str]:
    return [
        _title(d, titles),
        str(d.n),
        f"{100 * d.baseline:.1f}",
        f"{100 * d.run:.1f}",
        d.points,
        p_value(d.p),
        p_value(d.p_holm),
        "-" if d.p_by_kind is None else p_value(d.p_by_kind),
        "-" if d.detectable is None else f"{100 * d.detectable:.1f}",
        d.tally,
    ]


def _table(comparison: Comparison, titles: Mapping[str, str]) -> Table:
    a, b = comparison.letters
    table = plain_table("", "n", a, b, f"{b} - {a} [95 % CI]", "p", "Holm", "kinds", "MDD", "w/t/l")
    for measure in MEASURES:
        table.add_row(Text(f"{measure} %", style="bold"))
        for difference in comparison.differences:
            if difference.measure == measure:
                style = "bold" if difference.p_holm < SIGNIFICANT else None
                table.add_row(*_row(difference, titles), style=style)
    return table


def compact_ids(task_ids: Sequence[str]) -> Iterator[str]:
    """`babyai/agentboard: 003 007 012`, a line for each family and suite."""
    parts = (task_id.rpartition("/") for task_id in task_ids)
    for prefix, indices in group_by_key((prefix, index) for prefix, _, index in parts).items():
        yield f"{prefix}: {' '.join(indices)}"


def _parts_of_the_error(comparison: Comparison, titles: Mapping[str, str]) -> Table | None:
    """The variance components, where some task was attempted more than once; None where none was."""
    others = (f"another run of {letter}" for letter in comparison.letters)
    table = plain_table("standard error, points", "other tasks", *others, gap=2)
    for d in comparison.differences:
        parts = (d.standard_error_tasks, d.standard_error_attempts_baseline, d.standard_error_attempts_run)
        if any(part is not None for part in parts):
            shown = ("not measured" if part is None else f"{100 * part:.1f}" for part in parts)
            table.add_row(f"{_title(d, titles)}, {d.measure}", *shown)
    return table if table.row_count else None


def print_head(console: Console, title: str, about: str, notes: Sequence[str] = ()) -> None:
    """What a study is of, and what to know of it."""
    console.print(line(title, "bold"), soft_wrap=True)
    remark(console, about)
    for note in notes:
        console.print(line(note, "yellow"))
    console.print()


def print_runs(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Which run each letter is."""
    runs = [comparisons[0].baseline, *(comparison.run for comparison in comparisons)]
    letters = [comparisons[0].letters[0], *(comparison.letters[1] for comparison in comparisons)]
    for letter, label, run in zip(letters, labels_of(runs), runs, strict=True):
        parts = run.repeats or run.trainings
        folders = ", ".join(str(one.folder) for one in parts or (run,))
        what = "repeats read as one run" if run.repeats else "trainings, the mean over their seeds"
        more = f"  ({len(parts)} {what})" if parts else ""
        console.print(line(f"{letter}  {label}  {folders}{more}", "bold"), soft_wrap=True)


def print_comparison(console: Console, comparison: Comparison) -> None:
    titles = {**comparison.baseline.titles, **comparison.run.titles}
    a, b = comparison.letters
    remark(
        console,
        f"{b} against {a}: suite {comparison.run.suite}, at most {comparison.run.max_turns} turns, paired by task",
    )
    for note in comparison.notes:
        console.print(line(note, "yellow"))
    console.print()
    console.print(_table(comparison, titles))
    if (parts := _parts_of_the_error(comparison, titles)) is not None:
        console.print()
        console.print(parts)
    print_kinds(console, comparison.kinds(), titles, comparison.letters)
    console.print()
    for word, ids in ((f"solved more by {b}", comparison.gained), (f"solved more by {a}", comparison.lost)):
        console.print(Text(f"{word}: {len(ids)}", style="bold"))
        for listed in compact_ids(ids):
            console.print(Padding(Text(listed), (0, 0, 0, 2)))
    flipped = [*comparison.gained, *comparison.lost]
    if flipped:
        for run in (comparison.baseline, comparison.run):
            console.print(line(f"look: evalharness show {run.folder} {flipped[0]}", "dim"), soft_wrap=True)


def method(differences: Sequence[Difference]) -> str:
    """Which test p is of."""
    tests = {d.test for d in differences}
    text = "McNemar's test for success, permutation of signs for progress, both mid-p"
    if "mcnemar" not in tests:
        text = "permutation of signs, mid-p (success is a mean over samples)"
    if "trainings" in tests:
        text = "Student's t over trainings and tasks"
    if "attempts" in tests:
        text += "; where one run has more attempts of a task, these are dealt again within tasks"
    return text


def holm_line(title: str, comparisons: int, families: int) -> str:
    """How p was adjusted: `title` of the headline, `families`: tests of these."""
    compared = "1 comparison" if comparisons == 1 else f"{comparisons} comparisons"
    text = f"Holm: p of {title} success adjusted over {compared}, of its progress as well"
    if families:
        text += f", of families over their {families} tests; none is below that of {title} success"
    return text


def tests_of_families(comparisons: Iterable[Sequence[Difference]]) -> int:
    return sum(d.family != headline(tests) for tests in comparisons for d in tests)


def print_method(console: Console, comparisons: Sequence[Comparison]) -> None:
    """What the columns are; below the last table."""
    every = [d for c in comparisons for d in c.differences]
    bold = "; bold where below 0.05" if console.color_system else ""
    first = next(d for d in comparisons[0].differences if d.family == headline(comparisons[0].differences))
    adjusted = holm_line(
        _title(first, comparisons[0].run.titles),
        len(comparisons),
        tests_of_families(c.differences for c in comparisons),
    )
    letters = [c.letters[1] for c in comparisons]
    remark(
        console,
        f"p: {method(every)}; the interval excludes 0 where p is below 0.05. "
        f"{adjusted}{bold}. "
        "MDD: the smallest true difference that this test finds with 80 % power at 5 %. "
        f"{_ESTIMATED_SAID if any(d.family == ESTIMATED for d in every) else ''}"
        f"{POOLED_SAID if any(d.family == POOLED for d in every) else ''}"
        f"w/t/l: tasks won, tied, lost by {' or '.join(letters) if len(letters) < 3 else 'the later run'}.",
    )
    said = "kinds: p where whole kinds of tasks are the evidence (Student's t): would it hold for "
    by_kind = [d for d in every if d.p_by_kind is not None and d.kinds < d.n]
    if not by_kind:
        if any(d.p_by_kind is not None for d in every):
            said += "other kinds of tasks? Here each task is the only one of its kind, so it is p again."
            remark(console, said)
        return
    titles = {family: title for c in comparisons for family, title in c.run.titles.items()}
    least = {
        _title(d, titles): f"{d.kinds} kinds, {p_value(d.smallest_p_by_kind)}"
        for d in by_kind
        if d.smallest_p_by_kind is not None
    }
    listed = "; ".join(f"{title} {text}" for title, text in least.items())
    smallest = f" Its smallest value, if every task were won: {listed}." if least else ""
    remark(console, f"{said}other kinds of tasks?{smallest}")
