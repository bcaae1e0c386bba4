"""Perturbations: the same meanings in other words; the environment and its scoring are untouched."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import evalharness
from hypothesis import given, settings
from hypothesis import strategies as st

from envs import specs
from envs.base import Task, TextEnv
from evalharness.errors import UserError
from evalharness.perturb import UNKNOWN_WORD, Voice, normal_name
from evalharness.prompt import load_prompt
from evalharness.store import read_episodes
from evalharness.surface import Action

FAMILIES = ("alfworld", "babyai", "jericho", "pddl", "sciworld")
SPECS = {family: spec for family, spec in specs().items() if family in FAMILIES}
EVERY = [(family, name) for family, spec in SPECS.items() for name in spec.wording.perturbations]
COMBINED = [("alfworld", "P1+P2+P3+P4+P5"), ("alfworld", "P4+capitals+verbs"), ("babyai", "joined+order")]
REFUSAL = {
    "alfworld": "Nothing happens.",
    "babyai": "The action is not recognized. Please check valid actions.",
    "pddl": "The action is not valid and therefore takes no effect. Please check valid actions.",
    "sciworld": "No known action matches that input.",
}

_word = st.from_regex(r"[a-z]{2,8}", fullmatch=True)
_name = {
    "alfworld": st.from_regex(r"[a-z]{2,8} [1-9][0-9]?", fullmatch=True),
    "babyai": st.from_regex(r"(red|grey) (ball|box|key) [1-9]", fullmatch=True),
    "jericho": _word,
    "pddl": st.from_regex(r"[a-z]{1,6}[0-9]{0,2}", fullmatch=True),
    "sciworld": st.from_regex(r"(flower pot [1-9]|metal cup|orange)", fullmatch=True),
}


@pytest.mark.parametrize(("family", "name"), [*EVERY, *COMBINED])
def test_a_perturbation_rewords_known_actions_and_keeps_their_slots(family: str, name: str) -> None:
    spec = SPECS[family]
    voice = Voice(spec, name)
    for action, template in voice.surface.templates.items():
        assert sorted(re.findall(r"{\w+}", template)) == sorted(re.findall(r"{\w+}", spec.actions[action]))
    assert len(set(voice.surface.templates.values())) == len(set(spec.actions.values()))
    assert name != "verbs" or voice.changed


@pytest.mark.parametrize("family", FAMILIES)
@settings(deadline=None)
@given(data=st.data())
def test_every_action_is_read_back_as_it_was_worded(family: str, data: st.DataObject) -> None:
    spec = SPECS[family]
    names = [None, *(name for known, name in [*EVERY, *COMBINED] if known == family)]
    voice = Voice(spec, data.draw(st.sampled_from(names)))
    action = data.draw(st.sampled_from(sorted(spec.actions)))
    slots = re.findall(r"{(\w+)}", spec.actions[action])
    meant = Action(action, {slot: data.draw(_name[family]) for slot in slots})
    assert voice.surface.parse(voice.surface.render(meant)) == meant
    canonical = voice.canonical.render(meant)
    assert voice.to_world(voice.action(canonical)) == canonical


@settings(deadline=None)
@given(st.text())
@pytest.mark.parametrize("family", FAMILIES)
def test_the_plain_voice_changes_nothing(family: str, text: str) -> None:
    voice = Voice(SPECS[family])
    assert voice.to_world(text) == voice.action(text) == voice.names(text) == voice.observation(text) == text


@settings(deadline=None)
@given(st.text())
@pytest.mark.parametrize(("family", "name"), [*EVERY, *COMBINED])
def test_any_text_is_survivable(family: str, name: str, text: str) -> None:
    voice = Voice(SPECS[family], name)
    voice.to_world(text)
    voice.observation(text, text)


def test_a_long_reply_is_read_in_no_time() -> None:
    for family, name in EVERY:
        Voice(SPECS[family], name).to_world("take from to with in on " * 400)


@pytest.mark.parametrize(("family", "name"), [*EVERY, *COMBINED])
def test_the_old_form_is_refused_and_the_new_one_is_not(family: str, name: str) -> None:
    voice = Voice(SPECS[family], name)
    for action in voice.changed:
        slots = re.findall(r"{(\w+)}", voice.canonical.templates[action])
        old = voice.canonical.render(Action(action, dict.fromkeys(slots, "thing")))
        assert voice.to_world(old) == UNKNOWN_WORD
        assert voice.to_world(voice.action(old)) == old


def test_the_published_perturbations_say_what_the_paper_says() -> None:
    said = {name: Voice(SPECS["alfworld"], name) for name in ("P1", "P2", "P3", "P4", "P5")}
    assert said["P1"].action("heat egg 1 with microwave 1") == "heat egg 1 using microwave 1"
    assert said["P2"].action("go to shelf 1") == "move to shelf 1"
    assert said["P3"].action("take cup 1 from shelf 2") == "from shelf 2 take cup 1"
    assert said["P4"].action("take cup 1 from shelf 2") == "take cup1 from shelf2"
    prompt, _ = load_prompt(SPECS["alfworld"])
    assert (
        "IMPORTANT"
        not in said["P5"]
        .prompt(prompt)
        .messages(said["P5"].surface, said["P5"].surface, "g", "o")[1]["content"]
    )
    assert said["P4"].to_world("take cup 1 from shelf 2") == UNKNOWN_WORD


def test_what_the_prose_of_a_perturbation_replaces_is_in_the_prompt() -> None:
    for family, name in EVERY:
        prompt, _ = load_prompt(SPECS[family])
        text = prompt.model_dump_json()
        for old in SPECS[family].wording.perturbations[name].prose:
            assert old in text, (family, name, old)


@pytest.mark.parametrize(("family", "name"), [*EVERY, *COMBINED])
def test_the_worked_example_shows_the_new_form_only(family: str, name: str) -> None:
    prompt, _ = load_prompt(SPECS[family])
    voice = Voice(SPECS[family], name)
    for kind in ["", *prompt.variants] if prompt.example else prompt.variants:
        plain, worded = prompt.for_kind(kind), voice.prompt(prompt.for_kind(kind))
        assert plain.example
        assert worded.example
        for before, after in zip(plain.example.steps, worded.example.steps, strict=True):
            assert voice.to_world(after.action).rstrip(" .") == before.action.rstrip(" .")


def test_the_same_perturbations_in_another_order_are_the_same() -> None:
    assert normal_name("P4+P1") == normal_name(" P1 + P4") == "P1+P4"
    for wrong in ("P1+P1", "P1+", ""):
        with pytest.raises(UserError):
            normal_name(wrong)


def test_an_unknown_or_contradictory_perturbation_is_a_clear_error() -> None:
    with pytest.raises(UserError, match=r"did you mean 'verbs'.*evalharness perturb list babyai"):
        Voice(SPECS["babyai"], "verb")
    with pytest.raises(UserError, match="reword the same action"):
        Voice(SPECS["alfworld"], "P3+verbs")


# --- with the worlds ---------------------------------------------------------------------------------------------


def start(task: Task, data: Path | None = None) -> tuple[TextEnv, str]:
    environment = SPECS[task.family].make(data)
    observation, _ = environment.reset(options={"task": task})
    return environment, observation


def curve(task: Task, voice: Voice, plan: list[str], data: Path | None = None) -> list[tuple[object, ...]]:
    """What a plan, said in this voice, scores turn by turn."""
    environment, _ = start(task, data)
    result: list[tuple[object, ...]] = []
    try:
        for action in plan:
            _, _, terminated, _, info = environment.step(voice.to_world(voice.action(action)))
            result.append((terminated, *(info[key] for key in sorted(info))))
    finally:
        environment.close()
    return result


def same_curves(task: Task, names: list[str], data: Path | None = None) -> None:
    environment, _ = start(task, data)
    try:
        plan = environment.oracle()
    finally:
        environment.close()
    plain = curve(task, Voice(SPECS[task.family]), plan, data)
    for name in names:
        assert curve(task, Voice(SPECS[task.family], name), plan, data) == plain, (task.id, name)


def names_of(family: str) -> list[str]:
    return [name for known, name in [*EVERY, *COMBINED] if known == family]


def open_tasks(family: str) -> list[Task]:
    try:
        return SPECS[family].load_tasks("open", None, 0)
    except Exception as error:
        pytest.skip(f"no open suite of {family} yet: {error}")


@pytest.mark.parametrize("family", ["alfworld", "babyai", "jericho", "pddl"])
def test_oracle_plans_score_the_same_in_other_words(family: str) -> None:
    tasks = {task.kind: task for task in reversed(open_tasks(family))}
    for task in list(tasks.values())[:4]:
        same_curves(task, names_of(family))


STRIDE = {"sciworld": 30}
"""A Java process is started for every task of ScienceWorld: three tasks have to do."""


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_oracle_plan_scores_the_same_in_other_words(family: str) -> None:
    for task in open_tasks(family)[:: STRIDE.get(family, 1)]:
        same_curves(task, names_of(family))


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("family", FAMILIES)
def test_published_plans_score_the_same_in_other_words(family: str, published_data: Path) -> None:
    for task in SPECS[family].load_tasks("agentboard", published_data, 0)[:: STRIDE.get(family, 1)]:
        same_curves(task, names_of(family), published_data)


def check_refusals(family: str, task: Task, data: Path | None = None) -> None:
    """The old form gets the refusal of any unknown text, and the world stays as it was."""
    environment, _ = start(task, data)
    try:
        plan = environment.oracle() or environment.valid_actions()[:5]
        for name in names_of(family):
            voice = Voice(SPECS[family], name)
            environment.reset(options={"task": task})
            for action in plan[:5]:
                if voice.action(action) == action:
                    continue
                before = environment.valid_actions()
                raw, _, terminated, _, info = environment.step(voice.to_world(action))
                shown = voice.observation(raw, action)
                assert not terminated
                assert UNKNOWN_WORD not in shown
                if family == "jericho":
                    assert raw == environment.step(UNKNOWN_WORD)[0]
                else:
                    assert shown == REFUSAL[family]
                    assert not info["valid"]
                assert environment.valid_actions() == before
                environment.step(action)
    finally:
        environment.close()


@pytest.mark.parametrize("family", ["alfworld", "babyai", "jericho", "pddl"])
def test_the_old_form_gets_the_environments_own_refusal(family: str) -> None:
    check_refusals(family, open_tasks(family)[0])


def check_listing(family: str, task: Task, data: Path | None = None) -> None:
    """Each action that the world lists under a perturbation is accepted as it is listed."""
    environment, _ = start(task, data)
    try:
        for name in names_of(family):
            voice = Voice(SPECS[family], name)
            environment.reset(options={"task": task})
            check = voice.action(SPECS[family].actions["check"])
            raw, *_ = environment.step(voice.to_world(check))
            shown = voice.observation(raw, check)
            prefix = SPECS[family].wording.listing
            assert shown.startswith(prefix)
            listed = [item.strip() for item in shown.removeprefix(prefix).split(", ")]
            plain = [item.strip() for item in raw.removeprefix(prefix).split(", ")]
            heard = [voice.to_world(item).strip() for item in listed]
            assert UNKNOWN_WORD not in heard
            # ScienceWorld lists `go OBJ` and takes `go to OBJ`, the prompt's form, as well.
            assert len(heard) == len(plain) if family == "sciworld" else sorted(heard) == sorted(plain)
            assert check in listed
    finally:
        environment.close()


@pytest.mark.parametrize("family", ["alfworld", "babyai", "jericho", "pddl"])
def test_the_list_of_valid_actions_is_in_the_new_form(family: str) -> None:
    check_listing(family, open_tasks(family)[0])


@pytest.mark.data
def test_scienceworld_refuses_the_old_form_and_lists_the_new(published_data: Path) -> None:
    task = SPECS["sciworld"].load_tasks("agentboard", published_data, 0)[0]
    check_refusals("sciworld", task, published_data)
    check_listing("sciworld", task, published_data)


def test_the_reasons_of_a_refusal_are_given_in_the_new_form() -> None:
    voice = Voice(SPECS["babyai"], "joined+verbs")
    told = "You cannot go to red ball 1, as there is no path leading to it."
    assert voice.observation(told) == "You cannot walk to red ball1, as there is no path leading to it."
    barrier = "There is a barrier in front of you, you can't move forward."
    assert voice.observation(barrier) == "There is a barrier in front of you, you can't step forward."


def test_a_thing_told_apart_by_its_place_keeps_it() -> None:
    voice = Voice(SPECS["sciworld"], "order")
    said = voice.action("pour cup containing blue paint in art studio in jug")
    assert said == "into jug pour cup containing blue paint in art studio"


def test_a_perturbed_run_is_a_run_of_its_own(environment: dict[str, str], tmp_path: Path) -> None:
    options = [
        "run",
        "--suite",
        "open",
        "--tasks",
        "alfworld:0-1",
        "--model",
        "oracle",
        "-o",
        tmp_path / "run",
    ]
    done = evalharness(environment, *options, "--perturb", "P4+P1")
    assert done.returncode == 0, done.stderr
    assert "perturbation P1+P4" in done.stdout
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["perturbation"] == "P1+P4"
    episodes = list(read_episodes(tmp_path / "run"))
    assert [(e.perturbation, e.success) for e in episodes] == [("P1+P4", True)] * 2
    said = " ".join(turn.action or "" for episode in episodes for turn in episode.turns)
    assert re.search(r"[a-z][0-9]", said)
    assert not re.search(r"[a-z] [0-9]", said)
    refused = evalharness(environment, *options)
    assert refused.returncode == 2
    assert "perturb" in refused.stderr
    unknown = evalharness(environment, *options, "--perturb", "P9")
    assert unknown.returncode == 2
    assert "evalharness perturb list alfworld" in unknown.stderr


def test_the_command_shows_both_forms_at_80_columns(environment: dict[str, str]) -> None:
    for family, name in (("alfworld", "P3"), ("pddl", "verbs"), ("sciworld", "joined")):
        shown = evalharness(environment, "perturb", "show", family, name)
        assert shown.returncode == 0, shown.stderr
        assert max(map(len, shown.stdout.splitlines())) <= 80
    shown = evalharness(environment, "perturb", "show", "alfworld", "P3")
    assert "from {receptacle} take {object}" in shown.stdout
    assert "take {object} from {receptacle}" in shown.stdout
    listed = evalharness(environment, "perturb", "list")
    assert all(family in listed.stdout for family in FAMILIES)
