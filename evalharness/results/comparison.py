"""Test whether two or more runs differ, paired by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError
from evalharness.base.grouping import group_by_key
from evalharness.results.difference import (
    SAME,
    Difference,
    Pair,
    adjust_p_values,
    difference_of,
    estimate_difference,
)
from evalharness.results.run_labels import labels_of, letter
from evalharness.results.score import ESTIMATED, HELD_OUT, MEASURES, POOLED, kind_scores
from evalharness.results.scored_run import ScoredRun, common_tasks, require_same, require_same_turns
from evalharness.results.trainings import over_trainings

if TYPE_CHECKING:
    import pandas as pd

    from evalharness.records.summary import KindScore

SCHEMA = 2


@dataclass(frozen=True)
class Comparison:
    """The tests of the differences between a run and the baseline run, with notes."""

    baseline: ScoredRun
    run: ScoredRun
    differences: tuple[Difference, ...]
    gained: tuple[str, ...]
    """Ids of tasks that the run solves more often than the baseline."""
    lost: tuple[str, ...]
    notes: tuple[str, ...]
    letters: tuple[str, str] = ("A", "B")
    """The letters that stand for the baseline and the run in the tables that a command prints."""
    of_losses: bool = False
    """Whether two sweeps over perturbations are compared. If so, a rate is the change from the unperturbed run."""

    def __repr__(self) -> str:
        """Return one line, because the default representation of both runs has hundreds of thousands of characters."""
        solved = f"{len(self.gained)} tasks solved more, {len(self.lost)} less"
        baseline, run = labels_of([self.baseline, self.run])
        return f"<Comparison of {run!r} with {baseline!r}: {len(self.differences)} tests, {solved}>"

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat row for each difference. `kind` is None; only the rows of `kind_rows` have a kind of task."""
        rows = []
        for difference in self.differences:
            row = asdict(difference) | {"kind": None}
            row["ci95_low"], row["ci95_high"] = row.pop("ci95")
            by_kind = row.pop("ci95_by_kind") or (None, None)
            row["ci95_by_kind_low"], row["ci95_by_kind_high"] = by_kind
            rows.append(
                {"baseline_run": str(self.baseline.folder), "compared_run": str(self.run.folder)} | row
            )
        return rows

    def kinds(self) -> dict[str, dict[str, tuple[KindScore, KindScore]]]:
        """Map family -> kind of task -> (rates in the baseline, rates in the run), over the tasks that both have
        played. Families with only one kind are left out."""
        both = set(common_tasks(self.baseline, self.run))
        both_rates = {}
        for family in () if self.of_losses else self.baseline.by_family:
            one, other = (
                kind_scores(score for score in run.by_family.get(family, ()) if score.task_id in both)
                for run in (self.baseline, self.run)
            )
            if len(one) > 1:
                both_rates[family] = {kind: (score, other[kind]) for kind, score in one.items()}
        return both_rates

    def kind_rows(self) -> list[dict[str, Any]]:
        """Return a flat row for each kind of task and measure, with the same keys as `rows`."""
        keys = dict.fromkeys(self.rows()[0])
        return [
            {
                **keys,
                "baseline_run": str(self.baseline.folder),
                "compared_run": str(self.run.folder),
                "family": family,
                "kind": kind,
                "measure": measure,
                "n": one.n,
                "baseline": (before := getattr(one, f"{measure}_rate")),
                "run": (after := getattr(other, f"{measure}_rate")),
                "difference": after - before,
            }
            for family, kinds in self.kinds().items()
            for kind, (one, other) in kinds.items()
            for measure in MEASURES
        ]

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self.rows())

    def to_json(self) -> dict[str, Any]:
        return {
            "baseline": _describe(self.baseline),
            "run": _describe(self.run),
            "notes": list(self.notes),
            "differences": [asdict(d) for d in self.differences],
            "kinds": self.kind_rows(),
            "gained": list(self.gained),
            "lost": list(self.lost),
        }


def _describe(run: ScoredRun) -> dict[str, Any]:
    return {
        "folder": str(run.folder),
        "repeats": [str(repeat.folder) for repeat in run.repeats],
        "model_name": run.name,
        "suite": run.manifest.suite,
        "suite_seed": run.config["suite_seed"],
        "max_turns": run.max_turns,
        "samples": run.config["samples"],
        "perturbation": run.perturbation,
    }


def compare_runs(runs: Sequence[ScoredRun], numbers: Sequence[int] | None = None) -> list[Comparison]:
    """Compare every run with the first run; correct p over all comparisons (`adjust_p_values`). `numbers`: positions of
    the runs on the page, from which their letters (A, B, ...) follow; default: 0, 1, 2, ...

    Raise UserError if the runs differ in suite, turn limit, source of subgoal labels, or contents of tasks.
    """
    if len(runs) < 2:
        raise UserError("a comparison needs two runs: evalharness compare BASELINE RUN")
    require_comparable(list(runs))
    letters = [letter(number) for number in numbers or range(len(runs))]
    comparisons = [
        _compare(runs[0], run, (letters[0], name)) for run, name in zip(runs[1:], letters[1:], strict=True)
    ]
    corrected = adjust_p_values([c.differences for c in comparisons])
    return [replace(c, differences=tuple(tests)) for c, tests in zip(comparisons, corrected, strict=True)]


def comparable_groups(runs: Sequence[ScoredRun]) -> tuple[list[list[int]], dict[int, str]]:
    """Put each run into the first group whose first run is comparable with it. Return (groups of positions in `runs`,
    position -> reason why this run is not comparable with the first run of the first group)."""
    groups: list[list[int]] = []
    why: dict[int, str] = {}
    for position, run in enumerate(runs):
        for group in groups:
            try:
                require_comparable([runs[group[0]], run])
                _pairs(runs[group[0]], run)
            except UserError as error:
                why.setdefault(position, str(error))
            else:
                group.append(position)
                break
        else:
            groups.append([position])
    return groups, why


def require_comparable(runs: list[ScoredRun]) -> None:
    require_same(runs, "suite", lambda r: r.suite, "their tasks are not the same")
    require_same_turns(runs, "run one of them again with the --max-turns of the other")
    for run in runs[1:]:
        for family, labels in runs[0].manifest.labels.items():
            other = run.manifest.labels.get(family, labels)
            first, second = (set(sources.split(",")) for sources in (labels, other))
            if not (first <= second or second <= first):  # few tasks may have labels of one source only
                raise UserError(
                    f"{runs[0].folder} and {run.folder} score {family} by different subgoal labels "
                    f"({labels} and {other}); play one of these runs again with the data folder of the other run"
                )


def _pairs(baseline: ScoredRun, run: ScoredRun) -> dict[str, list[Pair]]:
    """Map each family to its tasks in both runs. Raise UserError if no task is in both, or if its content differs."""
    both = [(baseline.tasks[task_id], run.tasks[task_id]) for task_id in common_tasks(baseline, run)]
    pairs = group_by_key((pair[0].family, pair) for pair in both)
    if not pairs:
        raise UserError(f"{baseline.folder} and {run.folder} have no task in common")
    return pairs


def _compare(baseline: ScoredRun, run: ScoredRun, letters: tuple[str, str]) -> Comparison:
    pairs = _pairs(baseline, run)
    differences = [
        difference_of(family, measure, [listed]) for measure in MEASURES for family, listed in pairs.items()
    ]
    samples = (baseline.samples, run.samples)
    held_out = _held_out_pairs(pairs, run.manifest.held_out, samples)
    if held_out:
        differences += [difference_of(HELD_OUT, measure, held_out) for measure in MEASURES]
    elif subset := subset_pairs(pairs, baseline, run):
        stands_for = subset_of_both(baseline, run)
        differences += [estimate_difference(ESTIMATED, measure, subset, stands_for) for measure in MEASURES]
    elif len(pairs) > 1:
        together = [pairs[family] for family in sorted(pairs)]
        differences += [difference_of(POOLED, measure, together) for measure in MEASURES]
    differences = [over_trainings(d, baseline, run) for d in differences]
    differences.sort(key=lambda d: MEASURES.index(d.measure))
    scored = any(d.family in (HELD_OUT, ESTIMATED) for d in differences)
    all_pairs = [pair for listed in pairs.values() for pair in listed]
    return Comparison(
        baseline=baseline,
        run=run,
        differences=tuple(differences),
        gained=tuple(a.task_id for a, b in all_pairs if b.success - a.success > SAME),
        lost=tuple(a.task_id for a, b in all_pairs if b.success - a.success < -SAME),
        notes=tuple(_notes(baseline, run, all_pairs, scored, letters)),
        letters=letters,
    )


def _held_out_pairs(
    pairs: Mapping[str, list[Pair]], sizes: Mapping[str, int], samples: tuple[int, int]
) -> list[list[Pair]] | None:
    """Return the paired tasks of each held-out family; None if a run has not finished all attempts at these tasks.

    A mean over all these tasks weights each family by its number of tasks, as the held-out score does.
    """
    if not sizes or any(len(pairs.get(family, ())) != n for family, n in sizes.items()):
        return None
    if any((a.samples, b.samples) != samples for family in sizes for a, b in pairs[family]):
        return None
    return [pairs[family] for family in sorted(sizes)]


def subset_of_both(baseline: ScoredRun, run: ScoredRun) -> Mapping[str, int]:
    """Map each task of `--subset` to the number of tasks that it represents. Return {} if the runs' subsets differ."""
    subsets = [dict(each.manifest.subset) for each in (baseline, run) if each.manifest.subset]
    return subsets[0] if subsets and subsets[0] == subsets[-1] else {}


def subset_pairs(
    pairs: Mapping[str, list[Pair]], baseline: ScoredRun, run: ScoredRun
) -> list[list[Pair]] | None:
    """Return the paired tasks of `--subset`: one list per family, ordered by difficulty. Return None if the runs have
    different subsets, or if a run has not finished all attempts at all tasks of the subset."""
    subset = subset_of_both(baseline, run)
    pair_of = {pair[0].task_id: pair for listed in pairs.values() for pair in listed}
    if not subset or any(
        task_id not in pair_of
        or (pair_of[task_id][0].samples, pair_of[task_id][1].samples) != (baseline.samples, run.samples)
        for task_id in subset
    ):
        return None
    return list(group_by_key((pair_of[task_id][0].family, pair_of[task_id]) for task_id in subset).values())


_EXPECTED_TO_DIFFER = {"model", "model_name", "seed"}
_OF_TASKS = {"tasks", "limit", "sample", "subset"}
"""Options that choose tasks. `_notes` does not compare them, because it counts the tasks that are in only one run."""
_OF_AGENTS = {"agent", "agent_option", "protocol", "action_interface"}


def _value(value: object) -> object:
    return "none" if value is None else value


def _notes(
    baseline: ScoredRun, run: ScoredRun, pairs: Sequence[Pair], held_out: bool, letters: tuple[str, str]
) -> list[str]:
    """Return warnings about the two runs: differing options, tasks in one run only, and unequal numbers of samples."""
    notes = []
    changed = [
        f"{key} {_value(baseline.config.get(key))} and {_value(run.config.get(key))}"
        for key in sorted(baseline.config.keys() | run.config.keys())
        if key not in _EXPECTED_TO_DIFFER | _OF_AGENTS | _OF_TASKS
        and baseline.config.get(key) != run.config.get(key)
    ]
    if baseline.agent != run.agent:
        changed.append(f"agent {baseline.agent} and {run.agent}")
    prompts = [
        family
        for family, sha in baseline.manifest.identity.prompts_sha256.items()
        if run.manifest.identity.prompts_sha256.get(family, sha) != sha
    ]
    if prompts:
        changed.append(f"the prompts of {', '.join(prompts)}")
    if changed:
        notes.append(f"the runs also differ in: {'; '.join(changed)}")
    first, second = letters
    if limits := [
        f"{name}: {each.config['limit']}"
        for name, each in zip(letters, (baseline, run), strict=True)
        if each.config.get("limit")
    ]:
        notes.append(f"--limit: only the first tasks of each family ({', '.join(limits)}), no random sample")
    for name, one, other in ((first, baseline, run), (second, run, baseline)):
        alone = sum(task_id not in other.tasks for task_id in one.tasks)
        if alone:
            counted = "1 task that" if alone == 1 else f"{alone} tasks that"
            notes.append(f"{counted} only {name} has played {'is' if alone == 1 else 'are'} left out")
    uneven = sum(a.samples != b.samples for a, b in pairs)
    if uneven:
        notes.append(
            f"{uneven} tasks have more samples in one run; each run's mean over a task's samples counts once; the test "
            "permutes attempts within tasks"
        )
    notes += _notes_of_attempts(baseline, run, pairs, letters)
    if not held_out and len({a.family for a, _ in pairs}) > 1:
        notes.append(
            "held-out score withheld: not every attempt at every task of every held-out family was played in both runs"
        )
    return notes


def _notes_of_attempts(
    baseline: ScoredRun, run: ScoredRun, pairs: Sequence[Pair], letters: tuple[str, str]
) -> list[str]:
    """Return a note for each run whose variance between attempts is unknown, or too small because of equal seeds."""
    once = [name for i, name in enumerate(letters) if sum(pair[i].samples > 1 for pair in pairs) < 2]
    notes = []
    if once:
        notes.append(
            f"between-run error not measured: one attempt per task in {' and '.join(once)} (see --samples)"
        )
    for name, one in zip(letters, (baseline, run), strict=True):
        seeds = [repeat.config["seed"] for repeat in one.repeats]
        if len(set(seeds)) < len(seeds) and one.config["temperature"] != 0:
            notes.append(
                f"repeats of {name} share a seed: a server may repeat its replies, and the between-run "
                "variance is then too small"
            )
    return notes
