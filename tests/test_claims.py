"""Numbers of the pages that stand beside a file of `results/`: each is computed from that file or from the code."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from evalharness.envs import specs
from evalharness.results.difference import SIGNIFICANT
from evalharness.results.published import load_table
from evalharness.suites.draws import _shares

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
COVERAGE = (ROOT / "results/coverage/README.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "results/measured/README.md").read_text(encoding="utf-8")
SIZES = {
    spec.title: spec.suites.expected["agentboard"]
    for spec in specs().values()
    if "agentboard" in spec.suites.expected
}
HELD_OUT = {spec.title: SIZES[spec.title] for spec in specs().values() if spec.held_out}


def open_tasks() -> list[dict[str, str]]:
    with (ROOT / "results/reference/open.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def hard_tasks() -> str:
    hard = Counter(row["task_id"].split("/")[0] for row in open_tasks() if row["difficulty"] == "hard")
    titles = {family: spec.title for family, spec in specs().items()}
    return ", ".join(
        f"{titles[family]} {hard[family]} of {SIZES[titles[family]]}"
        for family in ("alfworld", "babyai", "sciworld", "pddl", "jericho")
    )


def plan_turns() -> str:
    turns = [int(row["plan_turns"]) for row in open_tasks()]
    return f"{min(turns)} to {max(turns)} turns"


def table_rows(heading: str) -> list[list[str]]:
    """The cells of the table in results/coverage whose first line begins so."""
    text = COVERAGE[COVERAGE.index(heading) :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def subset_errors(measure: str) -> str:
    errors = [float(row[4]) for row in table_rows("| N | noise |") if (row[0], row[2]) == ("80", measure)]
    return f"{min(errors):.0f} to {max(errors):.0f}"


def least_coverage_of_two_seeds() -> str:
    heads = [
        h.strip()
        for h in COVERAGE[COVERAGE.index("| true success, spread") :].split("\n")[0].split("|")[2:-1]
    ]
    columns = [place + 1 for place, head in enumerate(heads) if head.endswith("2 seeds")]
    values = [
        float(row[column].split("/")[1]) for row in table_rows("| true success, spread") for column in columns
    ]
    return f"as few as {min(values):.0f} %"


def false_stars() -> str:
    """Of tables whose seeds vary alike."""
    rows = [row for row in table_rows("| seeds | spread |") if row[1] != "0 and 1"]
    assert {(row[0], row[1]) for row in rows} == {
        (n, spread) for n in "235" for spread in ("0", "0.2", "0.5", "1")
    }
    return "at most 5 %" if max(float(cell) for row in rows for cell in row[2:4]) <= 5 else "above 5 %"


def measured(text: str) -> Callable[[], str]:
    """As results/measured says it."""
    return lambda: text if text in MEASURED else f"{text} is not in results/measured"


CLAIMS: Sequence[tuple[str, Callable[[], str]]] = (
    ("README.md", lambda: f"plays {sum(SIZES.values())} tasks"),
    ("README.md", lambda: f"the {sum(HELD_OUT.values())} tasks of these four"),
    *(("README.md", lambda title=title, n=n: f"| {title} | {n} |") for title, n in SIZES.items()),
    ("docs/open-suite.md", hard_tasks),
    ("docs/open-suite.md", plan_turns),
    ("docs/open-suite.md", lambda: "a plan of 3 to 30 turns"),
    ("docs/open-suite.md", lambda: "proofs of seed 0"),
    ("docs/configuration.md", lambda: f"80 tasks that represent the {sum(HELD_OUT.values())}"),
    ("docs/configuration.md", lambda: f"{20 - _shares(HELD_OUT, 80)['Jericho']} of Jericho's {SIZES['Jericho']} games"),
    ("docs/configuration.md", lambda: f"{subset_errors('success')} points of success"),
    ("docs/configuration.md", lambda: f"{subset_errors('progress')} of\nprogress"),
    ("docs/configuration.md", lambda: f"{subset_errors('difference')} of the difference"),
    ("docs/statistics.md", least_coverage_of_two_seeds),
    ("docs/statistics.md", false_stars),
    ("docs/statistics.md", lambda: f"p over kinds is above {SIGNIFICANT}"),
    ("docs/server.md", lambda: "vLLM " + measured("0.32.0")()),
    ("docs/server.md", measured("0.24.0")),
    ("docs/server.md", measured("H200")),
    ("docs/tuning.md", lambda: "8B model"),
    ("docs/tuning.md", lambda: "one GPU of 80 GB"),
    ("docs/tuning.md", lambda: measured("135")() + "M on one " + measured("H200")()),
)  # fmt: skip
"""(page, what it has to say word for word)"""


@pytest.mark.parametrize(("page", "claim"), CLAIMS)
def test_a_number_of_a_page_is_that_of_the_file_or_code_that_it_is_about(
    page: str, claim: Callable[[], str]
) -> None:
    text = re.sub(r"\s+", " ", (ROOT / page).read_text(encoding="utf-8"))
    assert re.sub(r"\s+", " ", claim()) in text


def paragraphs_with_files() -> Iterator[tuple[str, str]]:
    """(page, paragraph or item of a list) that names a file or folder of `results/`."""
    for path in PAGES:
        for text in re.split(r"\n\s*\n|\n(?=\* )", path.read_text(encoding="utf-8")):
            if re.search(r"`results/(coverage|measured|published|reference)\b", text):
                yield path.relative_to(ROOT).as_posix(), re.sub(r"\s+", " ", text)


def test_no_number_beside_a_file_of_results_is_typed_without_a_check() -> None:
    unchecked = []
    for page, text in paragraphs_with_files():
        for where, claim in CLAIMS:
            if where == page:
                text = text.replace(re.sub(r"\s+", " ", claim()), "")
        prose = re.sub(r"`[^`]*`|\([^)]*\.md[^)]*\)", "", text)
        unchecked += [(page, number) for number in re.findall(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d", prose)]
    assert unchecked == []


def test_the_sentences_of_the_paper_follow_from_its_tables_except_one() -> None:
    """In the order of text_claims.csv; figures of pictures cannot be computed."""

    def number(table: str, row: str, column: str) -> float:
        found = {r.names.get("decoding", r.names["method"]): r for r in load_table(table) if row in r.label}
        return next(iter(found.values())).numbers[column].value

    def lost(row: str) -> float:
        return 100 * (
            1
            - number("ablation", row, "sciworld_success")
            / number("ablation", "(8000 data)", "sciworld_success")
        )

    def fell(row: str, column: str) -> float:
        return number("perturbation", row, "alfworld_success") - number(
            "perturbation", row, f"{column}_success"
        )

    def lead(table: str, row: str, other: str, column: str) -> float:
        return number(table, row, column) - number(table, other, column)

    gains = next(row for row in load_table("best_of_n") if row.label == "AgentRefine, delta").numbers
    expected = {
        13.3: lead("main", "LLaMA-3-8B, AgentRefine", "LLaMA-3-8B, Agent-FLAN", "sciworld_success"),
        43: lost("w/o refinement loss"),
        32.8: fell("AgentGym", "p1"),
        45.6: fell("Agent-FLAN", "p1"),
        25.6: fell("AgentGym", "average"),
        30.4: fell("Agent-FLAN", "average"),
        25: np.mean([gains[column].value for column in gains]),
        3.7: -fell("AgentRefine", "average"),
        3.73: number("perturbation", "AgentRefine", "std_success"),
        20: np.mean([number("perturbation", row, "std_success") for row in ("AgentGym", "Agent-FLAN")]),
        11.6: lead("synthesis_models", "DeepSeek", "Agent-FLAN", "babyai_success"),
        0.2: lead("mt_bench", "AgentRefine + ShareGPT", "Agent-FLAN + ShareGPT", "mt_bench"),
        2: lead("mt_bench", "Agent-FLAN + ShareGPT", "Agent-FLAN", "mt_bench"),
    }
    claims = {row.numbers["value"].value: row.names["relation"] for row in load_table("text_claims")}
    assert claims.keys() - expected.keys() == {75, 0.5, 16}
    assert lost("w erroneous loss") == pytest.approx(57, abs=0.5)
    for value, relation in claims.items():
        if value in expected:
            near = {"equals": 0.15, "nearly": 1.0, "above": 100}[relation]
            assert expected[value] == pytest.approx(value, abs=near), value
            assert relation != "above" or expected[value] > value
