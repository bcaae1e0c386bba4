"""Words drawn for each episode of training: the same meanings in other words, made again from their name."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_plans import oracle_plan

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.config import RunConfig
from evalharness.envs import specs
from evalharness.envs.base import Perturbation, Wording
from evalharness.envs.surface import Action
from evalharness.protocol.drawn import draw_name, find_surface, training_name, words_of
from evalharness.protocol.perturb import UNKNOWN_WORD, PlayedSurface, make_surface
from evalharness.protocol.prompt import load_prompt
from tests.support.contracts import FAMILIES, contract

SPECS = {family: specs()[family] for family in FAMILIES}
DRAWS = st.integers(0, 1_000_000).map(lambda number: draw_name(3, str(number)))
SOME = [draw_name(7, f"episode {number}") for number in range(12)]


@pytest.mark.parametrize("family", FAMILIES)
@settings(deadline=None)
@given(data=st.data(), name=DRAWS)
def test_every_action_is_read_back_as_it_was_worded_and_in_no_other_words(
    family: str, name: str, data: st.DataObject
) -> None:
    spec = SPECS[family]
    surface = find_surface(spec, name)
    for action, template in spec.actions.templates.items():
        slots = re.findall(r"{(\w+)}", template)
        assert sorted(slots) == sorted(re.findall(r"{(\w+)}", surface.perturbed.templates[action]))
        meant = Action(action, {slot: data.draw(contract(family).names) for slot in slots})
        assert surface.perturbed.parse(surface.perturbed.render(meant)) == meant
        canonical = surface.canonical.render(meant)
        assert surface.to_world(surface.from_world(canonical)) == canonical
        if action in surface.changed or surface.names(canonical) != canonical:
            assert surface.to_world(canonical) == UNKNOWN_WORD
        else:
            assert surface.from_world(canonical) == canonical


@pytest.mark.parametrize("family", FAMILIES)
def test_a_draw_is_made_again_from_its_name_and_its_record_says_its_words(family: str) -> None:
    spec = SPECS[family]
    met = set()
    for name in SOME:
        surface, again = find_surface(spec, name), find_surface(spec, name)
        assert surface.name == again.name == name
        assert surface.perturbation == again.perturbation
        words = words_of(surface)
        assert words is not None
        assert words["drawn"] in {"plain", *spec.actions.wording.perturbations}
        assert {**spec.actions.templates, **words["actions"]} == {
            action: surface.perturbed.templates[action]
            if not surface.perturbation.upper_case
            else {**spec.actions.templates, **words["actions"]}[action]
            for action in spec.actions.templates
        }
        assert sorted(words["listed"]) == sorted(spec.actions.templates)
        assert spec.actions.help_action in (None, words["listed"][-1])
        met.add((words["drawn"], tuple(sorted(words["actions"].items())), tuple(words["listed"])))
    assert len(met) > len(SOME) // 2
    assert words_of(PlayedSurface(spec)) is None


def test_alfworld_draws_one_of_p1_to_p5_or_none() -> None:
    drawn = {
        find_surface(SPECS["alfworld"], draw_name(0, str(n))).perturbation.description for n in range(60)
    }
    assert drawn == {"plain", "P1", "P2", "P3", "P4", "P5"}


def test_names_differ_by_seed_and_by_episode() -> None:
    assert draw_name(1, "a") == draw_name(1, "a")
    assert len({draw_name(seed, episode) for seed in (1, 2) for episode in ("a", "b")}) == 4


@pytest.mark.parametrize("family", FAMILIES)
def test_the_prompt_lists_the_words_in_the_drawn_order_and_shows_no_others(family: str) -> None:
    prompt = load_prompt(SPECS[family])
    for name in SOME:
        surface = find_surface(SPECS[family], name)
        for kind in ["", *prompt.variants] if prompt.example else prompt.variants:
            plain, worded = prompt.for_kind(kind), surface.prompt(prompt.for_kind(kind))
            text = worded.messages(surface.perturbed, "", "")[1]["content"]
            names = sorted(
                plain.actions or SPECS[family].actions.templates, key=surface.perturbation.listed.index
            )
            assert "\n".join(f"- {surface.perturbed.templates[name]}" for name in names) in text
            assert plain.example is not None
            assert worded.example is not None
            for before, after in zip(plain.example.steps, worded.example.steps, strict=True):
                assert surface.to_world(after.action).rstrip(" .") == before.action.rstrip(" .")


@pytest.mark.parametrize("family", FAMILIES)
def test_prose_that_speaks_of_a_verb_says_of_which(family: str) -> None:
    """Else a drawn verb would stand beside the prose of another one."""
    wording = SPECS[family].actions.wording
    prose = {old for how in wording.perturbations.values() if how.actions for old in how.prose}
    assert prose == set(wording.mentions)
    assert set(wording.mentions.values()) <= set(SPECS[family].actions.templates)


def test_prose_follows_the_verb_that_is_drawn() -> None:
    spec, told = SPECS["pddl"], set[bool]()
    for number in range(20):
        surface = find_surface(spec, draw_name(0, str(number)))
        text = surface.prompt(load_prompt(spec).for_kind("gripper")).instruction
        collects = surface.perturbed.templates["pick"].lower().startswith("collect")
        assert ("To collect a ball" in text) == collects
        told.add(collects)
    assert told == {True, False}


def test_words_that_could_be_mistaken_for_each_other_are_drawn_again() -> None:
    """`left` becomes `turn`, or `right` does, never both."""
    other = {side: Perturbation(side, {f"turn_{side}": "turn"}) for side in ("left", "right")}
    babyai = SPECS["babyai"]
    spec = replace(babyai, actions=replace(babyai.actions, wording=Wording(other)))
    met = set()
    for number in range(40):
        templates = find_surface(spec, draw_name(0, str(number))).perturbed.templates
        met.add((templates["turn_left"], templates["turn_right"]))
    assert met == {("turn left", "turn right"), ("turn", "turn right"), ("turn left", "turn")}


@pytest.mark.parametrize(
    "family", [pytest.param(f, marks=[pytest.mark.slow] if contract(f).slow else []) for f in FAMILIES]
)
def test_the_oracles_plan_scores_the_same_in_drawn_words(family: str) -> None:
    spec = SPECS[family]
    environment = spec.make(None)
    try:
        task = spec.suites.load_tasks("open", None, 0)[0]

        def play(actions: list[str]) -> list[tuple[bool, dict[str, object]]]:
            environment.reset(options={"task": task})
            steps = map(environment.step, actions)
            return [(terminated, dict(info)) for _, _, terminated, _, info in steps]

        environment.reset(options={"task": task})
        plan = oracle_plan(environment, task)
        plain = play(plan)
        assert plain[-1][1]["success"]
        surfaces = [find_surface(spec, name) for name in SOME]
        assert any(surface.from_world(action) != action for surface in surfaces for action in plan)
        for surface in surfaces[:2]:
            said = [surface.from_world(action) for action in plan]
            assert play([surface.to_world(action) for action in said]) == plain
    finally:
        environment.close()


def test_the_environment_lists_actions_in_the_drawn_order() -> None:
    spec = SPECS["pddl"]
    environment = spec.make(None)
    task = spec.suites.load_tasks("open", None, 0)[0]
    environment.reset(options={"task": task})
    raw = environment.step("check valid actions")[0]
    environment.close()
    orders = set()
    for name in SOME:
        surface = find_surface(spec, name)
        shown = surface.observation(raw).removeprefix(spec.actions.wording.listing).split(", ")
        assert sorted(surface.to_world(item).strip() for item in shown) == sorted(
            item.strip() for item in raw.removeprefix(spec.actions.wording.listing).split(", ")
        )
        named = [surface.canonical.parse(surface.to_world(item).strip()) for item in shown]
        met = list(dict.fromkeys(action.name for action in named if action is not None))
        assert met == sorted(met, key=surface.perturbation.listed.index)
        orders.add(tuple(met))
    assert len(orders) > 1


# --- never in an evaluation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["random", "random:0123456789abcdef", "P1+random"])
def test_an_evaluation_refuses_drawn_words(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        "run --model oracle --suite open --tasks alfworld:0 --perturb",
        "sweep --model oracle --suite open --tasks alfworld --perturb",
        "bon --model oracle --suite open --tasks alfworld:0 -n 2 --perturb",
        "checkpoints . --suite open --tasks alfworld:0 --perturb",
        "data prompts show alfworld --perturb",
    ):
        assert main([*command.split(), name]) == 2, command
        assert name in capsys.readouterr().err, command
    with pytest.raises(UserError, match="training"):
        RunConfig.of(model="oracle", perturb=name)
    with pytest.raises(UserError, match="training"):
        make_surface(SPECS["alfworld"], name)


def test_training_may_draw_words_or_take_a_perturbation() -> None:
    assert [training_name(name) for name in (None, "random", "P4+P1")] == [None, "random", "P1+P4"]
    with pytest.raises(UserError):
        training_name("P1+random")
