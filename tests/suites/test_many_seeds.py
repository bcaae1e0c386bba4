"""A suite of any seed can be made: 500 seeds of each family are drawn without proving, and a few are proven.

ScienceWorld is not among them: a seed only orders its variations, and which of them fit does not depend on the seed.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from pddl_suite import OTHER, other_suite

from evalharness.envs import specs
from evalharness.suites import open as suites

SEEDS = range(500)
BARMAN = (11, OTHER, 4243)
"""Seeds that once drew a negative number of drinks."""


@pytest.mark.slow
def test_pddl_draws_every_problem_of_every_seed() -> None:
    """The first drafts of each: which of them are taken only planning says."""
    from evalharness.envs.pddl.open.drafts import DRAFTS, TEMPLATES
    from evalharness.envs.pddl.problem import DOMAINS

    for seed in (*SEEDS, *BARMAN):
        for kind, count in DOMAINS.items():
            for number in range(count):
                for attempt, template in zip(range(3), 3 * TEMPLATES[kind], strict=False):
                    rng = Random(f"pddl open {seed} {kind} {number} {attempt}")
                    DRAFTS[kind](rng, number / (count - 1), template)


def test_a_draft_that_asks_for_nothing_is_thrown_away() -> None:
    from evalharness.envs.pddl.open.generator import Candidate

    for seed, attempt in ((11, 2), (22, 1)):
        assert Candidate(seed, "barman", 0, attempt).plan(6.0) is None


@pytest.mark.slow
def test_alfworld_draws_a_household_of_each_sort() -> None:
    from evalharness.envs.alfworld.open.generator import QUOTA, _draw

    for seed in SEEDS:
        rng = Random(f"alfworld open {seed} 0")
        for kind, room in QUOTA:
            _draw(rng, kind, room, Counter())


@pytest.mark.slow
def test_jericho_writes_its_stories() -> None:
    spec = specs()["jericho"]
    assert spec.suites.generate is not None
    for seed in SEEDS:
        assert len(list(spec.suites.generate(seed))) == spec.suites.expected["open"]


@pytest.mark.slow
def test_babyai_makes_a_world_and_its_milestones() -> None:
    """The levels in turn: all of them for one seed take half a second and more."""
    from evalharness.envs.babyai.levels import LEVELS
    from evalharness.envs.babyai.mission import milestones
    from evalharness.envs.babyai.open.generator import VARIANTS
    from evalharness.envs.babyai.world import World

    levels = list(LEVELS)
    for seed in SEEDS:
        level = levels[seed % len(levels)]
        assert milestones(World(level, 10_000 + 7919 * seed, VARIANTS.get(level, {})))


@pytest.mark.slow
def test_hotpotqa_makes_its_questions() -> None:
    """Of five seeds: the world of one takes a second, and the questions hold for any world."""
    spec = specs()["hotpotqa"]
    assert spec.suites.generate is not None
    for seed in range(1, 6):
        assert len(list(spec.suites.generate(seed))) == spec.suites.expected["open"]


@pytest.mark.slow
def test_a_suite_of_such_a_seed_is_proven(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert len(other_suite(tmp_path_factory)) == specs()["pddl"].suites.expected["open"]
    spec = specs()["jericho"]
    assert len(suites.build(spec, 499)) == spec.suites.expected["open"]
