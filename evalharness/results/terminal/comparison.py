"""Print comparisons of runs in 80 columns, or write them as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Drawn
from rich.text import Text

from evalharness.base.grouping import group_by_key
from evalharness.base.terminal import line, plain_table, remark
from evalharness.results.comparison import Comparison
from evalharness.results.difference import SIGNIFICANT, Difference, headline
from evalharness.results.limits import Limit
from evalharness.results.run_labels import labels_of
from evalharness.results.score import ESTIMATED, MEASURES, POOLED
from evalharness.results.scored_run import ScoredRun
from evalharness.results.tabular.markup import markdown, markdown_text
from evalharness.results.tabular.table import Cell, Column, Row, Table
from evalharness.results.tabular.text import print_table
from evalharness.results.terminal.answers import (
    TOTALS,
    answer_of_comparison,
    difference_in_words,
    headline_of,
    p_value,
)
from evalharness.results.terminal.kinds import print_kinds

_ESTIMATED_NOTE = "estimated: the whole held-out score, from --subset; p follows from the interval. "
POOLED_NOTE = "pooled: mean over all tasks of these families (strata); not the held-out score. "


def _titles(comparison: Comparison) -> dict[str, str]:
    return {**comparison.baseline.titles, **comparison.run.titles}


def _title(d: Difference, titles: Mapping[str, str]) -> str:
    return TOTALS.get(d.family) or titles.get(d.family, d.family)


def _cells(d: Difference) -> dict[str, str]:
    return {
        "n": str(d.n),
        "baseline": f"{100 * d.baseline:.1f}",
        "run": f"{100 * d.run:.1f}",
        "difference": d.points,
        "p": p_value(d.p),
        "p_holm": p_value(d.p_holm),
        "p_by_kind": "-" if d.p_by_kind is None else p_value(d.p_by_kind),
        "detectable": "-" if d.detectable is None else f"{100 * d.detectable:.1f}",
        "tally": d.tally,
    }


def difference_tables(comparison: Comparison, *, verbose: bool = False) -> Iterator[Table]:
    """Yield a table per measure with a row per family. `verbose`: add p by kind, detectable difference, and tally."""
    a, b = comparison.letters
    names = {
        "n": "n",
        "baseline": a,
        "run": b,
        "difference": f"{b} - {a} [95 % CI]",
        "p": "p",
        "p_holm": "Holm",
    }
    if verbose:
        names |= {"p_by_kind": "kinds", "detectable": "MDD", "tally": "w/t/l"}
    columns = tuple(Column(key, name) for key, name in names.items())
    for measure in MEASURES:
        rows = [
            Row(
                _title(d, _titles(comparison)),
                {key: Cell(text=text) for key, text in _cells(d).items()},
                source="run",
            )
            for d in comparison.differences
            if d.measure == measure
        ]
        yield Table("", columns, tuple(rows), f"{measure} %")


def compact_ids(task_ids: Sequence[str]) -> Iterator[str]:
    """Yield a line with the task numbers of each family and suite: `babyai/agentboard: 003 007 012`."""
    parts = (task_id.rpartition("/") for task_id in task_ids)
    for prefix, indices in group_by_key((prefix, index) for prefix, _, index in parts).items():
        yield f"{prefix}: {' '.join(indices)}"


def _parts_of_the_error(comparison: Comparison, titles: Mapping[str, str]) -> Drawn | None:
    """Return the table of standard errors from the choice of tasks and from each run's attempts; None if unknown."""
    others = (f"another run of {letter}" for letter in comparison.letters)
    table = plain_table("standard error, points", "other tasks", *others, gap=2)
    for d in comparison.differences:
        parts = (d.standard_error_tasks, d.standard_error_attempts_baseline, d.standard_error_attempts_run)
        if any(part is not None for part in parts):
            cells = ("not measured" if part is None else f"{100 * part:.1f}" for part in parts)
            table.add_row(f"{_title(d, titles)}, {d.measure}", *cells)
    return table if table.row_count else None


def _list_compared_runs(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, str, ScoredRun]]:
    """Yield (letter, label, run) for the baseline and for every run."""
    runs = [comparisons[0].baseline, *(comparison.run for comparison in comparisons)]
    letters = [comparisons[0].letters[0], *(comparison.letters[1] for comparison in comparisons)]
    yield from zip(letters, labels_of(runs), runs, strict=True)


def letters_of(comparisons: Sequence[Comparison]) -> list[str]:
    return [letter for letter, _, _ in _list_compared_runs(comparisons)]


def answers(comparisons: Sequence[Comparison]) -> list[str]:
    """Return a sentence for each comparison that says which run is better."""
    first, *others = (label for _, label, _ in _list_compared_runs(comparisons))
    return [
        answer_of_comparison(each, (first, other), _titles(each), len(comparisons))
        for each, other in zip(comparisons, others, strict=True)
    ]


def cautions(comparison: Comparison) -> list[str]:
    """Return the comparison's notes, and a warning if the answer may not hold for other kinds of tasks."""
    d = headline_of(comparison.differences)
    if d.p_holm < SIGNIFICANT <= (d.p_by_kind or 0.0):
        return [
            *comparison.notes,
            f"p {p_value(d.p_by_kind or 0.0)} with kinds as units: the result may not hold for other kinds of tasks",
        ]
    return list(comparison.notes)


def print_comparisons(console: Console, comparisons: Sequence[Comparison], *, verbose: bool = False) -> None:
    """Print the answers, the letter of each run, and the tables of each comparison."""
    for answer in answers(comparisons):
        console.print(line(answer, "bold"))
    for letter, label, run in _list_compared_runs(comparisons):
        parts = run.repeats or run.trainings
        folders = ", ".join(str(one.folder) for one in parts or (run,))
        what = "repeats joined into one run" if run.repeats else "trainings; mean over their seeds"
        more = f"  ({len(parts)} {what})" if parts else ""
        console.print(line(f"{letter}  {label}  {folders}{more}"), soft_wrap=True)
    for comparison in comparisons:
        if len(comparisons) > 1:
            console.print()
            console.print(line(f"{comparison.letters[1]} against {comparison.letters[0]}", "bold"))
        for note in cautions(comparison):
            console.print(line(note, "yellow"))
        for table in difference_tables(comparison, verbose=verbose):
            print_table(console, table, gap=verbose)
        if verbose:
            _print_details(console, comparison)
    if verbose:
        _print_method(console, comparisons)
        return
    every = [d for c in comparisons for d in c.differences]
    run = comparisons[0].run
    remark(
        console,
        f"suite {run.suite}, at most {run.max_turns} turns; paired by task; p: {method(every)}; Holm: p adjusted for "
        "the number of tests",
    )
    solved = "; ".join(
        f"{c.letters[1]} solves {len(c.gained)} tasks more and {len(c.lost)} less" for c in comparisons
    )
    if comparisons[0].of_losses:
        remark(
            console,
            f"{', '.join(letters_of(comparisons))}: points gained or lost against the unperturbed run",
        )
    else:
        remark(console, f"{solved}; which: --verbose")


def _print_details(console: Console, comparison: Comparison) -> None:
    """Print the variance components, the kinds of tasks, and the tasks that one run solves more often."""
    titles, (a, b) = _titles(comparison), comparison.letters
    if (parts := _parts_of_the_error(comparison, titles)) is not None:
        console.print(parts)
    print_kinds(console, comparison.kinds(), titles, comparison.letters)
    if comparison.of_losses:
        return
    console.print()
    for word, ids in ((f"solved more by {b}", comparison.gained), (f"solved more by {a}", comparison.lost)):
        console.print(Text(f"{word}: {len(ids)}", style="bold"))
        for listed in compact_ids(ids):
            console.print(Padding(Text(listed), (0, 0, 0, 2)))
    flipped = [*comparison.gained, *comparison.lost]
    if flipped:
        for run in (comparison.baseline, comparison.run):
            console.print(line(f"look: evalharness show {run.folder} {flipped[0]}", "dim"), soft_wrap=True)
    console.print()


def verdict(limit: Limit, comparison: Comparison) -> tuple[str, bool]:
    """Return (line about a limit, whether the comparison fails it). Raise UserError if the score was not compared."""
    failed, d = limit.test(comparison.differences)
    text = difference_in_words(d, _titles(comparison))
    return f"{comparison.letters[1]} {'fails' if failed else 'passes'} --fail-if {limit.text}: {text}", failed


def comparisons_as_markdown(comparisons: Sequence[Comparison], more: Sequence[str] = ()) -> str:
    """Return the answers and the tables for a pull request or an e-mail. `more`: lines after the answers."""
    parts = [*(f"**{markdown_text(answer)}**" for answer in answers(comparisons)), *map(markdown_text, more)]
    letters = (f"{letter}: {label}" for letter, label, _ in _list_compared_runs(comparisons))
    run = comparisons[0].run
    parts.append(markdown_text(f"{'; '.join(letters)}; suite {run.suite}, at most {run.max_turns} turns"))
    for comparison in comparisons:
        parts += [f"- {markdown_text(note)}" for note in cautions(comparison)]
        parts += [markdown(table).rstrip() for table in difference_tables(comparison)]
    return "\n\n".join(parts) + "\n"


def method(differences: Sequence[Difference]) -> str:
    """Name the tests that computed p."""
    tests = {d.test for d in differences}
    text = "McNemar's test (success), sign flips (progress), mid-p"
    if "mcnemar" not in tests:
        text = "sign flips, mid-p (success is a mean over samples)"
    if "trainings" in tests:
        text = "Student's t over trainings and tasks"
    if "attempts" in tests:
        text += "; attempts permuted within tasks if their numbers differ"
    return text


def holm_line(title: str, comparisons: int, families: int) -> str:
    """Explain how p was adjusted. `title`: title of the main score. `families`: number of tests over families."""
    compared = "1 comparison" if comparisons == 1 else f"{comparisons} comparisons"
    text = f"Holm: p of {title} success and p of {title} progress are each adjusted over {compared}"
    if families:
        text += f", p of families over their {families} tests; no p is below that of {title} success"
    return text


def tests_of_families(comparisons: Iterable[Sequence[Difference]]) -> int:
    return sum(d.family != headline(tests) for tests in comparisons for d in tests)


def _print_method(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Print an explanation of the columns of all tables."""
    every = [d for c in comparisons for d in c.differences]
    first = headline_of(comparisons[0].differences)
    adjusted = holm_line(
        _title(first, comparisons[0].run.titles),
        len(comparisons),
        tests_of_families(c.differences for c in comparisons),
    )
    letters = [c.letters[1] for c in comparisons]
    remark(
        console,
        f"p: {method(every)}; the interval excludes 0 if p is below 0.05. {adjusted}. "
        "MDD: the smallest true difference that this test finds with 80 % power at 5 %. "
        f"{_ESTIMATED_NOTE if any(d.family == ESTIMATED for d in every) else ''}"
        f"{POOLED_NOTE if any(d.family == POOLED for d in every) else ''}"
        f"w/t/l: tasks won, tied, lost by {' or '.join(letters) if len(letters) < 3 else 'the later run'}.",
    )
    by_kind = [d for d in every if d.p_by_kind is not None]
    if not by_kind:
        return
    if all(d.kinds == d.n for d in by_kind):
        remark(
            console, "kinds: p with kinds as units; equal to p, because each task is the only one of its kind"
        )
        return
    least = {
        _title(d, _titles(comparisons[0])): f"{d.kinds} kinds, {p_value(d.smallest_p_by_kind)}"
        for d in by_kind
        if d.smallest_p_by_kind is not None and d.kinds < d.n
    }
    listed = "; ".join(f"{title} {text}" for title, text in least.items())
    smallest = f"; smallest possible p with so few kinds: {listed}" if least else ""
    remark(console, f"kinds: p with kinds as units (Student's t), for other kinds of tasks{smallest}")
