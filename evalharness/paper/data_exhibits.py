"""Exhibits of training sets: sizes (table 6), a map of thoughts (figure 6), similarity to the test environments
(figure 7), and consecutive errors (figure 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.paper import diversity
from evalharness.paper import diversity_plots as pictures
from evalharness.paper.error_runs import SHARES, draw_error_runs, read_published_share
from evalharness.paper.exhibit import Exhibit, Filled, Given, read_each
from evalharness.results.published import load_table
from evalharness.results.tabular.table import Cell, Column, Row, Table
from evalharness.results.task_range import PUBLISHED_SUITE

_SETS = "table 6: training sets for agents"
_WORDS = {
    "environment_construction": "environments",
    "trajectory_construction": "trajectories are",
    "held_in_environment": "held-in",
    "refinement_step": "refinement steps",
}


def _fill_sets(given: Given) -> Filled:
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
    for path, error_turns in read_each(given.data, given.measured.error_turns, problems):
        refined = "yes" if error_turns["samples"] > error_turns["samples_without_errors"] else "no"
        rows.append(
            Row(
                path.name,
                {"trajectories": Cell(error_turns["samples"]), "refinement_step": Cell(text=refined)},
                source="data",
                folder=str(path),
            )
        )
    notes = (
        "AgentRefine's 64000 is printed as (max) 64000",
        "ours: conversations of the file; refinement steps: whether any turn is marked as an error",
    )
    return Filled((Table(_SETS, columns, tuple(rows), notes=notes),), (*given.left_out, *problems))


TABLE6 = Exhibit(
    "table6",
    _SETS,
    "how large the training sets of four methods are, and how they were made",
    "evalharness refine grounded or evalharness refine trajectories; give the data set's file",
    lambda given: [path.name for path in given.data],
    _fill_sets,
)


_MAP = "figure 6: a map of thoughts"
_MAP_NOTE = (
    f"the paper draws {diversity.POOLED:,} thoughts of Agent-FLAN, AgentGym and AgentRefine, without a number; ours: "
    "mean cosine similarity of a source's thoughts"
)


def _sources(given: Given) -> list[Path]:
    return [*(run.folder for entry in given.entries for run in entry.runs), *given.data]


def _fill_map(given: Given) -> Filled:
    columns = (
        Column("thoughts", "thoughts", decimals=0),
        Column("different", "different", decimals=0),
        Column("similarity", "mean similarity", decimals=2),
    )
    problems = list(given.left_out)
    sources_read = list(read_each(_sources(given), diversity.read_thoughts, problems))
    named = diversity.name_apart([read for _, read in sources_read], [path for path, _ in sources_read])
    sources = diversity.draw_pooled(named)
    empty = Table(_MAP, columns, (), notes=(_MAP_NOTE,))
    drawn = [source for source in sources if source.texts]
    if not drawn:
        return Filled((empty,), tuple(problems))
    try:
        points, mapped, name = diversity.map_thoughts(drawn)
    except UserError as error:
        return Filled((empty,), (*problems, str(error)))
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
    table = replace(empty, rows=tuple(rows), notes=(_MAP_NOTE, f"embedding: {name}"))
    return Filled((table,), tuple(problems), lambda: pictures.draw_thoughts(points, lines, name))


FIGURE6 = Exhibit(
    "figure6",
    _MAP,
    "t-SNE of the thoughts of runs and training sets",
    "evalharness run, or a data set's file",
    lambda given: [path.name for path in _sources(given)],
    _fill_map,
)


_SIMILARITY = "figure 7: similarity of training data to the test environments"


def _fill_similarity(given: Given) -> Filled:
    titles = [spec.title for spec in given.specs.values() if PUBLISHED_SUITE in spec.suites.expected]
    columns = tuple(Column(title, title, decimals=2) for title in titles)
    rows = [Row("AgentRefine", {title: Cell(text="<0.5") for title in titles})]
    problems, draw = list(given.left_out), None
    notes = ["published: a sentence says below 0.5, single cells are in the picture alone"]
    if given.data:
        assert given.measured.similarity is not None
        try:
            similarities = list(given.measured.similarity(given.data))
        except UserError as error:
            problems.append(str(error))
        else:
            groups = dict.fromkeys(row["first"] for row in similarities)  # data sets come before families
            for label, path in zip(groups, given.data, strict=False):
                cells = {
                    row["second"]: Cell(row["similarity"], marks="\u2021" if row["similarity"] >= 0.5 else "")
                    for row in similarities
                    if row["first"] == label and row["second"] in titles
                }
                rows.append(Row(label, cells, source="data", folder=str(path)))
            name = str(similarities[0]["embedding"])
            notes += [
                f"embedding: {name}; similarities of two embeddings are not comparable",
                "\u2021 0.5 or more",
            ]
            draw = lambda: pictures.draw_similarity(similarities, name)  # noqa: E731
    return Filled((Table(_SIMILARITY, columns, tuple(rows), "cosine", tuple(notes)),), tuple(problems), draw)


FIGURE7 = Exhibit(
    "figure7",
    _SIMILARITY,
    "mean similarity of conversation openings to the instructions and goals of each family",
    "evalharness refine; give the data set's file",
    lambda given: [path.name for path in given.data],
    _fill_similarity,
)


_RUNS = "figure 11: errors in a row, as shares of the turns"


def _fill_runs(given: Given) -> Filled:
    columns = tuple(
        Column(f"{length}_{key}", name, f"{length} in a row")
        for length in ("1", "2", "3", "more")
        for key, name in SHARES.items()
    )
    rows = [Row("AgentRefine (32,000)", {"1_share_of_turns": Cell(read_published_share(), text="about 16")})]
    named: list[tuple[str, Mapping[str, Any]]] = []
    problems = list(given.left_out)
    for path, error_turns in read_each(given.data, given.measured.error_turns, problems):
        named.append((path.name, error_turns))
        cells = {
            f"{row['run_length']}_{key}": Cell(100 * row[key])
            for row in error_turns["rows"]
            for key in SHARES
        }
        rows.append(Row(f"{path.name} ({error_turns['samples']:,})", cells, source="data", folder=str(path)))
    note = "published: a sentence about runs of one; the other bars are in the picture alone"
    table = Table(_RUNS, columns, tuple(rows), "%", (note,))
    return Filled((table,), tuple(problems), (lambda: draw_error_runs(named)) if named else None)


FIGURE11 = Exhibit(
    "figure11",
    _RUNS,
    "how many turns of a training set are in runs of one, two, three and more errors",
    "evalharness refine; give the data set's file",
    lambda given: [path.name for path in given.data],
    _fill_runs,
)
