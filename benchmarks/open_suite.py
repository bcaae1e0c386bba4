"""Open suite beside the published one: plan lengths, things, words. Feeds `docs/open-suite.md`.

    evalharness run --model oracle --suite open --tasks all -o OPEN
    evalharness run --model oracle --suite agentboard --tasks all -o PUBLISHED
    python benchmarks/open_suite.py OPEN PUBLISHED

Writes `docs/open-suite/`: the distributions as JSON (numbers only, no text of the published suite) and a figure of
them. Without arguments the figure is drawn again from the JSON.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from evalharness.base.paths import data_folder
from evalharness.envs import specs
from evalharness.records.episode import Episode
from evalharness.records.store import read_episodes
from evalharness.results.figures.looks import COLOURS, style
from tests.support.contracts import contract

FOLDER = Path(__file__).parent.parent / "docs" / "open-suite"
MEASURES = {
    "turns": "turns of the oracle's plan",
    "things": "things in the world",  # as `Contract.things` counts them
    "words": "different words met on the way",
}


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
        tasks = {task.id: task for task in spec.suites.load_tasks(suite, data_folder(), 0)}  # type: ignore[arg-type]
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN", help="OPEN PUBLISHED")
    runs = parser.parse_args().runs
    FOLDER.mkdir(exist_ok=True)
    table = FOLDER / "distributions.json"
    if runs:
        opened, published = runs
        numbers = compare(measure(opened, "open"), measure(published, "agentboard"))
        table.write_text(json.dumps(numbers, sort_keys=True) + "\n", encoding="utf-8")
    draw(json.loads(table.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
