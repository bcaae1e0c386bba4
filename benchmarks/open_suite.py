"""Open suite beside the published one: plan lengths, things, words; and sample transcripts. Feeds `docs/open-suite.md`.

    evalharness run --model oracle --suite open --tasks all -o OPEN
    evalharness run --model oracle --suite agentboard --tasks all -o PUBLISHED
    evalharness audit all --suite open -o AUDIT
    python benchmarks/open_suite.py OPEN PUBLISHED AUDIT/random

Writes `docs/open-suite/`: the distributions as JSON (numbers only, no text of the published suite), a figure of them,
and three transcripts a family. Without arguments the figure is drawn again from the JSON.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envs import specs
from evalharness.paths import data_folder
from evalharness.records.episode import Episode
from evalharness.records.store import read_episodes
from evalharness.report.plots import COLOURS, style
from tests.support.contracts import FAMILIES, contract

FOLDER = Path(__file__).parent.parent / "docs" / "open-suite"
MEASURES = {
    "turns": "turns of the oracle's plan",
    "things": "things in the world",  # as `Contract.things` counts them
    "words": "different words met on the way",
}
SHOWN = 700
"""Characters of an observation that a transcript shows."""


def words(episode: Episode) -> set[str]:
    """All that the environment said on the oracle's way, the goal included."""
    texts = [episode.goal, episode.first_observation, *(turn.observation for turn in episode.turns)]
    return set(re.findall(r"[a-z]+", " ".join(texts).lower()))


def measure(run: Path, suite: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    episodes: dict[str, list[Episode]] = {}
    for episode in read_episodes(run):
        episodes.setdefault(episode.family, []).append(episode)
    for family, played in sorted(episodes.items()):
        spec = specs()[family]
        environment = spec.make(data_folder())
        tasks = {task.id: task for task in spec.load_tasks(suite, data_folder(), 0)}  # type: ignore[arg-type]
        things = contract(family).things
        counted = [things(tasks[e.task_id], environment, e.first_observation) for e in played]
        environment.close()
        vocabulary = [words(episode) for episode in played]
        result[family] = {
            "turns": sorted(len(episode.turns) for episode in played if episode.success),
            "things": sorted(counted),
            "words": sorted(map(len, vocabulary)),
            "vocabulary": sorted(set().union(*vocabulary)),
        }
    return result


def compare(opened: dict[str, Any], published: dict[str, Any]) -> dict[str, Any]:
    """Numbers only: the published vocabulary becomes its size and its share that the open suite has too."""
    both: dict[str, Any] = {}
    for family in sorted(opened.keys() & published.keys()):
        ours, theirs = (set(suite[family].pop("vocabulary")) for suite in (opened, published))
        both[family] = {
            "open": {**opened[family], "vocabulary": len(ours)},
            "agentboard": {**published[family], "vocabulary": len(theirs)},
            "shared_vocabulary": len(ours & theirs),
        }
    return both


def draw(numbers: dict[str, Any]) -> None:
    with style():
        from matplotlib import pyplot as plt

        figure, axes = plt.subplots(len(numbers), len(MEASURES), figsize=(9, 1.9 * len(numbers)))
        for row, family in zip(axes, numbers, strict=True):
            for axis, (name, label) in zip(row, MEASURES.items(), strict=True):
                suites = [numbers[family][suite][name] for suite in ("agentboard", "open")]
                low, high = min(map(min, suites)), max(map(max, suites))
                step = max(1, -(-(high - low + 1) // 15))
                bins = [low - 0.5 + step * i for i in range((high - low) // step + 2)]
                for values, colour, kind in zip(suites, COLOURS, ("published", "open"), strict=False):
                    weights = [100 / len(values)] * len(values)
                    axis.hist(values, bins, weights=weights, histtype="stepfilled", color=colour, alpha=0.25)
                    axis.hist(values, bins, weights=weights, histtype="step", color=colour, label=kind)
                if family == list(numbers)[-1]:
                    axis.set_xlabel(label)
                axis.set_ylim(bottom=0)
            row[0].set_ylabel(f"{specs()[family].title}\n% of tasks")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="upper center", ncols=2)
        figure.tight_layout(rect=(0, 0, 1, 0.96))
        figure.savefig(FOLDER / "distributions.svg", metadata={"Date": None})
        plt.close(figure)


def transcript(episode: Episode, who: str, shown: int = 30) -> Iterator[str]:
    yield f"### {episode.task_id} ({episode.kind}, {episode.difficulty}): {who}"
    yield ""
    yield "```text"
    yield f"Goal: {episode.goal}"
    yield ""
    yield from _cut(episode.first_observation)
    for turn in episode.turns[:shown]:
        yield f"> {turn.action}"
        yield from _cut(turn.observation)
    if len(episode.turns) > shown:
        yield "..."
    outcome = "success" if episode.success else "no success"
    yield f"[{outcome} after {len(episode.turns)} turns, progress {100 * episode.progress:.0f} %]"
    yield "```"
    yield ""


def _cut(text: str) -> Iterator[str]:
    shown = text.strip().replace("```", "'''")
    yield from (shown if len(shown) <= SHOWN else f"{shown[:SHOWN]} [...]").splitlines()


def transcripts(opened: Path, chance: Path) -> Iterator[str]:
    yield "# Transcripts of open tasks"
    yield ""
    yield "Three a family: a short and a longer plan of the oracle, and a policy that picks uniformly among the valid"
    yield "actions (ten turns of the attempt that came furthest without success). Made by `benchmarks/open_suite.py`;"
    yield "prompts and thoughts are left out."
    yield ""
    for family in FAMILIES:
        yield f"## {specs()[family].title}"
        yield ""
        tried = [e for e in read_episodes(chance) if e.family == family]
        played = sorted(
            (e for e in read_episodes(opened) if e.family == family), key=lambda e: (len(e.turns), e.task_id)
        )
        for episode in (played[len(played) // 8 :][:1]) + (played[len(played) * 3 // 4 :][:1]):
            yield from transcript(episode, "oracle")
        for episode in sorted(tried, key=lambda e: (e.success, -e.progress, e.task_id, e.sample))[:1]:
            yield from transcript(episode, "chance", 10)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN", help="OPEN PUBLISHED CHANCE")
    runs = parser.parse_args().runs
    FOLDER.mkdir(exist_ok=True)
    table = FOLDER / "distributions.json"
    if runs:
        opened, published, chance = runs
        numbers = compare(measure(opened, "open"), measure(published, "agentboard"))
        table.write_text(json.dumps(numbers, sort_keys=True) + "\n", encoding="utf-8")
        (FOLDER / "transcripts.md").write_text("\n".join(transcripts(opened, chance)), encoding="utf-8")
    draw(json.loads(table.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
