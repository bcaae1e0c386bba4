"""Table 6 of the first preprint: training sets for agents."""

from __future__ import annotations

from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.given import Given, each_read
from evalharness.results.paper.published import load_table
from evalharness.results.paper.table import Cell, Column, Row, Table

TITLE = "table 6: training sets for agents"
_WORDS = {
    "environment_construction": "environments",
    "trajectory_construction": "trajectories are",
    "held_in_environment": "held-in",
    "refinement_step": "refinement steps",
}


def _fill(given: Given) -> Filled:
    columns = (
        Column("trajectories", "trajectories", decimals=0),
        *(Column(key, name) for key, name in _WORDS.items()),
    )
    rows = [
        Row(
            row.names["method"],
            {"trajectories": Cell(row.numbers["trajectories"].value)}
            | {key: Cell(text=row.names[key] or "-") for key in _WORDS},
        )
        for row in load_table("agent_datasets")
    ]
    problems: list[str] = []
    for path, found in each_read(given.data, given.measured.error_turns, problems):
        refined = "yes" if found["samples"] > found["samples_without_errors"] else "no"
        rows.append(
            Row(
                path.name,
                {"trajectories": Cell(found["samples"]), "refinement_step": Cell(text=refined)},
                source="data",
                folder=str(path),
            )
        )
    notes = (
        "AgentRefine's 64000 is printed as (max) 64000",
        "ours: conversations of the file; refinement steps: whether any turn is marked as an error",
    )
    return Filled((Table(TITLE, columns, tuple(rows), notes=notes),), (*given.left_out, *problems))


EXHIBIT = Exhibit(
    "table6",
    TITLE,
    "how large the training sets of four methods are, and how they were made",
    "evalharness refine grounded or evalharness refine trajectories; give the data set's file",
    lambda given: [path.name for path in given.data],
    _fill,
)
