"""Figure 7: how like training data is to the test environments."""

from __future__ import annotations

from evalharness.base.errors import UserError
from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.given import Given
from evalharness.results.paper.standings import PUBLISHED_SUITE
from evalharness.results.paper.table import Cell, Column, Row, Table
from evalharness.results.report import diversity as pictures

TITLE = "figure 7: similarity of training data to the test environments"


def _fill(given: Given) -> Filled:
    titles = [spec.title for spec in given.specs.values() if spec.suites.expected.get("open")]
    columns = tuple(Column(title, title, decimals=2) for title in titles)
    tested = [spec.title for spec in given.specs.values() if PUBLISHED_SUITE in spec.suites.expected]
    rows = [Row("AgentRefine", {title: Cell(text="<0.5") for title in tested})]
    problems, draw = list(given.left_out), None
    notes = ["published: a sentence says below 0.5, single cells are in the picture alone"]
    if given.data:
        assert given.measured.similarity is not None
        try:
            found = list(given.measured.similarity(given.data))
        except UserError as error:
            problems.append(str(error))
        else:
            for path in given.data:
                cells = {
                    row["second"]: Cell(row["similarity"], marks="\u2021" if row["similarity"] >= 0.5 else "")
                    for row in found
                    if row["first"] == path.name
                }
                rows.append(Row(path.name, cells, source="data", folder=str(path)))
            name = str(found[0]["embedding"])
            notes += [
                f"embedding: {name}; similarities of two embeddings are not comparable",
                "\u2021 0.5 or more",
            ]
            draw = lambda: pictures.draw_similarity(found, name)  # noqa: E731
    return Filled((Table(TITLE, columns, tuple(rows), "cosine", tuple(notes)),), tuple(problems), draw)


EXHIBIT = Exhibit(
    "figure7",
    TITLE,
    "mean similarity of conversation openings to the instructions and goals of each family",
    "evalharness refine; give the data set's file",
    lambda given: [path.name for path in given.data],
    _fill,
)
