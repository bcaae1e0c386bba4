"""What an exhibit is: what it shows, what fills it, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalharness.results.paper.given import Given
from evalharness.results.paper.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = 1


@dataclass(frozen=True)
class Filled:
    """An exhibit with what was given."""

    tables: tuple[Table, ...]
    """The exhibit itself first; then differences between rows of ours."""
    missing: tuple[str, ...] = ()
    """What would complete it."""
    figure: Callable[[], Figure] | None = None
    """Draws it; call it within `plots.style()`. None for a table, and where there is nothing to draw."""

    def rows(self) -> list[dict[str, Any]]:
        """The exhibit's flat rows."""
        return self.tables[0].flat()


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of the paper."""

    name: str
    """`table2`."""
    title: str
    shows: str
    command: str
    """What makes that which fills it."""
    takes: Callable[[Given], Sequence[str]]
    """What of the things given has a row or point in it; quick."""
    fill: Callable[[Given], Filled]
    needs: Callable[[Given], Sequence[str]] = lambda given: ()
    """What is missing, where that is more than nothing at all; quick."""

    def to_json(self, given: Given) -> dict[str, Any]:
        """As the list of exhibits says it."""
        return {
            "name": self.name,
            "title": self.title,
            "shows": self.shows,
            "command": self.command,
            "filled_by": list(self.takes(given)),
            "missing": list(self.missing(given)),
        }

    def shown(self, given: Given) -> Filled:
        """Filled; where something was given and nothing of it belongs in it, with what would."""
        filled = self.fill(given)
        if (given.entries or given.data or given.mtbench) and not self.takes(given):
            filled = replace(filled, missing=(*filled.missing, f"what fills it: {self.command}"))
        return filled

    def missing(self, given: Given) -> list[str]:
        """What is missing; what fills it, where that is everything."""
        return list(self.needs(given)) if self.takes(given) else [self.command]
