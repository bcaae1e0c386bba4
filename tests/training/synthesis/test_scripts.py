"""The format of scripts, their expressions, and the personas they are written for."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from scripted_model import PROMPTS, SCRIPT

from evalharness.base.errors import UserError
from evalharness.training.synthesis import actions as expressions
from evalharness.training.synthesis.actions import (
    ActionCheck,
    ExpressionError,
    TooSlowError,
    find_action_mistakes,
    list_own_texts,
    matches_fully,
)
from evalharness.training.synthesis.personas import draw, find_own_file, read_personas
from evalharness.training.synthesis.script import Action, KeysError, Script, read_script
from evalharness.training.synthesis.verify import verify_script

CATASTROPHIC = [r"(a|aa)+b", r"(a{1,1000}){1,1000}b", r"^(([a-z])+.)+[A-Z]([a-z])+$"]


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good script with the value at a path of keys replaced; None removes it."""
    script = copy.deepcopy(SCRIPT)
    *keys, last = path.split("/")
    at = script
    for key in keys:
        at = at[key]
    if value is None:
        del at[last]
    else:
        at[last] = value
    return script


def action(code: str, parameters: dict[str, Any] | None = None, **more: Any) -> Action:
    return Action.model_validate({"verification code": code, "parameters": parameters or {}, **more})


PLACES = "Environment/places and objects"
OPEN = "Available Actions/open {container}"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("Thought", None, "Thought: Field required"),
        ("Goal", 7, "(found: 7)"),
        ("Goal", "", "Goal"),
        ("Completion Conditions", "once", "Completion Conditions"),
        ("Completion Conditions", [], "Completion Conditions"),
        ("Environment/initial state", None, "Environment / initial state"),
        (PLACES, {}, "places and objects"),
        (f"{PLACES}/workshop", ["a bench"], "workshop"),
        (f"{PLACES}/workshop/cabinet/state", 3, "cabinet / state"),
        (f"{PLACES}/workshop/cabinet/oil can/information", ["x"], "oil can / information"),
        (f"{PLACES}/workshop/relative location", "north", "relative location"),
        ("Environment/player", None, "player"),
        ("Environment/player/information", None, "information"),
        ("Available Actions", {}, "Available Actions"),
        (f"{OPEN}/verification code", None, "verification code"),
        (f"{OPEN}/parameters", ["cabinet"], "parameters"),
        (f"{OPEN}/parameters/container", "cabinet", "container"),
    ],
)
def test_wrong_keys_and_types_are_named(path: str, value: Any, said: str) -> None:
    script, verdict = verify_script(json.dumps(changed(path, value)))
    assert script is None
    assert verdict.signal == "KEYS"
    assert said in verdict.mistakes[0]


def test_the_player_may_stand_on_any_of_three_levels() -> None:
    player = SCRIPT["Environment"]["player"]
    beside = changed("Environment/player", None) | {"player": player}
    among = changed("Environment/player", None)
    among["Environment"]["places and objects"]["player"] = player
    assert read_script(beside) == read_script(among) == read_script(SCRIPT)


def test_sizes_are_bounded() -> None:
    def mistakes(script: dict[str, Any]) -> str:
        with pytest.raises(KeysError) as error:
            read_script(script)
        return str(error.value)

    assert "at most 500" in mistakes(changed(PLACES, {f"room {i}": {} for i in range(501)}))
    assert "at most 60" in mistakes(
        changed("Available Actions", {f"act {i}": {"verification code": f"act {i}"} for i in range(61)})
    )
    deep: dict[str, Any] = {}
    for _ in range(20):
        deep = {"box": deep}
    assert "12 deep" in mistakes(changed(PLACES, deep))


@pytest.mark.parametrize("depth", [13, 100, 2_000, 50_000])
def test_nesting_of_any_depth_is_a_verdict(depth: int) -> None:
    text = json.dumps(SCRIPT).replace('"Goal":', '"Goal": ' + '{"x":' * depth + "1" + "}" * depth + ', "y":')
    assert verify_script(text)[1].signal in ("JSON", "KEYS")


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("look", action("look")),
        ("open {box}", action("open (red|blue) box", {"box": ["red box", "blue box"]})),
        ("open <box>", action("open (red|blue) box", {"box": ["red box", "blue box"]})),
        ("open {box}", action("open {box}", {"box": ["red box", "a (big) box"]})),
        ("open <box>", action("open <box>", {"box": ["red box", "a+b"]})),
        ("open", action("open (?P<box>.+)", {"box": ["red box"]})),
        ("open", action(r"open (?<box>.+)", {"box": ["red box"]})),
        ("put {a} on {b}", action("put .+ on .+", {"a": ["cup", "jug"], "b": ["shelf"]})),
        ("wait {n} times", action(r"wait \d{1,2} times", {"n": ["3", "12"]})),
        ("search {words}", action("search .+", {"words": None})),
        ("answer", action("answer: .+", **{"special format": "answer: text"})),
    ],
)
def test_expressions_that_accept_their_own_action(name: str, made: Action) -> None:
    assert find_action_mistakes(name, made) == []


@pytest.mark.parametrize(
    ("name", "made", "said"),
    [
        ("open", action("open (box"), "not compile"),
        ("open", action("close"), "own action 'open'"),
        ("open", action("op"), "not match"),
        ("open {box}", action("open red box", {"box": ["red box", "blue box"]}), "'open blue box'"),
        ("put", action("lay .+ on .+", {"a": ["cup"], "b": ["shelf"]}), "'put cup shelf'"),
        ("answer", action("answer: (", **{"special format": "text"}), "not compile"),
        (
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{x}",
            action(r"(a|aa)+b", {"x": ["c"]}),
            "more than 2.0 s",
        ),
        ("open", action("a" * 30_000), "more than 20,000 characters"),
        ("open", action("(" * 5_000), "not compile"),
        ("open", action("a{99999999999}"), "not compile"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_expressions_that_do_not(name: str, made: Action, said: str) -> None:
    (mistake,) = find_action_mistakes(name, made)
    assert said in mistake


def test_a_name_may_leave_its_parameters_out() -> None:
    put = action("put (.+) in (.+)", {"item": ["cup"], "holder": ["box"]})
    assert find_action_mistakes("put", put) == []
    assert find_action_mistakes("put {item} in {holder}", put) == []


def test_where_a_name_leaves_its_parameters_out_the_expression_says_what_the_action_is() -> None:
    put = {"verification code": "put (.+) in (.+)", "parameters": {"item": ["cup"], "holder": ["box"]}}
    check = ActionCheck(read_script(changed("Available Actions", {"put": put})))
    assert check.allows("put cup in box")
    assert not check.allows("put cup box")
    assert not check.allows("put lid in box")


@pytest.mark.parametrize("code", CATASTROPHIC)
def test_the_time_limit_holds(code: str) -> None:
    """The standard library's `re` would be at it for longer than the sun shines."""
    with pytest.raises(TooSlowError):
        matches_fully(code, "a" * 1_900 + "!")


def test_an_expression_that_was_too_slow_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trajectory of a hundred turns costs one time limit an action, not a hundred."""
    script = read_script(
        changed(
            "Available Actions", {"slow {x}": {"verification code": "(a|aa)+b", "parameters": {"x": None}}}
        )
        | {"Goal": "g"}
    )
    script = script.model_copy(update={"actions": {"s": action("(a|aa)+b", **{"special format": "free"})}})
    asked: list[str] = []
    real = expressions.matches_fully

    def counted(code: str, text: str) -> bool:
        asked.append(text)
        return real(code, text)

    monkeypatch.setattr("evalharness.training.synthesis.actions.matches_fully", counted)
    check = ActionCheck(script)
    assert not any(check.allows("a" * 300 + str(i)) for i in range(100))
    assert len(asked) == 1


def test_long_texts_match_nothing() -> None:
    assert not matches_fully(".*", "a" * 10_000_000)
    assert not ActionCheck(read_script(SCRIPT)).allows("go to " * 1_000_000)


def test_an_expression_error_is_a_value_error() -> None:
    with pytest.raises(ExpressionError, match="not compile"):
        matches_fully("[", "x")


WORLD: Script = read_script(SCRIPT)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("go to workshop", True),
        ("  go to workshop\n", True),
        ("go to kitchen", False),
        ("go to workshop now", False),
        ("Go to workshop", False),
        ("examine oil can", True),
        ("examine ceiling", False),  # the expression takes it, the list does not
        ("take size 4 key from cabinet", True),
        ("take size 4 key from garden", False),
        ("take size 6 key from cabinet", False),
        ("put oil can on cabinet", False),
        ("", False),
        ("\x00", False),
    ],
)
def test_an_action_matches_with_its_parameters(text: str, allowed: bool) -> None:
    assert ActionCheck(WORLD).allows(text) is allowed


def test_unbounded_actions_are_read_by_their_expression_alone() -> None:
    nurse = read_script(PROMPTS.script.examples[1].script)
    assert ActionCheck(nurse).allows("answer: He is in room 12.")
    assert not ActionCheck(nurse).allows("answer He is in room 12.")


def test_own_texts_have_every_value_once() -> None:
    name, made = "put {a} on {b}", action(".+", {"a": ["cup", "jug", "pot"], "b": ["shelf", "floor"]})
    assert list_own_texts(name, made) == ["put cup on shelf", "put jug on floor", "put pot on shelf"]


# --- personas


def test_the_personas_of_the_package() -> None:
    ours = read_personas()
    assert (len(ours.personas), ours.broken, ours.repeated) == (200, (), 0)
    assert len({p.key for p in ours.personas}) == 200
    for line in find_own_file().read_text(encoding="utf-8").splitlines():
        assert list(json.loads(line)) == ["persona"]
    words = [set(re.findall(r"\w{5,}", p.text.lower())) for p in ours.personas]
    alike = [(a, b) for a in range(200) for b in range(a) if len(words[a] & words[b]) > 3]
    assert not alike


def test_personas_are_drawn_without_replacement_and_by_seed() -> None:
    ours = read_personas().personas
    drawn = draw(ours, 50, seed=3)
    assert len(set(drawn)) == 50
    assert draw(ours, 20, seed=3) == drawn[:20]
    assert draw(ours, 50, seed=4) != drawn
    assert sorted(p.key for p in draw(ours, 200, seed=3)) == sorted(p.key for p in ours)
    with pytest.raises(UserError, match="only 200 personas"):
        draw(ours, 201, seed=3)


def test_a_file_of_another_layout_is_named_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "personas.jsonl"
    lines = [
        '{"persona": "A baker."}',
        '{"input persona": "A miller.", "synthesized text": "..."}',
        "A sailor.",
        '{"persona": 7}',
        '{"persona": "A baker."}',
        '{"persona": "A \\u0000 \\u202e \\ud800 diver."}',
        '{"persona": "' + "x" * 6_000 + '"}',
        "[" * 100_000,
        "",
        '{"persona": "A cut off',
    ]
    path.write_text("\n".join(lines))
    found = read_personas(path)
    assert [p.text for p in found.personas] == ["A baker.", "A \x00 \u202e \\ud800 diver."]
    assert [line.number for line in found.broken] == [2, 3, 4, 7, 8, 10]
    assert found.repeated == 1
    said = found.complaints()
    assert "6 lines" in said[0]
    assert "'input persona'" in said[1]


@pytest.mark.parametrize("content", ["", "a\tb\n", '{"text": "x"}\n'])
def test_a_file_without_a_persona_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "personas.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match="persona"):
        read_personas(path)
    with pytest.raises(UserError, match="cannot read"):
        read_personas(tmp_path / "nothing")
