"""Numbers of the pages that stand beside a command or a file of `results/`: each is computed from file or code."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml

from evalharness.base.paths import prompts_folder
from evalharness.config import OPTIONS
from evalharness.envs import specs
from evalharness.envs.base import MAX_TURNS, MIN_TURNS
from evalharness.judge.agreement import read_published_agreement
from evalharness.judge.questions import read_questions
from evalharness.judge.turn_prompt import EARLIER_TURNS
from evalharness.models import endpoint, replicas, slots
from evalharness.models.serving import lora, managed
from evalharness.paper import diversity, sampled
from evalharness.results.difference import SIGNIFICANT
from evalharness.results.published import load_table
from evalharness.rl.server.serving import ServeOptions
from evalharness.stats import cohen_kappa, wilson
from evalharness.stats.trainings import _POWER
from evalharness.suites.draws import _shares
from evalharness.training.teachers.teaching import load_teaching
from evalharness.training.tune.settings import PAPER, Settings

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


def rows_of_table(text: str, heading: str) -> list[list[str]]:
    """The cells of the table whose first line begins so."""
    text = text[text.index(heading) :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def table_rows(heading: str) -> list[list[str]]:
    return rows_of_table(COVERAGE, heading)


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


def measured_rows(heading: str) -> list[list[str]]:
    return rows_of_table(MEASURED, heading)


def replies_that_differ() -> str:
    """As one of so many, of the requests beside which others were in flight."""
    rows = [row for row in measured_rows("| in flight |") if row[0] != "1"]
    numbers = [int(number) for row in rows for number in row[1].split(", ")]
    words = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return f"with {rows[0][0]} to {rows[-1][0]} in flight about one of {words[round(44 / np.mean(numbers))]} differed"


def measured(text: str) -> str:
    """As results/measured says it."""
    return text if text in MEASURED else f"{text} is not in results/measured"


ENGINES = measured_rows("| engine | steps |")
ENGINE_RATIOS = [int(row[4]) for row in ENGINES]
PDDL_RATIOS = [int(row[4]) for row in ENGINES if row[0].startswith("PDDL")]
PROTOCOLS = {
    path.stem: yaml.safe_load(path.read_text()) for path in (prompts_folder() / "protocols").glob("*.yaml")
}
AGENTGYM = [PROTOCOLS[name] for name in ("agentgym", "agentgym-sciworld", "agentgym-babyai")]
AGENTGYM_SAMPLING = "temperature {temperature:g}, {max_tokens:,} tokens".format(**AGENTGYM[0]["sampling"])
EXPECTED = {spec.title: spec.suites.expected for spec in specs().values()}
VERL = PROTOCOLS["verl-agent"]
SEEN, DRAWN = EXPECTED["ALFWorld"]["alfworld-seen"], VERL["draw"]["games"]
[HOTPOTQA_DRAW] = set(specs()["hotpotqa"].own.draw.values())
PER_TASK = [load_teaching(spec).per_task for spec in specs().values()]
START_MINUTES = {kind: int(seconds / 60) for kind, seconds in managed.START_TIMEOUT.items()}
OTHER_ROWS = {(row.names["method"], row.names["model"]) for row in load_table("others")}
JUDGED = read_published_agreement()
TUNED = Settings()


def of_agreement(value: float | None, ends: tuple[float, float] | None) -> str:
    assert value is not None
    assert ends is not None
    return f"{value:.2f} [{ends[0]:.2f}, {ends[1]:.2f}]"


def default_of(option: str, module: str) -> str:
    """That an option of a command has."""
    text = (ROOT / "evalharness" / module).read_text(encoding="utf-8")
    found = re.search(rf'"{option}.*?(?:const|default)="?(\d+)', text, re.DOTALL)
    return found[1] if found else ""


def option(name: str) -> int:
    return int(OPTIONS[name].default)


CLAIMS: Sequence[tuple[str, str]] = (
    ("README.md", f"plays {sum(SIZES.values())} tasks"),
    ("README.md", f"at most {MAX_TURNS} turns"),
    ("README.md", f"the {sum(HELD_OUT.values())} tasks of these four"),
    ("README.md", f"{min(ENGINE_RATIOS)} to {max(ENGINE_RATIOS)} times as fast"),
    *(("README.md", f"| {title} | {n} |") for title, n in SIZES.items()),
    ("docs/best-of-n.md", f"N samples at temperature {sampled.TEMPERATURE:g}, as in AgentRefine (N = {sampled.N})"),
    ("docs/checkpoints.md", f"{np.dtype(np.float32).itemsize} bytes of memory for each parameter"),
    ("docs/checkpoints.md", f"rank {lora._VLLM_RANKS[-1]}"),
    ("docs/checkpoints.md", f"for so long ({default_of('--watch', 'cli/checkpoints.py')})"),
    ("docs/ci.md", f"all {sum(SIZES.values())} tasks"),
    ("docs/ci.md", f"at most {100 * SIGNIFICANT / 2:g} % of builds"),
    ("docs/comparability.md", f"Jericho's {SIZES['Jericho']} tasks"),
    ("docs/comparability.md", f"can move by {100 * (wilson(10, SIZES['Jericho'])[1] - 0.5):.0f} points"),
    ("docs/configuration.md", f"80 tasks that represent the {sum(HELD_OUT.values())}"),
    ("docs/configuration.md", f"{20 - _shares(HELD_OUT, 80)['Jericho']} of Jericho's {SIZES['Jericho']} games"),
    ("docs/configuration.md", f"{subset_errors('success')} points of success"),
    ("docs/configuration.md", f"{subset_errors('progress')} of progress"),
    ("docs/configuration.md", f"{subset_errors('difference')} of the difference"),
    ("docs/data.md", f"at most {EXPECTED['ALFWorld']['alfworld-train']:,}"),
    ("docs/environments/alfworld.md", f"TextWorld needs {ENGINES[0][3]} ms a step; ours needs {ENGINES[0][2]} ms"),
    ("docs/environments/alfworld.md", f"over all {SIZES['ALFWorld']} games"),
    ("docs/environments/hotpotqa.md", f"**{specs()['hotpotqa'].own.max_turns} turns**"),
    ("docs/environments/hotpotqa.md", f"at most {MAX_TURNS} turns"),
    ("docs/environments/hotpotqa.md", f"draws {HOTPOTQA_DRAW.tasks} questions with seed {HOTPOTQA_DRAW.seed}"),
    ("docs/environments/hotpotqa.md", f"`all`: {EXPECTED['HotpotQA']['hotpotqa']:,}"),
    ("docs/environments/jericho.md", f"draws {EXPECTED['Jericho']['open']} quests"),
    ("docs/environments/pddl.md", f"{min(PDDL_RATIOS)} to {max(PDDL_RATIOS)} times as fast"),
    ("docs/external-agents.md", f"`turn_time_limit` ({option('turn_time_limit')} s"),
    ("docs/external-agents.md", f"`agent_wait` ({option('agent_wait')} s"),
    ("docs/grounded-data.md", f"(default: {min(PER_TASK)} to {max(PER_TASK)}, by family)"),
    ("docs/judges.md", f"up to {EARLIER_TURNS} earlier turns"),
    ("docs/judges.md", f"accuracy {of_agreement(JUDGED.accuracy.value, JUDGED.accuracy.interval)}"),
    ("docs/judges.md", f"kappa {of_agreement(JUDGED.kappa, JUDGED.kappa_interval)}"),
    ("docs/judges.md", f"{JUDGED.counts.right_right + JUDGED.counts.wrong_right} turns that the judge called right"),
    ("docs/judges.md", f"{JUDGED.counts.right_wrong + JUDGED.counts.wrong_wrong} that it called wrong"),
    ("docs/judges.md", f"accuracy {1 - 1 / 10:.2f} and kappa {cohen_kappa((0, 1, 0, 9)):.0f} if one turn in ten"),
    ("docs/judges.md", f"The default is {len(read_questions(None).questions)} questions"),
    ("docs/open-suite.md", f"{sum(SIZES.values())} tasks in the five environments"),
    ("docs/open-suite.md", f"{EXPECTED['HotpotQA']['open']} more tasks"),
    ("docs/open-suite.md", hard_tasks()),
    ("docs/open-suite.md", plan_turns()),
    ("docs/open-suite.md", f"a plan of {MIN_TURNS} to {MAX_TURNS} turns"),
    ("docs/other-protocols.md", f"{', '.join(str(each['turns']) for each in AGENTGYM)}; {AGENTGYM_SAMPLING}"),
    ("docs/other-protocols.md", "(ScienceWorld: {max_tokens})".format(**AGENTGYM[1]["sampling"])),
    ("docs/other-protocols.md", f"plays {VERL['turns']} turns"),
    ("docs/other-protocols.md", f"samples at temperature {VERL['sampling']['temperature']}"),
    ("docs/other-protocols.md", f"Each of the {SEEN} games"),
    ("docs/other-protocols.md", f"draws {DRAWN} games with repetition: {SEEN - SEEN * (1 - 1 / SEEN) ** DRAWN:.0f} "),
    ("docs/other-protocols.md", f"shows {VERL['options']['history']} past pairs"),
    ("docs/other-protocols.md", f"(`verl-agent`: {PROTOCOLS['verl-agent']['draw']['games']})"),
    *(("docs/other-protocols.md", f"{title}'s {EXPECTED[title]['unwrapped']},") for title in ("ALFWorld", "Jericho")),
    ("docs/other-protocols.md", f"ScienceWorld's {EXPECTED['ScienceWorld']['unwrapped']} kinds"),
    ("docs/other-protocols.md", f"{EXPECTED['ScienceWorld']['agentgym']:,} variations of ScienceWorld"),
    ("docs/other-protocols.md", f"{EXPECTED['BabyAI']['agentgym']} levels of BabyAI"),
    ("docs/paper.md", f"adds {len(OTHER_ROWS)} rows of other papers"),
    ("docs/paper.md", f"at most {diversity.POOLED:,}"),
    ("docs/performance.md", f"At most {slots.MOST} requests for each server"),
    ("docs/performance.md", f"all {sum(SIZES.values())} tasks run at once"),
    ("docs/performance.md", f"for each {slots._CONVERSATION_TOKENS:,} tokens"),
    ("docs/performance.md", f"falls by {100 * (1 - slots._BACK_OFF):.0f} %"),
    ("docs/performance.md", f"tried again after {replicas._ASK_AGAIN:g} seconds"),
    ("docs/server.md", f"is {managed.CONTEXT_TOKENS}, or"),
    ("docs/server.md", f"{START_MINUTES['cpu']} minutes on a CPU and {START_MINUTES['gpu']} on a GPU"),
    ("docs/server.md", f"({option('timeout')}; {endpoint.START_WAIT:g} before the first episode)"),
    ("docs/server.md", replies_that_differ()),
    ("docs/server.md", f"vLLM {measured('0.32.0')} on CPU, {measured('0.24.0')} on an {measured('H200')}"),
    ("docs/statistics.md", least_coverage_of_two_seeds()),
    ("docs/statistics.md", false_stars()),
    ("docs/statistics.md", f"p over kinds is above {SIGNIFICANT}"),
    ("docs/statistics.md", f"({100 * _POWER:g} % power, if it is the true one)"),
    ("docs/statistics.md", f"number of games for {100 * _POWER:g} % power"),
    ("docs/statistics.md", f"at most {100 * SIGNIFICANT:g} % of tables of equal runs"),
    ("docs/trainers/index.md", f"`--train-seeds` (default {default_of('--train-seeds', 'rl/command.py')})"),
    ("docs/trainers/index.md", f"`--sessions` ({ServeOptions.sessions})"),
    ("docs/trainers/index.md", f"`--waiting` ({ServeOptions.waiting})"),
    ("docs/trainers/while-training.md", f"80 tasks that represent the {sum(HELD_OUT.values())}"),
    ("docs/tuning.md", f"LoRA of rank {TUNED.lora_rank} on all linear layers"),
    ("docs/tuning.md", f"| {TUNED.max_length:,} tokens | {PAPER['max_length']:,} tokens |"),
    ("docs/tuning.md", f"(`--micro-batch`) | {TUNED.micro_batch or 1} | {PAPER.get('micro_batch') or 1} |"),
    ("docs/tuning.md", f"trainings of {measured('135')}M on one {measured('H200')}"),
)  # fmt: skip
"""(page, what it has to say word for word)"""


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize(("page", "claim"), CLAIMS)
def test_a_number_of_a_page_is_that_of_the_file_or_code_that_it_is_about(page: str, claim: str) -> None:
    assert plain(claim) in plain((ROOT / page).read_text(encoding="utf-8"))


COMMANDS = "|".join(
    path.stem
    for path in [*(ROOT / "evalharness").glob("*/commands/*.py"), *(ROOT / "evalharness/cli").glob("*.py")]
)
BESIDE = re.compile(rf"`(evalharness )?({COMMANDS})\b|`--|`results/")
"""A command, one of its options, or a file of results."""
CITED = re.compile(
    r"(?i)`[^`]*`|\([^)\s]*\.md[^)]*\)|\(https?:[^)]*\)|ICLR 2025|(figures?|tables?|equation)\s+\d+(\s+and\s+\d+)?"
    r"|\bseed 0|temperature [01](?!\.)\b|\bstatus \d+|exactly 2 points|SHA-256|95 %"
    r"|Python 3\.\d+|\b(429|503)\b|127\.0\.0\.1|from 0 to 1|N\+1|from 1 to 10|capability 8\.0"
    r"|issue 51187|(nemo-gym|pddlgym) [\d.]+\d|\b8B\b|of 80 GB|reward is 10"
    r"|exit status is 2|1\.4 GB",
)
"""Code, links, and numbers that name something or are another's: sections, seeds, a status, an issue, a version."""


def paragraphs() -> Iterator[tuple[str, str]]:
    """(page, paragraph, item of a list or row) that names a command or a file of results, or stands beside a block of
    commands."""
    for path in PAGES:
        text = re.sub(
            r"```.*?```",
            lambda block: block[0].replace("\n", "\n    "),
            path.read_text("utf-8"),
            flags=re.DOTALL,
        )
        parts = re.split(r"\n\s*\n|\n(?=[*-] )|\n(?=\|)", text)
        blocks = ["evalharness" in part and part.startswith(("    ", "```")) for part in parts]
        for place, part in enumerate(parts):
            near = any(blocks[max(0, place - 1) : place + 2]) or BESIDE.search(part)
            if near and not part.startswith(("    ", "```")):
                yield path.relative_to(ROOT).as_posix(), re.sub(r"^\d\. ", "", part, flags=re.MULTILINE)


def test_no_number_beside_a_command_or_a_file_of_results_is_typed_without_a_check() -> None:
    unchecked = []
    for page, part in paragraphs():
        text = plain(part)
        for where, claim in CLAIMS:
            if where == page:
                text = text.replace(plain(claim), "")
        numbers = re.findall(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d", CITED.sub("", text))
        unchecked += [(page, number, text[:80]) for number in numbers]
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
