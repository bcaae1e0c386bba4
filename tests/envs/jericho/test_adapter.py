"""The Jericho adapter keeps the promises of every environment, on the published games."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalharness.envs import specs
from evalharness.envs.base import Task, TextEnv
from evalharness.envs.jericho.actions import ACTIONS, MAX_CHARACTERS, cut_action, is_check, make_typeable
from evalharness.envs.jericho.adapter import JerichoEnv
from evalharness.envs.jericho.interpreter import Interpreter
from evalharness.envs.jericho.observation import clean, is_known, is_refused, is_understood
from evalharness.envs.jericho.tasks import GAMES
from evalharness.envs.surface import ActionSurface

SPEC = specs()["jericho"]

AWKWARD = (
    "", " ", "\n\n", "look\nlook", "\nlook", "look\r\nlook\x00look", "\x00", "\x1b[2J", "\x7f\x08\x08", "x" * 10_000,
    "word " * 3_000, "é" * 500, "日本語 🗝️", "\ud800", "“take the key” — now…", "\\", "\\\\", "\\help", "\\R", "\\w9999",
    "\\sf0", "a\\Rb", "% d %s %n", "take all, then go", ".", ",", "again", "g", "undo", "oops lamp", "go to desk 1",
    "put plate 1 in/on countertop 1", "pickup red ball 1", "(pick-up ball1 rooma left)", "quit", "y", "restart", "no",
)  # fmt: skip

FILE_COMMANDS = (
    "save", "restore", "script", "script on", "transcript", "transcript on", "script off", "unscript", "noscript",
    "recording", "recording on", "recording off", "replay", "#record", "#command save", "$ve", "verify",
)  # fmt: skip


@pytest.fixture
def empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _task(data: Path, game: str) -> Task:
    return SPEC.suites.load_tasks("agentboard", data, 0)[GAMES.index(game)]


def _play(environment: TextEnv, task: Task, actions: list[str]) -> list[tuple[Any, ...]]:
    observation, info = environment.reset(options={"task": task})
    seen: list[tuple[Any, ...]] = [(observation, info)]
    for action in actions:
        observation, reward, terminated, truncated, info = environment.step(action)
        seen.append((observation, reward, terminated, truncated, info))
    return seen


@pytest.mark.data
@pytest.mark.parametrize("game", ["905", "zork1", "snacktime", "night"])
def test_any_text_is_survived_and_touches_no_file(
    published_data: Path, empty_directory: Path, game: str
) -> None:
    data = published_data.resolve()
    environment = SPEC.make(data)
    task = _task(data, game)
    for action in (*AWKWARD, *FILE_COMMANDS):
        environment.reset(options={"task": task})
        for text in (action, "again", "y"):
            observation, _, terminated, truncated, info = environment.step(text)
            assert isinstance(observation, str)
            observation.encode("utf-8")
            assert not truncated
            assert 0.0 <= info["progress"] <= 1.0
            if terminated:
                break
        assert not any(empty_directory.iterdir()), action


@pytest.mark.data
@pytest.mark.parametrize("game", GAMES)
def test_no_game_can_save_record_or_transcribe(
    published_data: Path, empty_directory: Path, game: str
) -> None:
    data = published_data.resolve()
    for action in FILE_COMMANDS:
        interpreter = Interpreter(data / _task(data, game).payload["story"])
        interpreter.send("look")
        interpreter.send(action)
        interpreter.send("again")
        interpreter.send("y")
        assert not any(empty_directory.iterdir()), action


@pytest.mark.data
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(st.text(max_size=300), max_size=4))
def test_random_unicode_is_survived(published_data: Path, actions: list[str]) -> None:
    task = _task(published_data, "acorncourt")
    environment = SPEC.make(published_data)
    for _, _, _, truncated, info in _play(environment, task, actions)[1:]:
        assert not truncated
        assert info["progress"] < 1.0


@pytest.mark.data
def test_an_episode_does_not_depend_on_the_one_before(published_data: Path) -> None:
    """Also when that one stopped in a menu with keys still unread, or in the middle of a question."""
    scripts = [
        ("night", ["help", "general instructions then some", "x"]),
        ("zork1", ["n", "quit"]),
        ("905", ["stand up", "s", "take"]),
        ("night", ["ne", "s", "e", "open box", "undo"]),
        ("zork2", ["get lamp", "s", "s", "s"]),
    ]
    shared = SPEC.make(published_data)
    for game, actions in [*scripts, *scripts[::-1]]:
        task = _task(published_data, game)
        assert _play(shared, task, actions) == _play(SPEC.make(published_data), task, actions)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("game", ["905", "zork1", "loose", "zenon"])
def test_valid_actions_are_sorted_stable_and_really_change_the_world(published_data: Path, game: str) -> None:
    environment = JerichoEnv(data=published_data)
    task = _task(published_data, game)
    environment.reset(options={"task": task})
    listed = environment.valid_actions()
    assert listed == sorted(set(listed)) == environment.valid_actions()
    assert "check valid actions" in listed
    assert len(listed) >= 2
    for action in listed:
        if action == "check valid actions":
            continue
        environment.reset(options={"task": task})
        interpreter = environment._game
        world, score = interpreter.frotz.get_world_state_hash(), interpreter.frotz.get_score()
        environment.step(action)
        changed = interpreter.frotz.get_world_state_hash() != world or interpreter.frotz._world_changed()
        assert changed or interpreter.frotz.get_score() != score or interpreter.over, action


@pytest.mark.data
def test_listing_actions_leaves_the_game_as_it_was(published_data: Path) -> None:
    task = _task(published_data, "zork1")
    actions = ["open mailbox", "take leaflet", "undo", "read leaflet", "n", "e"]
    environment = SPEC.make(published_data)
    environment.reset(options={"task": task})
    listed = []
    for action in actions:
        environment.valid_actions()
        environment.step("check valid actions")
        listed.append(environment.step(action))
    assert listed == _play(SPEC.make(published_data), task, actions)[1:]


@pytest.mark.data
def test_after_the_end_nothing_moves(published_data: Path) -> None:
    task = _task(published_data, "reverb")
    environment = SPEC.make(published_data)
    environment.reset(options={"task": task})
    for action in environment.oracle():
        last = environment.step(action)
    assert last[2]
    for action in ("look", "check valid actions", "restart"):
        observation, reward, terminated, _, info = environment.step(action)
        assert (observation, reward, terminated) == (last[0], 0.0, True)
        assert info["progress"] == 1.0
    assert environment.valid_actions() == []


@pytest.mark.data
def test_a_lost_game_is_not_solved_even_where_a_label_is_met(published_data: Path) -> None:
    """Handing the pizza over is an ending that the game calls lost."""
    task = replace(_task(published_data, "reverb"), subgoals=("takes the pizza from you",))
    environment = SPEC.make(published_data)
    route = ["get pizza box", "sw", "s", "w", "s", "give pizza to calzone"]
    *_, (_, _, terminated, _, info) = _play(environment, task, route)
    assert (terminated, info["success"], info["solved"]) == (True, True, False)


def _plan(environment: TextEnv, task: Task) -> list[str]:
    environment.reset(options={"task": task})
    return environment.oracle()


@pytest.mark.data
def test_interpreters_share_nothing_in_one_process(published_data: Path) -> None:
    """Interleaved games go on as if alone, and neither open files nor temporary ones are left behind."""
    descriptors = _open_files()
    games = ["zork1", "zork1", "zork3", "905", "snacktime"]
    alone = []
    for game in games:
        environment = SPEC.make(published_data)
        task = _task(published_data, game)
        alone.append(_play(environment, task, _plan(environment, task)[:4]))
    together = [SPEC.make(published_data) for _ in games]
    seen: list[list[tuple[Any, ...]]] = []
    for environment, game in zip(together, games, strict=True):
        seen.append([environment.reset(options={"task": _task(published_data, game)})])
    for turn in range(4):
        for environment, episode in zip(together, seen, strict=True):
            episode.append(environment.step(environment.oracle()[turn]))
    assert seen == alone
    for environment in together:
        environment.close()
    assert _open_files() == descriptors


def test_the_published_cut() -> None:
    assert cut_action("open mailbox, then take leaflet") == "open mailbox"
    assert cut_action("go n. look") == "go n"
    assert cut_action("  take  egg ") == "  take  egg "
    assert cut_action(". look") == ""
    assert cut_action("a " * 30) == " ".join(["a"] * 20)
    assert is_check("Check available ACTIONS")
    assert not is_check("check mailbox")


@given(st.text())
def test_a_typed_line_is_always_one_that_a_game_can_hold(text: str) -> None:
    line = make_typeable(text)
    assert line.isascii()
    assert all(" " <= character <= "~" for character in line)
    assert len(line) <= MAX_CHARACTERS


def test_typography_is_typed_as_a_person_would() -> None:
    assert make_typeable("take Nikolai’s “menu” — café") == 'take Nikolai\'s "menu" - cafe'
    assert make_typeable("\nlook\nwait") == "look"


def test_every_command_of_the_table_is_parsed_by_one_template_and_worded_back() -> None:
    surface = ActionSurface(ACTIONS)
    for name, template in ACTIONS.items():
        words = {
            "object": "brass lamp",
            "container": "small box",
            "surface": "the table",
            "direction": "north",
        }
        slots = {
            "key": "iron key",
            "device": "lamp",
            "place": "house",
            "person": "old man",
            "topic": "the well",
        }
        text = template.format(**words, **slots, creature="troll", weapon="elvish sword")
        fitting = [other for other in ACTIONS if ActionSurface({other: ACTIONS[other]}).parse(text)]
        assert fitting == [name]
        action = surface.parse(text)
        assert action is not None
        assert surface.render(action) == text


def test_clean_up_is_the_published_one() -> None:
    assert clean("You dig.\n\n[Your score has just gone up by five points.]") == "You dig. "
    assert clean("\n Hall\nA  long   hall.\n") == " Hall A long hall. "


@pytest.mark.parametrize(
    "text",
    [
        "That's not a verb I recognise.", 'I don\'t know the word "apple".', "You can't see any such thing.",
        "[!: Noun error.]", "I only understood you as far as wanting to look.", "What do you want to open?",
        "I beg your pardon?", "There was no verb in that sentence!", "You can't see any bread here.",
        "[What do you want to open?]", "You can only do that to something animate.",
    ],
)  # fmt: skip
def test_stock_parser_errors_are_not_understood(text: str) -> None:
    assert not is_understood(text)
    assert is_refused(text) == text.startswith("[!")


@pytest.mark.data
@pytest.mark.parametrize("game", GAMES)
def test_an_unknown_word_is_not_valid_in_any_game(published_data: Path, game: str) -> None:
    """Nor the turns after it. All of them are grounded by the published rule, but in 905."""
    environment = SPEC.make(published_data)
    played = _play(environment, _task(published_data, game), ["qwerty", "qzxvkw the lamp", "take qwerty"])
    found = [(info["valid"], info["published_valid"]) for *_, info in played[1:]]
    assert found == [(False, game != "905")] * 3


def test_the_lists_of_valid_actions_do_not_rest_on_single_games_refusals() -> None:
    """They are found by the stock messages alone, and the floors were measured with them."""
    wolf = '"Huh?" The wolf raises an eyebrow.'
    assert is_known(wolf)
    assert not is_understood(wolf)


@pytest.mark.parametrize(
    "text", ["Taken.", " Kitchen You are in the kitchen.", "It is locked.", "Time passes."]
)
def test_other_answers_are_understood(text: str) -> None:
    assert is_understood(text)
    assert not is_refused(text)


@pytest.mark.data
def test_an_action_that_halts_the_interpreter_is_no_lost_game(published_data: Path) -> None:
    environment = SPEC.make(published_data)
    environment.reset(options={"task": _task(published_data, "balances")})
    observation, _, terminated, _, info = environment.step("take her")
    assert "illegal object" in observation
    assert (terminated, info["halted"], info["valid"], info["solved"]) == (True, True, False, False)
    environment.reset(options={"task": _task(published_data, "balances")})
    assert "halted" not in environment.step("look")[4]
