"""Compute how often two raters agree on right and wrong turns. `evalharness.stats` has the formulas and sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evalharness.judge.verdict import Rater, TurnKey
from evalharness.results.published import load_table
from evalharness.stats import Interval, cohen_kappa, kappa_interval, mcnemar_exact, wilson

ALL = "all"


@dataclass(frozen=True)
class Counts:
    """Numbers of turns that both raters judged. `right_wrong`: the first rater says right, the second says wrong."""

    right_right: int
    right_wrong: int
    wrong_right: int
    wrong_wrong: int

    @property
    def n(self) -> int:
        return self.right_right + self.right_wrong + self.wrong_right + self.wrong_wrong


@dataclass(frozen=True)
class Share:
    """A proportion with Wilson's 95 % interval; None if the denominator is 0."""

    value: float | None
    interval: Interval | None

    @classmethod
    def of(cls, successes: int, n: int) -> Share:
        return cls(successes / n, wilson(successes, n)) if n else cls(None, None)


@dataclass(frozen=True)
class Agreement:
    """Agreement of two raters on the turns of one environment family, or of all families."""

    first: str
    second: str
    family: str
    counts: Counts
    left_out: int
    """Number of turns shown to both raters for which at least one rater gave no readable verdict."""
    accuracy: Share
    kappa: float | None
    kappa_interval: Interval | None
    precision: Share
    """Of the turns that the second rater calls wrong, the share that the first rater also calls wrong."""
    recall: Share
    """Of the turns that the first rater calls wrong, the share that the second rater also calls wrong."""
    mcnemar_p: float
    """p-value of McNemar's exact test; small if one rater calls turns wrong more often than the other rater."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "n": self.counts.n}

    def flat(self) -> dict[str, Any]:
        row: dict[str, Any] = {"first": self.first, "second": self.second, "family": self.family}
        row |= {"n": self.counts.n, **asdict(self.counts), "left_out": self.left_out}
        for name in ("accuracy", "precision", "recall"):
            share: Share = getattr(self, name)
            row |= {name: share.value, **_name_ends(name, share.interval)}
        row |= {"kappa": self.kappa, **_name_ends("kappa", self.kappa_interval)}
        return row | {"mcnemar_p": self.mcnemar_p}


def _name_ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}


def agreement_of(
    first: str, second: str, counts: Counts, *, family: str = ALL, left_out: int = 0
) -> Agreement:
    """Compute the agreement from a 2x2 table. Raises ValueError for an empty table."""
    if not counts.n:
        raise ValueError("no turn was judged by both")
    cells = (counts.wrong_wrong, counts.wrong_right, counts.right_wrong, counts.right_right)
    return Agreement(
        first,
        second,
        family,
        counts,
        left_out,
        accuracy=Share.of(counts.right_right + counts.wrong_wrong, counts.n),
        kappa=cohen_kappa(cells),
        kappa_interval=kappa_interval(cells),
        precision=Share.of(counts.wrong_wrong, counts.wrong_wrong + counts.right_wrong),
        recall=Share.of(counts.wrong_wrong, counts.wrong_wrong + counts.wrong_right),
        mcnemar_p=float(mcnemar_exact(counts.right_wrong, counts.wrong_right)),
    )


def compare_raters(first: Rater, second: Rater) -> list[Agreement]:
    """Compare two raters on the turns that both judged. The first row is over all turns; a row for each family follows
    if there are several. Return no rows if there is no common turn."""
    shared = sorted(first.verdicts.keys() & second.verdicts.keys())
    families = {**second.families, **first.families}
    rows = [_make_row(first, second, shared, ALL)]
    names = sorted({families[key] for key in shared if key in families})
    if len(names) > 1:
        rows += [
            _make_row(first, second, [key for key in shared if families.get(key) == name], name)
            for name in names
        ]
    return [row for row in rows if row is not None]


def _make_row(first: Rater, second: Rater, keys: Sequence[TurnKey], family: str) -> Agreement | None:
    pairs = [(first.verdicts[key].wrong, second.verdicts[key].wrong) for key in keys]
    counts = Counts(
        *(pairs.count(pair) for pair in ((False, False), (False, True), (True, False), (True, True)))
    )
    if not counts.n:
        return None
    return agreement_of(first.name, second.name, counts, family=family, left_out=len(pairs) - counts.n)


def read_published_agreement() -> Agreement:
    """Return the table of AgentRefine's poster: a human (first rater) and GPT-4 (second rater) on 100 turns."""
    rows = {row.names["human"]: row.numbers for row in load_table("judge_agreement")}
    counts = Counts(
        *(
            round(rows[human][f"gpt4_{judge}"].value)
            for human in ("right", "wrong")
            for judge in ("right", "wrong")
        )
    )
    return agreement_of("human (published)", "GPT-4 (published)", counts)


def find_comparable_agreement(rows: Sequence[Agreement]) -> list[Agreement]:
    """Return the poster's table if it is comparable: the second rater calls as many turns right as wrong, give or take
    one. Kappa depends on the shares of right and wrong (Feinstein & Cicchetti, Journal of Clinical Epidemiology 43
    (1990) 543-549)."""
    whole = [row.counts for row in rows if row.family == ALL]
    balanced = any(abs(c.n - 2 * (c.right_right + c.wrong_right)) <= 1 for c in whole)
    return [read_published_agreement()] if balanced else []
