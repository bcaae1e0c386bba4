"""The leaderboard as records: rows, and the table they make. Numbers only; `report` draws them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from evalharness.results.completeness import Played
from evalharness.results.score import HELD_OUT, MEASURES
from evalharness.results.task_range import CHANGED

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1


OURS = "our runs"

Verification = Literal["verified", "not verified"]
"""Whether a run's numbers were seen to follow from its actions, on this machine."""
STATED = ("model", "prompts", "token limit", "sampling", "turn limit in the prompt")
"""What a run's manifest says and no replay shows."""


@dataclass(frozen=True)
class Standing:
    """A row. Columns are FAMILY_success, FAMILY_progress, held_out_success, held_out_progress; fractions 0..1."""

    name: str
    series: str
    """The base model of a published row; `our runs` for a run folder."""
    held_in: tuple[str, ...]
    """Families that the method's training data was sampled from: as published, or as the user declares of a run."""
    values: Mapping[str, float | None]
    ci95: Mapping[str, tuple[float, float]]
    """Of a published row for success alone: derived from the printed rate (of the held-out score: from the
    printed rates of its families) and the number of tasks."""
    suite: str
    max_turns: int
    folder: str | None = None
    """None for a published row."""
    played: Mapping[str, Played] | None = None
    """Family -> how much of it a run has played."""
    estimated: bool = False
    """The held-out score is an estimate from the tasks of `--subset`."""
    labels: Mapping[str, str] | None = None
    """Family -> who wrote its labels, of a run."""
    deviations: tuple[str, ...] = ()
    """How a run leaves the protocol of the other rows, prompts say, and yet may stand beside them."""
    notes: tuple[str, ...] = ()
    verification: Verification | None = None
    """None for a published row, of which nobody has the actions, and for a run that nobody asked about."""

    @property
    def stated(self) -> tuple[str, ...]:
        """What a replay cannot show; empty for a row without verification."""
        return STATED if self.verification else ()

    @property
    def ours(self) -> bool:
        return self.folder is not None

    def has_own_labels(self, column: str) -> bool:
        """The column's family is scored by labels of this project or on changed tasks: not on the published scale."""
        whose = (self.labels or {}).get(column.rpartition("_")[0], "").split(",")
        return "ours" in whose or CHANGED in whose

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Families of which a run has played a part only: no rate of theirs is the family's."""
        return tuple(f for f, part in (self.played or {}).items() if not part.complete)

    def is_incomplete(self, column: str) -> bool:
        """A part of the column's family stands there for the whole."""
        return column.rpartition("_")[0] in self.incomplete or self.is_estimated(column)

    def is_estimated(self, column: str) -> bool:
        return self.estimated and column.startswith(HELD_OUT)


@dataclass(frozen=True)
class Leaderboard:
    """Rows grouped by series, or sorted by a column."""

    titles: Mapping[str, str]
    """Family -> the name a person reads, in the order of the columns."""
    standings: tuple[Standing, ...]
    sorted_by: str | None
    held_out: tuple[str, ...]
    """The families of the held-out score; none: the table has no such column."""
    measures: Mapping[str, str] = field(default_factory=lambda: {measure: measure for measure in MEASURES})
    """`success` and `progress` -> what the table calls them."""
    notes: tuple[str, ...] = ()
    """What has to be known to read the table as a whole."""

    def __repr__(self) -> str:
        ours = sum(standing.ours for standing in self.standings)
        by = f", sorted by {self.sorted_by}" if self.sorted_by else ""
        return f"<Leaderboard of {len(self.standings)} rows, {ours} of own runs, {len(self.titles)} families{by}>"

    @property
    def groups(self) -> tuple[str, ...]:
        """What has columns: the families, and `held_out` if there is such a score."""
        return (*self.titles, HELD_OUT) if self.held_out else tuple(self.titles)

    def is_held_in(self, standing: Standing, column: str) -> bool:
        """The method was trained on tasks of the column's family, or of one of the held-out score's."""
        family = column.rpartition("_")[0]
        return not set(standing.held_in).isdisjoint(self.held_out if family == HELD_OUT else (family,))

    @property
    def columns(self) -> list[str]:
        return [f"{family}_{measure}" for family in self.groups for measure in MEASURES]

    def rows(self) -> list[dict[str, Any]]:
        """A flat row a model; fractions 0..1, None where there is none."""
        rows = []
        for standing in self.standings:
            row: dict[str, Any] = {
                "series": standing.series,
                "name": standing.name,
                "source": "run" if standing.ours else "published",
                "verification": standing.verification,
                "stated": "; ".join(standing.stated),
                "folder": standing.folder,
                "suite": standing.suite,
                "max_turns": standing.max_turns,
                "held_in": " ".join(standing.held_in),
                "labels": _pairs(standing.labels or {}),
                "played": _pairs(
                    {f: f"{part.tasks}/{part.of}" for f, part in (standing.played or {}).items()}
                ),
                "samples": max((part.samples for part in (standing.played or {}).values()), default=None),
                "incomplete": " ".join(standing.incomplete),
                "deviations": "; ".join(standing.deviations),
                "notes": "; ".join(standing.notes),
                "ci95_from": "episodes" if standing.ours else "printed rates",
            }
            for column in self.columns:
                low, high = standing.ci95.get(column, (None, None))
                row[column] = standing.values.get(column)
                row[f"{column}_ci95_low"], row[f"{column}_ci95_high"] = low, high
            rows.append(row)
        return rows

    def frame(self) -> pd.DataFrame:
        """`rows` as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "families": dict(self.titles),
            "sorted_by": self.sorted_by,
            **({"notes": list(self.notes), "measures": dict(self.measures)} if self.notes else {}),
            "rows": [
                asdict(standing) | {"incomplete": list(standing.incomplete), "stated": list(standing.stated)}
                for standing in self.standings
            ],
        }


def _pairs(values: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items())
