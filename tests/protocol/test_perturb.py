"""Perturbations: the same meanings in other words; the environment and its scoring are untouched."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_plans import oracle_plan

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.envs.base import Task, TextEnv
from evalharness.envs.surface import Action
from evalharness.protocol.perturb import UNKNOWN_WORD, PlayedSurface, make_surface
from evalharness.protocol.perturbation_names import normal_name
from evalharness.protocol.prompt import load_prompt
from tests.support.contracts import FAMILIES, contract

SPECS = {family: specs()[family] for family in FAMILIES}
EVERY = [(family, name) for family, spec in SPECS.items() for name in spec.actions.wording.perturbations]
PLAYED = [pytest.param(f, marks=[pytest.mark.slow] if contract(f).slow else []) for f in FAMILIES]
COMBINED = [(family, name) for family in FAMILIES for name in contract(family).combined]


@pytest.mark.parametrize(("family", "name"), [*EVERY, *COMBINED])
def test_a_perturbation_rewords_known_actions_and_keeps_their_slots(family: str, name: str) -> None:
    spec = SPECS[family]
    surface = make_surface(spec, name)
    for action, template in surface.perturbed.templates.items():
        assert sorted(re.findall(r"{\w+}", template)) == sorted(
            re.findall(r"{\w+}", spec.actions.templates[action])
        )
    assert len(set(surface.perturbed.templates.values())) == len(set(spec.actions.templates.values()))
    assert name != "verbs" or surface.changed


@pytest.mark.parametrize("family", PLAYED)
@settings(deadline=None)
@given(data=st.data())
def test_every_action_is_read_back_as_it_was_worded(family: str, data: st.DataObject) -> None:
    spec = SPECS[family]
    names = [None, *(name for known, name in [*EVERY, *COMBINED] if known == family)]
    surface = make_surface(spec, data.draw(st.sampled_from(names)))
    action = data.draw(st.sampled_from(sorted(spec.actions.templates)))
    slots = re.findall(r"{(\w+)}", spec.actions.templates[action])
    meant = Action(action, {slot: data.draw(contract(family).names) for slot in slots})
    assert surface.perturbed.parse(surface.perturbed.render(meant)) == meant
    canonical = surface.canonical.render(meant)
    assert surface.to_world(surface.from_world(canonical)) == canonical


def spoken_cases(family: str, name: str) -> list[Callable[[str], str]]:
    """Ways to write an action that differ in nothing which the environment, or this perturbation, looks at."""
    wording = SPECS[family].actions.wording
    parts = [wording.perturbations[part] for part in name.split("+")]
    if wording.case_matters or any(part.upper_case for part in parts):
        return [str]
    return [str, str.lower, str.upper, str.capitalize, str.title]


BEFORE = ("", " ", "\t ", "\n")
AFTER = ("", ".", " ", ". ", " .", "..", ".\n", "\n\n")


@pytest.mark.slow
@pytest.mark.parametrize(("family", "name"), [*EVERY, *COMBINED])
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_what_is_around_an_action_reaches_the_environment_as_it_would_without_a_perturbation(
    family: str, name: str, data: st.DataObject
) -> None:
    """So what the plain environment forgives (or not) is forgiven (or not) under every perturbation."""
    surface = make_surface(SPECS[family], name)
    case = data.draw(st.sampled_from(spoken_cases(family, name)))
    before, after = data.draw(st.sampled_from(BEFORE)), data.draw(st.sampled_from(AFTER))
    for action, template in SPECS[family].actions.templates.items():
        slots = {slot: data.draw(contract(family).names) for slot in re.findall(r"{(\w+)}", template)}
        canonical = surface.canonical.render(Action(action, slots))
        given_to_world = surface.to_world(before + case(surface.from_world(canonical)) + after)
        assert given_to_world.lower() == (before + canonical + after).lower()


@pytest.mark.parametrize(("family", "name"), EVERY)
def test_the_old_form_is_refused_however_it_ends(family: str, name: str) -> None:
    surface = make_surface(SPECS[family], name)
    for action in surface.changed:
        slots = re.findall(r"{(\w+)}", surface.canonical.templates[action])
        old = surface.canonical.render(Action(action, dict.fromkeys(slots, "thing")))
        for before in BEFORE:
            for after in AFTER:
                assert surface.to_world(before + old + after) == UNKNOWN_WORD


@settings(deadline=None)
@given(st.text())
@pytest.mark.parametrize("family", PLAYED)
def test_the_plain_voice_changes_nothing(family: str, text: str) -> None:
    surface = PlayedSurface(SPECS[family])
    assert (
        surface.to_world(text)
        == surface.from_world(text)
        == surface.names(text)
        == surface.observation(text)
        == text
    )


@settings(deadline=None)
@given(st.text())
@pytest.mark.parametrize(("family", "name"), [*EVERY, *COMBINED])
def test_any_text_is_survivable(family: str, name: str, text: str) -> None:
    surface = make_surface(SPECS[family], name)
    surface.to_world(text)
    surface.observation(text, text)


def test_a_long_reply_does_not_make_a_pattern_backtrack_without_end() -> None:
    """All perturbations read a reply of 2,400 words with less CPU time than the kernel grants: 20 seconds, for what
    takes under two. A pattern that backtracks exponentially would be killed."""
    code = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
from evalharness.envs import specs
from evalharness.protocol.perturb import make_surface
for spec in specs().values():
    for name in spec.actions.wording.perturbations:
        make_surface(spec, name).to_world("take from to with in on " * 400)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("family", "name"), [*EVERY, *COMBINED])
def test_the_old_form_is_refused_and_the_new_one_is_not(family: str, name: str) -> None:
    surface = make_surface(SPECS[family], name)
    for action in surface.changed:
        slots = re.findall(r"{(\w+)}", surface.canonical.templates[action])
        old = surface.canonical.render(Action(action, dict.fromkeys(slots, "thing")))
        assert surface.to_world(old) == UNKNOWN_WORD
        assert surface.to_world(surface.from_world(old)) == old


def test_what_the_prose_of_a_perturbation_replaces_is_in_the_prompt() -> None:
    for family, name in EVERY:
        prompt = load_prompt(SPECS[family])
        text = prompt.model_dump_json()
        for old in SPECS[family].actions.wording.perturbations[name].prose:
            assert old in text, (family, name, old)


@pytest.mark.parametrize(("family", "name"), [*EVERY, *COMBINED])
def test_the_worked_example_shows_the_new_form_only(family: str, name: str) -> None:
    prompt = load_prompt(SPECS[family])
    surface = make_surface(SPECS[family], name)
    for kind in ["", *prompt.variants] if prompt.example else prompt.variants:
        plain, worded = prompt.for_kind(kind), surface.prompt(prompt.for_kind(kind))
        assert plain.example
        assert worded.example
        for before, after in zip(plain.example.steps, worded.example.steps, strict=True):
            assert surface.to_world(after.action).rstrip(" .") == before.action.rstrip(" .")


def test_the_same_perturbations_in_another_order_are_the_same() -> None:
    assert normal_name("P4+P1") == normal_name(" P1 + P4") == "P1+P4"
    for wrong in ("P1+P1", "P1+", ""):
        with pytest.raises(UserError):
            normal_name(wrong)


# --- with the worlds ---------------------------------------------------------------------------------------------


_kept: dict[str, TextEnv] = {}
"""One of each family that was played: what its environments share (a Java process) goes on to the end."""


@pytest.fixture(scope="module", autouse=True)
def _put_away() -> Iterator[None]:
    yield
    while _kept:
        _kept.popitem()[1].close()


def make(family: str, data: Path | None = None) -> TextEnv:
    if family not in _kept:
        _kept[family] = SPECS[family].make(data)
        _kept[family].warm()
    return SPECS[family].make(data)


def start(task: Task, data: Path | None = None) -> tuple[TextEnv, str]:
    environment = make(task.family, data)
    observation, _ = environment.reset(options={"task": task})
    return environment, observation


class Curves:
    """What plans score turn by turn. What the world is given decides what it scores (the same actions give the same
    episode: every family's own tests), so a plan that reaches the world in the same words is played once."""

    def __init__(self, family: str, data: Path | None = None) -> None:
        self.environment = make(family, data)
        self.played = 0

    def play(self, task: Task, given: Sequence[str]) -> list[tuple[object, ...]]:
        self.played += 1
        self.environment.reset(options={"task": task})
        return [self.step(action) for action in given]

    def step(self, action: str) -> tuple[object, ...]:
        _, _, terminated, _, info = self.environment.step(action)
        return (terminated, *(info[key] for key in sorted(info)))

    def check(self, task: Task, names: Sequence[str], really: str) -> None:
        """The plan, said under each perturbation, scores as it does in the environment's own words. Under `really` it
        is played whatever it comes to; under the others when it reaches the world in other words."""
        self.environment.reset(options={"task": task})
        plan = oracle_plan(self.environment, task)
        plain = [self.step(action) for action in plan]
        self.played += 1
        for name in names:
            surface = make_surface(SPECS[task.family], name)
            given = [surface.to_world(surface.from_world(action)) for action in plan]
            assert UNKNOWN_WORD not in given
            if given != plan or name == really:
                assert self.play(task, given) == plain, (task.id, name)


def same_curves(family: str, tasks: Sequence[Task], data: Path | None = None) -> None:
    """Every task under every perturbation; each perturbation is really played on its share of the tasks."""
    names, curves = names_of(family), Curves(family, data)
    try:
        for i, task in enumerate(tasks):
            curves.check(task, names, names[i % len(names)])
    finally:
        curves.environment.close()
    assert curves.played >= 2 * len(tasks)


def names_of(family: str) -> list[str]:
    return [name for known, name in [*EVERY, *COMBINED] if known == family]


def open_tasks(family: str) -> list[Task]:
    """All tasks of the open suite of a family."""
    tasks = SPECS[family].suites.load_tasks("open", None, 0)
    assert len(tasks) == SPECS[family].suites.expected["open"]
    return tasks


@pytest.mark.parametrize("family", PLAYED)
def test_oracle_plans_score_the_same_in_other_words(family: str) -> None:
    """One task really played under every perturbation, in full."""
    curves = Curves(family)
    try:
        task = open_tasks(family)[0]
        for name in names_of(family):
            curves.check(task, [name], name)
    finally:
        curves.environment.close()
    assert curves.played == 2 * len(names_of(family))


@pytest.mark.parametrize("family", PLAYED)
def test_the_worlds_forgive_the_same_under_every_perturbation(family: str) -> None:
    """A plan whose actions end with a period, stand between spaces or are written in capitals."""
    curves = Curves(family)
    try:
        task = open_tasks(family)[0]
        curves.environment.reset(options={"task": task})
        plan = oracle_plan(curves.environment, task)
        plain, forgiven, scored = curves.play(task, plan), 0, dict[tuple[str, ...], object]()
        for change in ("{}.", "  {}", "{} \n", "{}. ", "upper"):
            said = [a.upper() if change == "upper" else change.format(a) for a in plan]
            score = curves.play(task, said)
            forgiven += score == plain
            for name in names_of(family):
                surface = make_surface(SPECS[family], name)
                if change == "upper" and str.upper not in spoken_cases(family, name):
                    continue
                worded = [surface.from_world(action) for action in plan]
                given = [
                    surface.to_world(a.upper() if change == "upper" else change.format(a)) for a in worded
                ]
                if given != said:
                    if tuple(given) not in scored:
                        scored[tuple(given)] = curves.play(task, given)
                    assert scored[tuple(given)] == score, (name, change)
        assert forgiven >= 2  # white space, everywhere
    finally:
        curves.environment.close()


@pytest.mark.slow
@pytest.mark.parametrize("family", PLAYED)
def test_plans_of_the_whole_suite_score_the_same_in_other_words(family: str) -> None:
    """Of every `stride`th task, as of the published ones."""
    same_curves(family, open_tasks(family)[:: contract(family).stride])


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("family", [f for f in FAMILIES if "agentboard" in SPECS[f].suites.expected])
def test_published_plans_score_the_same_in_other_words(family: str, published_data: Path) -> None:
    tasks = SPECS[family].suites.load_tasks("agentboard", published_data, 0)
    same_curves(family, tasks[:: contract(family).stride], published_data)


def check_refusals(family: str, task: Task, data: Path | None = None) -> None:
    """The old form gets the refusal of any unknown text, and the world stays as it was."""
    environment, _ = start(task, data)
    try:
        plan = environment.oracle() or environment.valid_actions()[:5]
        for name in names_of(family):
            surface = make_surface(SPECS[family], name)
            environment.reset(options={"task": task})
            for action in plan[:5]:
                if surface.from_world(action) == action:
                    continue
                before = environment.valid_actions()
                raw, _, terminated, _, info = environment.step(surface.to_world(action))
                shown = surface.observation(raw, action)
                assert not terminated
                assert UNKNOWN_WORD not in shown
                assert not info["valid"]
                refusal = contract(family).refusal
                if refusal is None:
                    assert raw == environment.step(UNKNOWN_WORD)[0]
                else:
                    assert shown == refusal
                if not contract(family).valid_actions_follow_the_text:
                    assert environment.valid_actions() == before
                environment.step(action)
    finally:
        environment.close()


@pytest.mark.parametrize("family", PLAYED)
def test_the_old_form_gets_the_environments_own_refusal(family: str) -> None:
    check_refusals(family, open_tasks(family)[0])


def check_listing(family: str, task: Task, data: Path | None = None) -> None:
    """Each action that the world lists under a perturbation is accepted as it is listed."""
    help_action = SPECS[family].actions.help_action or ""
    environment, _ = start(task, data)
    try:
        for name in names_of(family):
            surface = make_surface(SPECS[family], name)
            environment.reset(options={"task": task})
            check = surface.from_world(SPECS[family].actions.templates[help_action])
            raw, *_ = environment.step(surface.to_world(check))
            shown = surface.observation(raw, check)
            prefix = SPECS[family].actions.wording.listing
            assert shown.startswith(prefix)
            listed = [item.strip() for item in shown.removeprefix(prefix).split(", ")]
            plain = [item.strip() for item in raw.removeprefix(prefix).split(", ")]
            heard = [surface.to_world(item).strip() for item in listed]
            assert UNKNOWN_WORD not in heard
            # Where it lists other words than those it takes, only their number can be compared.
            same = (
                len(heard) == len(plain)
                if contract(family).lists_other_words
                else sorted(heard) == sorted(plain)
            )
            assert same
            assert check in listed
    finally:
        environment.close()


@pytest.mark.slow
@pytest.mark.parametrize("family", [f for f in FAMILIES if SPECS[f].actions.help_action])
def test_the_list_of_valid_actions_is_in_the_new_form(family: str) -> None:
    check_listing(family, open_tasks(family)[0])


@pytest.mark.slow
def test_the_command_shows_both_forms_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for family, name in EVERY:
        assert main(["data", "perturbations", "show", family, name]) == 0
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= 80
        surface = make_surface(SPECS[family], name)
        prompt = load_prompt(SPECS[family])
        listed = [action for action in surface.changed if action in (prompt.actions or surface.changed)]
        for action in listed[:1]:
            words = " ".join(shown.split())
            assert " ".join(surface.perturbed.templates[action].split()) in words
            assert " ".join(surface.canonical.templates[action].split()) in words
    assert main(["data", "perturbations", "list"]) == 0
    printed = capsys.readouterr().out
    assert all(family in printed for family in FAMILIES)
