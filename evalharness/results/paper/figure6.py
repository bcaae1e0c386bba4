"""Figure 6: a map of thoughts."""

from __future__ import annotations

from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.results import diversity
from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.given import Given, each_read
from evalharness.results.paper.table import Cell, Column, Row, Table
from evalharness.results.report import diversity as pictures

TITLE = "figure 6: a map of thoughts"
_NOTE = (
    f"the paper draws {diversity.POOLED:,} thoughts of Agent-FLAN, AgentGym and AgentRefine, without a number; ours: "
    "mean cosine similarity of a source's thoughts"
)


def _sources(given: Given) -> list[Path]:
    return [*(run.folder for entry in given.entries for run in entry.runs), *given.data]


def _fill(given: Given) -> Filled:
    columns = (
        Column("thoughts", "thoughts", decimals=0),
        Column("different", "different", decimals=0),
        Column("similarity", "mean similarity", decimals=2),
    )
    problems = list(given.left_out)
    found = list(each_read(_sources(given), diversity.read_thoughts, problems))
    named = diversity.told_apart([read for _, read in found], [path for path, _ in found])
    sources = diversity.pooled(named)
    drawn = [source for source in sources if source.texts]
    if not drawn:
        return Filled((Table(TITLE, columns, (), notes=(_NOTE,)),), tuple(problems))
    try:
        points, mapped, name = diversity.thought_map(drawn, "auto")
    except UserError as error:
        problems.append(str(error))
        return Filled((Table(TITLE, columns, (), notes=(_NOTE,)),), tuple(problems))
    rows = [
        Row(
            source.label,
            {
                "thoughts": Cell(source.drawn),
                "different": Cell(source.different),
                "similarity": Cell(source.similarity),
            },
            source="data",
        )
        for source in mapped
    ]
    lines = [str(source) for source in mapped]
    table = Table(TITLE, columns, tuple(rows), notes=(_NOTE, f"embedding: {name}"))
    return Filled((table,), tuple(problems), lambda: pictures.draw_thoughts(points, lines, name))


EXHIBIT = Exhibit(
    "figure6",
    TITLE,
    "t-SNE of the thoughts of runs and training sets",
    "evalharness run, or a data set's file; the same map with options: evalharness diversity thoughts",
    lambda given: [path.name for path in _sources(given)],
    _fill,
)
