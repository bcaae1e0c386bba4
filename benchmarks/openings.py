"""Print the table of evaluated tasks' goals and first observations, results/reference/evaluated_openings.csv.

EVALHARNESS_DATA=DIR python benchmarks/openings.py [FAMILY ...] > results/reference/evaluated_openings.csv
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from contextlib import closing

from evalharness.base.paths import data_folder
from evalharness.envs import specs
from evalharness.envs.base import EnvSpec, Suite
from evalharness.training.datasets.openings import make_key, split_words

_ACTIONS = re.compile(r"^available actions:", re.IGNORECASE | re.MULTILINE)
"""The list of actions is no part of the observation: other wordings list other actions."""


def main(families: list[str]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("suite", "task_id", "observation", "goal"))
    for spec in (specs()[name] for name in families or specs()):
        for suite in sorted(spec.suites.expected.keys() - spec.suites.training - spec.suites.whole):
            writer.writerows(read_openings(spec, suite))


def read_openings(spec: EnvSpec, suite: Suite) -> Iterator[tuple[str, ...]]:
    name = "suite seed 0" if suite == "open" else "published suite"
    with closing(spec.make(data_folder())) as environment:
        for task in spec.suites.load_tasks(suite, data_folder(), 0):
            observation, _ = environment.reset(options={"task": task})
            texts = _ACTIONS.split(observation)[0], environment.goal
            yield name, task.id, *(make_key(split_words(text)[0]) for text in texts)


if __name__ == "__main__":
    main(sys.argv[1:])
