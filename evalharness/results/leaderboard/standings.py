"""Define the leaderboard and its rows as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from evalharness.results.completeness import Played
from evalharness.results.score import HELD_OUT, MEASURES
from evalharness.results.tabular.table import Source
from evalharness.results.task_range import CHANGED

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1


OURS = "our runs"

Verification = Literal["verified", "not verified"]
"""Whether the run's actions were replayed on this machine and gave the run's numbers."""
STATED = ("model", "prompts", "token limit", "sampling", "turn limit in the prompt")
"""Facts that are read from a run's manifest, because a replay cannot check them."""


@dataclass(frozen=True)
class Standing:
    """A row of a leaderboard. The keys of `values` and `ci95` are FAMILY_success, FAMILY_progress, held_out_success and
    held_out_progress; their values are fractions 0..1."""

    name: str
    series: str
    """The base model of a published row; `our runs` for a run folder."""
    held_in: tuple[str, ...]
    """Families that the method's training data was sampled from, as published or as the user declares for a run."""
    values: Mapping[str, float | None]
    ci95: Mapping[str, tuple[float, float]]
    """A published row has intervals for success only. They are derived from the printed rates and the number of tasks;
    the interval of the held-out score is derived from the printed rates of its families."""
    suite: str
    max_turns: int
    folder: str | None = None
    """Folder of the run; None for a published row."""
    played: Mapping[str, Played] | None = None
    """Family -> numbers of tasks and attempts that the run has played; None for a published row."""
    measured: bool = False
    """Whether the row is a result of the harness's demo model. The row comes with the harness, not from a paper."""
    estimated: bool = False
    """Whether the held-out score is an estimate from the tasks of `--subset`."""
    labels: Mapping[str, str] | None = None
    """Family -> source of its subgoal labels (see `Manifest.labels`); None for a published row."""
    deviations: tuple[str, ...] = ()
    """Settings that differ from the harness's defaults, for example the prompts. A mark and a note show them."""
    notes: tuple[str, ...] = ()
    verification: Verification | None = None
    """None if no verification was asked for, or for a published row, whose actions are not available."""

    @property
    def stated(self) -> tuple[str, ...]:
        """`STATED`, the facts that a replay cannot check; empty for a row without verification."""
        return STATED if self.verification else ()

    @property
    def source(self) -> Source:
        return "run" if self.ours else "measured" if self.measured else "published"

    @property
    def ours(self) -> bool:
        return self.folder is not None

    def has_own_labels(self, column: str) -> bool:
        """Whether the family is not comparable with published rows: it has this project's labels or changed tasks."""
        whose = (self.labels or {}).get(column.rpartition("_")[0], "").split(",")
        return "ours" in whose or CHANGED in whose

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Families that the run has not played completely."""
        return tuple(f for f, part in (self.played or {}).items() if not part.complete)

    def is_incomplete(self, column: str) -> bool:
        """Whether the run has played only a part of the column's tasks."""
        return column.rpartition("_")[0] in self.incomplete or self.is_estimated(column)

    def is_estimated(self, column: str) -> bool:
        return self.estimated and column.startswith(HELD_OUT)


@dataclass(frozen=True)
class Leaderboard:
    """Rows grouped by series, or sorted by a column."""

    titles: Mapping[str, str]
    """Family -> title, in the order of the columns."""
    standings: tuple[Standing, ...]
    sorted_by: str | None
    held_out: tuple[str, ...]
    """Families of the held-out score; if empty, the table has no column for this score."""
    measures: Mapping[str, str] = field(default_factory=lambda: {measure: measure for measure in MEASURES})
    """`success` and `progress` -> heading in the table."""
    notes: tuple[str, ...] = ()
    """Notes about the table as a whole."""

    def __repr__(self) -> str:
        ours = sum(standing.ours for standing in self.standings)
        by = f", sorted by {self.sorted_by}" if self.sorted_by else ""
        return f"<Leaderboard of {len(self.standings)} rows, {ours} of own runs, {len(self.titles)} families{by}>"

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the column groups: the families, and `held_out` if the table has a held-out score."""
        return (*self.titles, HELD_OUT) if self.held_out else tuple(self.titles)

    def is_held_in(self, standing: Standing, column: str) -> bool:
        """Whether the method was trained on the column's family (for the held-out score: on one of its families)."""
        family = column.rpartition("_")[0]
        return not set(standing.held_in).isdisjoint(self.held_out if family == HELD_OUT else (family,))

    @property
    def columns(self) -> list[str]:
        return [f"{family}_{measure}" for family in self.groups for measure in MEASURES]

    def rows(self) -> list[dict[str, Any]]:
        """Return each row as a flat dictionary. Rates are fractions 0..1; a missing number is None."""
        rows = []
        for standing in self.standings:
            row: dict[str, Any] = {
                "series": standing.series,
                "name": standing.name,
                "source": standing.source,
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
