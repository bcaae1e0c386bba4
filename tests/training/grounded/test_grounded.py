"""`evalharness refine grounded`: trajectories with errors from the five real simulators."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from small_suites import freeze, home_at

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.envs.base import EnvSpec, Task, TextEnv
from evalharness.envs.surface import ActionSurface
from evalharness.protocol import react
from evalharness.protocol.drawn import find_surface, words_of
from evalharness.protocol.perturb import make_surface
from evalharness.protocol.prompt import load_prompt
from evalharness.suites import open as suites
from evalharness.suites.excluded import EVALUATED, task_forms
from evalharness.training.datasets.conversation import (
    Conversation,
    MarkedMessage,
    read_data,
)
from evalharness.training.datasets.modes import apply_mode
from evalharness.training.grounded.draft import ErrorPlan
from evalharness.training.grounded.grounded import DataRequest, make
from evalharness.training.teachers.scene import mentions
from evalharness.training.teachers.teaching import load_teaching

pytestmark = pytest.mark.slow(340)

SEED = 100
FAMILIES = ("alfworld", "babyai", "jericho", "pddl", "sciworld")


def some_tasks(spec: EnvSpec) -> Iterator[Task]:
    """A few tasks of the suite of `SEED`, without making all of it."""
    if spec.family == "sciworld":
        from evalharness.envs.sciworld.open.generator import generate_kind
        from evalharness.envs.sciworld.simulator import Simulator

        simulator = Simulator()
        try:
            yield from islice(generate_kind(simulator, "find-non-living-thing", SEED, 0), 3)
        finally:
            simulator.close()
        return
    assert spec.suites.generate is not None
    first = {"jericho": 10, "babyai": 12}.get(
        spec.family, 0
    )  # BabyAI's first levels are not all solved by its player
    yield from islice(spec.suites.generate(SEED), first, first + 4)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a small frozen suite of each family."""
    with home_at(tmp_path_factory.mktemp("grounded")) as folder:
        for family in FAMILIES:
            freeze(family, SEED, some_tasks(specs()[family]))
        yield folder


def made(home: Path, name: str, *families: str, **options: Any) -> list[Conversation]:
    order = DataRequest(families=families, suite_seed=SEED, samples=options.pop("samples", 3), **options)
    path = home / f"{name}.jsonl"
    asyncio.run(make(order, dict(specs()), path, workers=1))
    broken: list[Any] = []
    conversations = list(read_data(path, broken))
    assert not broken
    return conversations


@pytest.fixture(scope="module")
def conversations(home: Path) -> dict[str, list[Conversation]]:
    """Three trajectories of each family."""
    return {family: made(home, family, family, per_task=2, seed=3) for family in FAMILIES}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def task_of(conversation: Conversation) -> Task:
    spec = specs()[conversation.world]
    rows = suites.read_frozen(spec, conversation.metadata["suite_seed"])
    assert rows is not None
    (task,) = [row.task for row in rows if row.task.id == conversation.metadata["task_id"]]
    assert task.content_hash == conversation.task_hash
    return task


def replayed(conversation: Conversation, environment: TextEnv) -> list[tuple[str, dict[str, Any]]]:
    """(observation, info) of each action that the conversation's replies hold, in a fresh episode."""
    environment.reset(options={"task": task_of(conversation)})
    found = []
    for turn in conversation.player_turns:
        parsed = react.parse(turn.content)
        assert parsed.action is not None
        assert not parsed.errors
        assert parsed.kept == turn.content
        observation, _, _, _, info = environment.step(parsed.action)
        found.append((observation, info))
    return found


def test_a_trajectory_is_what_the_world_says_and_succeeds(
    conversations: dict[str, list[Conversation]], family: str
) -> None:
    environment = specs()[family].make(None)
    world = load_teaching(specs()[family])
    try:
        assert len(conversations[family]) == 3
        for conversation in conversations[family]:
            found = replayed(conversation, environment)
            assert found[-1][1]["success"]
            assert len(found) <= 30
            said = [m.content for m in conversation.messages if m.role == "user"][1:]
            assert said == [f"Observation: {observation}" for observation, _ in found[:-1]]
            before = 0.0
            for (observation, info), turn in zip(found, conversation.player_turns, strict=True):
                if turn.error:
                    assert info["progress"] == before
                    assert turn.loss is False
                    assert world.refused(info["valid"], observation) == (turn.error != ("logic",))
                else:
                    assert turn.loss is True
                before = info["progress"]
    finally:
        environment.close()


def test_every_trajectory_errs_and_the_first_right_turn_is_the_correction(
    conversations: dict[str, list[Conversation]], family: str
) -> None:
    for conversation in conversations[family]:
        turns = conversation.player_turns
        assert any(turn.error for turn in turns)
        for before, turn in zip((None, *turns), turns, strict=False):
            assert turn.refine == (before is not None and bool(before.error) and not turn.error)
        lengths = [len(run) for run in "".join("e" if t.error else " " for t in turns).split()]
        assert max(lengths) <= 4


def test_the_prompt_is_the_one_of_a_run(conversations: dict[str, list[Conversation]], family: str) -> None:
    spec = specs()[family]
    environment = spec.make(None)
    try:
        for conversation in conversations[family]:
            task = task_of(conversation)
            observation, _ = environment.reset(options={"task": task})
            surface = ActionSurface(spec.actions.templates)
            prompt = load_prompt(spec).for_kind(task.kind)
            head = prompt.messages(surface, environment.goal, observation)
            assert [{"role": m.role, "content": m.content} for m in conversation.messages[:2]] == head
    finally:
        environment.close()


def test_what_is_taken_back_was_done_and_no_correction_is_refused(home: Path, family: str) -> None:
    """A step away that the simulator blocks leaves nothing to take back, and its taking back would be the next
    error: the thought before it ("That led me away from the goal. I go back.") would be false."""
    errors = ErrorPlan(runs=(2, 3), lengths=(1.0,), kinds=("logic",))
    tasks, per_task = (3, 3) if family == "sciworld" else (2, 6)  # a step away is rare in ScienceWorld
    found = made(
        home, f"{family}-detours", family, samples=tasks * per_task, per_task=per_task, seed=5, errors=errors
    )
    environment, world, seen = specs()[family].make(None), load_teaching(specs()[family]), 0
    try:
        for conversation in found:
            environment.reset(options={"task": task_of(conversation)})
            places = [at for at, message in enumerate(conversation.messages) if message.role == "assistant"]
            cut = conversation.metadata["without_errors"]
            back = {
                n for n, at in enumerate(places) if conversation.messages[at].refine and cut[str(at)] is None
            }
            seen += len(back)
            for number, turn in enumerate(conversation.player_turns):
                involved = bool({number, number + 1} & back)
                before = environment.valid_actions() if involved else []
                action = react.parse(turn.content).action
                observation, _, _, _, info = environment.step(str(action))
                if involved:  # where the environment does not say it, by what can be done now
                    idle = info.get("no_effect", environment.valid_actions() == before)
                    assert not idle, (number in back, action, observation)
                if turn.refine:
                    assert not world.refused(info["valid"], observation), (action, observation)
    finally:
        environment.close()
    assert seen, "some errors are taken back"


def test_without_its_errors_a_trajectory_still_solves_the_task(
    conversations: dict[str, list[Conversation]], family: str
) -> None:
    environment = specs()[family].make(None)
    try:
        for conversation in conversations[family]:
            clean = apply_mode(conversation, "no_refine_data")
            assert clean is not None
            assert not any(turn.error or turn.refine for turn in clean.player_turns)
            found = replayed(clean, environment)
            assert found[-1][1]["success"]
            if not load_teaching(specs()[family]).clock:
                said = [m.content for m in clean.messages if m.role == "user"][1:]
                assert said == [f"Observation: {observation}" for observation, _ in found[:-1]]
    finally:
        environment.close()


def foretold(messages: Sequence[MarkedMessage], surface: ActionSurface) -> list[tuple[int, str]]:
    """(message, name) of each thought that names what only a later message brings: a numbered thing that the
    environment shows, or what an action is about. What a thought quotes is a wrong action."""
    replies = {at: react.parse(m.content) for at, m in enumerate(messages) if m.role == "assistant"}
    brings: dict[int, set[str]] = {}
    for at, message in enumerate(messages):
        if at not in replies:
            brings[at] = set(re.findall(r"\b[a-z]+ \d+\b", message.content.lower()))
        elif action := surface.parse(str(replies[at].action)):
            brings[at] = {name.lower() for name in action.arguments.values() if len(name) > 1}
    found = []
    for at, reply in replies.items():
        later = set().union(*(names for other, names in brings.items() if other > at))
        known = "\n".join([*(message.content for message in messages[:at]), str(reply.action)])
        said = re.sub(r'"[^"]*"', "", reply.thought)
        found += [(at, name) for name in later if mentions(said, name) and not mentions(known, name)]
    return found


def test_no_thought_names_what_only_later_turns_bring(
    conversations: dict[str, list[Conversation]], family: str
) -> None:
    """By another road than the maker's: from the conversation alone. One that foretells is put in, and is found."""
    surface = ActionSurface(specs()[family].actions.templates)
    for conversation in conversations[family]:
        assert foretold(conversation.messages, surface) == []
        *before, answer, last = conversation.messages
        first = replace(before[2], content=f"Thought: I need lantern 99.\n{before[2].content}")
        brought = replace(answer, content=f"{answer.content} You see a lantern 99.")
        assert foretold([*before[:2], first, *before[3:], brought, last], surface) == [(2, "lantern 99")]


def test_the_same_order_makes_the_same_bytes(home: Path) -> None:
    texts = []
    for name, workers in (("w1", 1), ("w2", 2)):
        order = DataRequest(families=("alfworld", "pddl"), suite_seed=SEED, samples=8)
        path = home / f"{name}.jsonl"
        manifest = asyncio.run(make(order, dict(specs()), path, workers=workers))
        texts.append((path.read_bytes(), manifest["made"], manifest["counts"]))
    assert texts[0] == texts[1]
    other = made(home, "other", "alfworld", "pddl", samples=8, seed=1)
    assert "".join(conversation.to_line() for conversation in other).encode() != texts[0][0]


def test_perturbed_trajectories_speak_the_other_words(home: Path) -> None:
    found = made(
        home, "perturbed", "alfworld", perturb="P2", samples=8, per_task=2, errors=ErrorPlan(runs=(3, 3))
    )
    surface = make_surface(specs()["alfworld"], "P2")
    environment = specs()["alfworld"].make(None)
    refused_old_words = 0
    for conversation in found:
        assert conversation.metadata["perturbation"] == "P2"
        environment.reset(options={"task": task_of(conversation)})
        info: dict[str, Any] = {}
        for turn in conversation.player_turns:
            action = react.parse(turn.content).action
            assert action is not None
            info = environment.step(surface.to_world(action))[4]
            old = surface.canonical.parse(action)
            refused_old_words += bool(turn.error) and old is not None and old.name in surface.changed
        assert info["success"]
        assert [t.content for t in conversation.player_turns if not t.error]
    environment.close()
    assert refused_old_words


@pytest.mark.parametrize("family", [f for f in FAMILIES if f != "sciworld"])
def test_drawn_words_make_trajectories_that_succeed(home: Path, family: str) -> None:
    """Each trajectory in its own words, and the same again."""
    options: dict[str, Any] = {"perturb": "random", "per_task": 2, "samples": 4, "seed": 9}
    found = made(home, f"{family}-varied", family, **options)
    again = made(home, f"{family}-varied-again", family, **options)
    assert [conversation.to_line() for conversation in found] == [
        conversation.to_line() for conversation in again
    ]
    spec = specs()[family]
    environment = spec.make(None)
    try:
        for conversation in found:
            surface = find_surface(spec, conversation.metadata["perturbation"])
            assert conversation.metadata["words"] == words_of(surface)
            name = conversation.metadata["task_id"]
            (task,) = [task for task in suites.load_open(spec, SEED, print) if task.id == name]
            assert set(task_forms(spec, task)) == set(conversation.metadata["task_forms"])
            environment.reset(options={"task": task})
            said = [str(react.parse(turn.content).action) for turn in conversation.player_turns]
            ends = [environment.step(surface.to_world(action)) for action in said]
            assert ends[-1][4]["success"]
    finally:
        environment.close()
    assert len({conversation.metadata["perturbation"] for conversation in found}) == len(found)


def test_no_errors_on_request(home: Path) -> None:
    found = made(home, "clean", "pddl", errors=None)
    assert not any(turn.error or turn.refine for conversation in found for turn in conversation.player_turns)


def test_a_thing_in_an_unknown_place_is_looked_for(home: Path) -> None:
    """In the order of the room, each place once and none that was seen into; the first one seen is taken."""
    found = made(home, "looking", "alfworld", errors=None, samples=4, per_task=1)
    vain = 0
    for conversation in found:
        thing = str(task_of(conversation).payload["object"])
        answers = [m.content for m in conversation.messages if m.role == "user"][1:]
        gone: list[str] = []
        for turn, answer in zip(conversation.player_turns, answers, strict=False):
            action = react.parse(turn.content).action or ""
            if action.startswith("take "):
                break
            assert action.startswith(("go to ", "open "))
            assert action not in gone, "a place is looked at once"
            gone.append(action)
            shows = re.search(rf"\b{thing} \d", answer)
            vain += not shows and "is closed" not in answer
        assert shows
    assert vain >= 2, "some places were looked at in vain"


def test_without_a_search_the_plan_goes_straight_there(home: Path) -> None:
    straight = made(home, "straight", "alfworld", errors=None, search=False, samples=4, per_task=1)
    looking = made(home, "not-straight", "alfworld", errors=None, samples=4, per_task=1)
    assert sum(len(s.player_turns) for s in straight) < sum(len(s.player_turns) for s in looking)


def test_tasks_of_some_kinds_alone(home: Path) -> None:
    found = made(home, "kinds", "pddl", errors=None, samples=12, per_task=1, kinds=("gripper", "blockworld"))
    assert {conversation.metadata["kind"] for conversation in found} == {"gripper", "blockworld"}
    with pytest.raises(UserError, match=r"no grippers; its kinds: gripper"):
        made(home, "no-kinds", "pddl", errors=None, kinds=("grippers",))


@pytest.mark.parametrize("family", ["alfworld", "babyai", "jericho", "pddl"])
def test_equal_visible_states_have_equal_decisions(home: Path, family: str) -> None:
    """The decision follows from the opening and the last exchange; after an error, from the exchange before it too."""
    found = made(home, f"{family}-alike", family, samples=12, per_task=4)
    actions: dict[tuple[str, ...], Counter[str | None]] = {}
    for conversation in found:
        messages = conversation.messages
        first = next(at for at, message in enumerate(messages) if message.role == "assistant")
        opening = [message.content for message in messages[:first]]
        for at in range(first, len(messages), 2):
            if messages[at].trained:
                since = at - 2
                while since > first and not messages[since].trained:
                    since -= 2
                last = [message.content for message in messages[max(first, since) : at]]
                action = react.parse(messages[at].content).action
                actions.setdefault((*opening, *last), Counter())[action] += 1
    assert sum(each.total() > 1 for each in actions.values()) >= 10
    assert all(len(each) == 1 for each in actions.values())


def test_runs_of_errors_are_as_many_as_asked_for(home: Path) -> None:
    found = made(home, "many", "alfworld", errors=ErrorPlan(runs=(2, 2)), samples=4)
    for conversation in found:
        runs = "".join("e" if turn.error else " " for turn in conversation.player_turns).split()
        assert len(runs) == 2


def test_the_manifest_says_what_was_refused_and_compared(home: Path) -> None:
    spec = specs()["jericho"]
    rows = suites.read_frozen(spec, SEED)
    assert rows is not None
    environment = spec.make(None)
    written = spec.suites.load_tasks("open", None, 0)[0]
    first = suites.Proven(written, suites.prove(environment, written))
    environment.close()
    suites.freeze(spec, SEED + 50, [first, *rows])
    path = home / "jericho-overlap.jsonl"
    order = DataRequest(families=("jericho",), suite_seed=SEED + 50, samples=2, per_task=1)
    manifest = asyncio.run(make(order, dict(specs()), path, workers=1))
    row = manifest["made"]["families"]["jericho"]
    assert row["overlap_refused"] == {EVALUATED: 1}
    assert row["compared_with"][EVALUATED] == {"tasks": 20}
    assert row["suite_seeds"] == [SEED + 50]
    assert written.content_hash not in path.read_text()


def test_a_file_made_otherwise_is_not_written_over(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / "kept.jsonl"
    words = ["refine", "grounded", "--tasks", "pddl", "--suite-seed", str(SEED), "-o", str(path)]
    assert main([*words, "-n", "1"]) == 0
    before = path.read_bytes()
    assert main([*words, "-n", "1"]) == 0
    assert "already made" in capsys.readouterr().out
    assert main([*words, "-n", "2"]) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_bytes() == before
