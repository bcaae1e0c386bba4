"""`evalharness refine grounded`: trajectories with errors from the five real simulators, and what keeps them honest."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest
from command_line import command
from hypothesis import given
from hypothesis import strategies as st
from refine_samples import erring_sample

from envs import specs
from envs.base import EnvSpec, Task, TextEnv
from evalharness.cli import main
from evalharness.errors import UserError
from evalharness.protocol import react
from evalharness.protocol.perturb import Voice
from evalharness.protocol.prompt import load_prompt
from evalharness.protocol.surface import ActionSurface
from evalharness.refine.draft import ErrorPlan
from evalharness.refine.grounded import Order, check, is_made, make
from evalharness.refine.hindsight import usable
from evalharness.refine.journal import Journal
from evalharness.refine.modes import in_mode
from evalharness.refine.overlap import EVALUATED, PUBLISHED, excluded
from evalharness.refine.sample import Sample, iter_samples, read_manifest, write_samples
from evalharness.refine.scene import Scene, Step
from evalharness.refine.slips import _misspelt
from evalharness.refine.thoughts import foretells
from evalharness.refine.worlds import World, world_of
from evalharness.suites import open as suites

SEED = 100
FAMILIES = ("alfworld", "babyai", "jericho", "pddl", "sciworld")


def some_tasks(spec: EnvSpec) -> Iterator[Task]:
    """A few tasks of the suite of `SEED`, without making all of it."""
    if spec.family == "sciworld":
        from envs.sciworld.generator import _of_kind
        from envs.sciworld.simulator import Simulator

        simulator = Simulator()
        try:
            for index, case in enumerate(islice(_of_kind(simulator, "find-non-living-thing", SEED), 3)):
                yield case.to_task(index)
        finally:
            simulator.close()
        return
    assert spec.generate is not None
    first = 10 if spec.family == "jericho" else 0
    yield from islice(spec.generate(SEED), first, first + 4)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a small frozen suite of each family."""
    folder = tmp_path_factory.mktemp("grounded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALHARNESS_HOME", str(folder))
        patch.delenv("EVALHARNESS_DATA", raising=False)
        for family in FAMILIES:
            spec = specs()[family]
            environment = spec.make(None)
            rows = [suites.Proven(task, suites.prove(environment, task)) for task in some_tasks(spec)]
            environment.close()
            suites.freeze(spec, SEED, rows)
        yield folder


def made(home: Path, name: str, *families: str, **options: Any) -> list[Sample]:
    order = Order(families=families, suite_seed=SEED, samples=options.pop("samples", 3), **options)
    path = home / f"{name}.jsonl"
    asyncio.run(make(order, dict(specs()), path, workers=1))
    broken: list[Any] = []
    samples = list(iter_samples(path, broken))
    assert not broken
    return samples


@pytest.fixture(scope="module")
def samples(home: Path) -> dict[str, list[Sample]]:
    """Three trajectories of each family."""
    return {family: made(home, family, family, per_task=2, seed=3) for family in FAMILIES}


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def task_of(sample: Sample) -> Task:
    spec = specs()[sample.world]
    rows = suites.read_frozen(spec, SEED)
    assert rows is not None
    (task,) = [row.task for row in rows if row.task.id == sample.metadata["task_id"]]
    assert task.content_hash == sample.task_hash
    return task


def replayed(sample: Sample, environment: TextEnv) -> list[tuple[str, dict[str, Any]]]:
    """(observation, info) of each action that the sample's replies hold, in a fresh episode."""
    environment.reset(options={"task": task_of(sample)})
    found = []
    for turn in sample.player_turns:
        parsed = react.parse(turn.content)
        assert parsed.action is not None
        assert not parsed.errors
        assert parsed.kept == turn.content
        observation, _, _, _, info = environment.step(parsed.action)
        found.append((observation, info))
    return found


def test_a_trajectory_is_what_the_world_says_and_succeeds(
    samples: dict[str, list[Sample]], family: str
) -> None:
    environment = specs()[family].make(None)
    world = world_of(family)
    try:
        assert len(samples[family]) == 3
        for sample in samples[family]:
            found = replayed(sample, environment)
            assert found[-1][1]["success"]
            assert len(found) <= 30
            said = [m.content for m in sample.messages if m.role == "user"][1:]
            assert said == [f"Observation: {observation}" for observation, _ in found[:-1]]
            before = 0.0
            for (observation, info), turn in zip(found, sample.player_turns, strict=True):
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
    samples: dict[str, list[Sample]], family: str
) -> None:
    for sample in samples[family]:
        turns = sample.player_turns
        assert any(turn.error for turn in turns)
        for before, turn in zip((None, *turns), turns, strict=False):
            assert turn.refine == (before is not None and bool(before.error) and not turn.error)
        lengths = [len(run) for run in "".join("e" if t.error else " " for t in turns).split()]
        assert max(lengths) <= 4


def test_the_prompt_is_the_one_of_a_run(samples: dict[str, list[Sample]], family: str) -> None:
    spec = specs()[family]
    environment = spec.make(None)
    try:
        for sample in samples[family]:
            task = task_of(sample)
            observation, _ = environment.reset(options={"task": task})
            surface = ActionSurface(spec.actions)
            prompt = load_prompt(spec).for_kind(task.kind)
            head = prompt.messages(surface, environment.goal, observation)
            assert [{"role": m.role, "content": m.content} for m in sample.messages[:2]] == head
    finally:
        environment.close()


def test_without_its_errors_a_trajectory_still_solves_the_task(
    samples: dict[str, list[Sample]], family: str
) -> None:
    environment = specs()[family].make(None)
    try:
        for sample in samples[family]:
            clean = in_mode(sample, "no_refine_data")
            assert clean is not None
            assert not any(turn.error or turn.refine for turn in clean.player_turns)
            found = replayed(clean, environment)
            assert found[-1][1]["success"]
            if not world_of(family).clock:
                said = [m.content for m in clean.messages if m.role == "user"][1:]
                assert said == [f"Observation: {observation}" for observation, _ in found[:-1]]
    finally:
        environment.close()


def test_no_thought_names_what_only_later_turns_bring(samples: dict[str, list[Sample]], family: str) -> None:
    """By another road than the maker's: numbered things of later observations are nowhere in an earlier thought."""
    import re

    for sample in samples[family]:
        seen = ""
        texts = [message.content.lower() for message in sample.messages]
        for index, message in enumerate(sample.messages):
            if message.role == "assistant":
                thought = react.parse(message.content).thought.lower()
                action = str(react.parse(message.content).action).lower()
                later = {
                    name
                    for text, other in zip(texts[index + 1 :], sample.messages[index + 1 :], strict=True)
                    if other.role == "user"
                    for name in re.findall(r"\b[a-z]+ \d+\b", text)
                }
                wrong = set(re.findall(r'"([^"]*)"', thought))
                for name in later:
                    if re.search(rf"\b{name}\b", thought) and not re.search(rf"\b{name}\b", seen + action):
                        assert name in " ".join(wrong), (thought, name)
            seen += f"\n{texts[index]}"


def test_the_same_order_makes_the_same_bytes(home: Path) -> None:
    texts = []
    for name, workers in (("w1", 1), ("w2", 2)):
        order = Order(families=("alfworld", "pddl"), suite_seed=SEED, samples=8)
        path = home / f"{name}.jsonl"
        manifest = asyncio.run(make(order, dict(specs()), path, workers=workers))
        texts.append((path.read_bytes(), manifest["made"], manifest["counts"]))
    assert texts[0] == texts[1]
    other = made(home, "other", "alfworld", "pddl", samples=8, seed=1)
    assert "".join(sample.line() for sample in other).encode() != texts[0][0]


def test_perturbed_trajectories_speak_the_other_words(home: Path) -> None:
    found = made(
        home, "perturbed", "alfworld", perturb="P2", samples=8, per_task=2, errors=ErrorPlan(runs=(3, 3))
    )
    voice = Voice(specs()["alfworld"], "P2")
    environment = specs()["alfworld"].make(None)
    refused_old_words = 0
    for sample in found:
        assert sample.metadata["perturbation"] == "P2"
        environment.reset(options={"task": task_of(sample)})
        info: dict[str, Any] = {}
        for turn in sample.player_turns:
            action = react.parse(turn.content).action
            assert action is not None
            info = environment.step(voice.to_world(action))[4]
            old = voice.canonical.parse(action)
            refused_old_words += bool(turn.error) and old is not None and old.name in voice.changed
        assert info["success"]
        assert [t.content for t in sample.player_turns if not t.error]
    environment.close()
    assert refused_old_words


def test_no_errors_on_request(home: Path) -> None:
    found = made(home, "clean", "pddl", errors=None)
    assert not any(turn.error or turn.refine for sample in found for turn in sample.player_turns)


def test_a_thing_in_an_unknown_place_is_looked_for(home: Path) -> None:
    """In the order of the room, each place once and none that was seen into; the first one seen is taken."""
    found = made(home, "looking", "alfworld", errors=None, samples=4, per_task=1)
    vain = 0
    for sample in found:
        thing = str(task_of(sample).payload["object"])
        answers = [m.content for m in sample.messages if m.role == "user"][1:]
        gone: list[str] = []
        for turn, answer in zip(sample.player_turns, answers, strict=False):
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


def test_one_wording_of_each_thought_where_one_is_asked_for(home: Path) -> None:
    def openings(wordings: int | None) -> set[str]:
        name = f"wordings-{wordings}"
        found = made(home, name, "alfworld", errors=None, samples=16, per_task=4, wordings=wordings)
        return {" ".join(sample.player_turns[0].content.split()[:3]) for sample in found}

    assert openings(1) == {"Thought: I look"}
    assert len(openings(None)) > 1


def test_tasks_of_some_kinds_alone(home: Path) -> None:
    found = made(home, "kinds", "pddl", errors=None, samples=12, per_task=1, kinds=("gripper", "blockworld"))
    assert {sample.metadata["kind"] for sample in found} == {"gripper", "blockworld"}
    with pytest.raises(UserError, match=r"has none of grippers, but .*gripper"):
        made(home, "no-kinds", "pddl", errors=None, kinds=("grippers",))


def test_runs_of_errors_are_as_many_as_asked_for(home: Path) -> None:
    found = made(home, "many", "alfworld", errors=ErrorPlan(runs=(2, 2)), samples=4)
    for sample in found:
        runs = "".join("e" if turn.error else " " for turn in sample.player_turns).split()
        assert len(runs) == 2


# --- never what is evaluated -----------------------------------------------------------------------------------------


def test_suite_seed_0_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match="never trained on"):
        check(Order(families=("pddl",), suite_seed=0, samples=1))
    path = tmp_path / "x.jsonl"
    assert main(["refine", "grounded", "--suite-seed", "0", "-n", "5", "-o", str(path)]) == 2
    assert "suite seed 0" in capsys.readouterr().err
    assert not path.exists()


def test_a_task_of_suite_seed_0_under_another_number_is_refused(clean_home: Path, family: str) -> None:
    spec = specs()[family]
    found = excluded(spec, world_of(family), None)
    for task in spec.load_tasks("open", None, 0)[:3]:
        disguised = replace(task, index=990, id=f"{family}/open/990", difficulty="hard")
        assert disguised.content_hash != task.content_hash
        assert found.why_not(disguised) == EVALUATED
    assert found.refused == {EVALUATED: 3}


def test_a_household_with_other_numbers_is_the_same_task(clean_home: Path) -> None:
    spec = specs()["alfworld"]
    found = excluded(spec, world_of("alfworld"), None)
    task = spec.load_tasks("open", None, 0)[0]
    text = json.dumps(dict(task.payload))
    thing = f"{task.payload['object']} 1"
    renamed = json.loads(text.replace(f'"{thing}"', f'"{task.payload["object"]} 9"'))
    assert renamed != dict(task.payload)
    assert found.why_not(replace(task, payload=renamed)) == EVALUATED


def test_nothing_is_taken_twice(clean_home: Path) -> None:
    spec = specs()["pddl"]
    found = excluded(spec, world_of("pddl"), None)
    assert spec.generate is not None
    task = next(iter(spec.generate(SEED)))
    assert found.why_not(task) is None
    assert found.why_not(replace(task, index=7)) == "taken already"


def test_a_published_suite_of_any_name_is_compared() -> None:
    task = Task("pddl/other/000", "pddl", "other", 0, "g", "easy", "k")
    spec = replace(specs()["pddl"], expected={"other": 1}, load_tasks=lambda suite, data, seed: [task])
    found = excluded(spec, World(), None)
    assert found.why_not(replace(task, id="pddl/open/001", suite="open", index=1)) == PUBLISHED
    assert found.compared[PUBLISHED]["tasks"] == 1


@pytest.mark.data
def test_a_published_task_is_refused(published_data: Path, family: str) -> None:
    spec = specs()[family]
    found = excluded(spec, world_of(family), published_data)
    task = spec.load_tasks("agentboard", published_data, 0)[1]
    assert found.why_not(replace(task, suite="open", id=f"{family}/open/001")) == PUBLISHED
    assert found.compared[PUBLISHED]["tasks"] == spec.expected["agentboard"]


def test_the_manifest_says_what_was_refused_and_compared(home: Path) -> None:
    spec = specs()["jericho"]
    rows = suites.read_frozen(spec, SEED)
    assert rows is not None
    environment = spec.make(None)
    written = spec.load_tasks("open", None, 0)[0]
    first = suites.Proven(written, suites.prove(environment, written))
    environment.close()
    suites.freeze(spec, SEED + 50, [first, *rows])
    path = home / "jericho-overlap.jsonl"
    order = Order(families=("jericho",), suite_seed=SEED + 50, samples=2, per_task=1)
    manifest = asyncio.run(make(order, dict(specs()), path, workers=1))
    row = manifest["made"]["families"]["jericho"]
    assert row["overlap_refused"] == {EVALUATED: 1}
    assert row["compared_with"][EVALUATED] == {"tasks": 20}
    assert row["suite_seeds"] == [SEED + 50]
    assert written.content_hash not in path.read_text()


# --- a kill, a broken journal ----------------------------------------------------------------------------------------


async def test_after_a_kill_the_same_command_makes_the_same_file(home: Path, tmp_path: Path) -> None:
    import os

    def arguments(path: Path) -> list[str]:
        return command(
            "refine", "grounded", "--tasks", "alfworld,pddl", "--suite-seed", SEED, "-n", 12, "--per-task", 2,
            "-o", path, "--workers", 1,
        )  # fmt: skip

    environment = {**os.environ, "EVALHARNESS_HOME": str(home)}
    killed, whole = tmp_path / "killed.jsonl", tmp_path / "whole.jsonl"
    journal = tmp_path / ".killed.jsonl.journal"
    first = await asyncio.create_subprocess_exec(
        *arguments(killed),
        env=environment,
        stderr=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
    )
    while first.returncode is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        await asyncio.sleep(0.02)
    assert first.returncode is None
    first.kill()
    await first.wait()
    assert not killed.exists()
    assert journal.exists()
    for path in (killed, whole):
        again = await asyncio.create_subprocess_exec(*arguments(path), env=environment)
        assert await again.wait() == 0
    assert killed.read_bytes() == whole.read_bytes()
    assert not journal.exists()
    manifests = [read_manifest(path) for path in (killed, whole)]
    assert manifests[0] is not None
    assert manifests[1] is not None
    assert manifests[0]["made"] == manifests[1]["made"]


def test_a_file_made_otherwise_is_not_written_over(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / "kept.jsonl"
    words = ["refine", "grounded", "--tasks", "pddl", "--suite-seed", str(SEED), "-o", str(path)]
    assert main([*words, "-n", "1"]) == 0
    before = path.read_bytes()
    assert main([*words, "-n", "1"]) == 0
    assert "made already" in capsys.readouterr().out
    assert main([*words, "-n", "2"]) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_bytes() == before


@given(st.integers(0, 400))
def test_a_journal_torn_anywhere_keeps_its_whole_lines(cut: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        journal = Journal(path, {"order": 1})
        for number in range(5):
            journal.add(str(number), {"text": "é\u202e\x00" * number})
        journal.close()
        raw = path.read_bytes()
        cut = min(cut, len(raw))
        path.write_bytes(raw[:cut])
        whole = raw[:cut].count(b"\n")
        again = Journal(path, {"order": 1})
        assert list(again.done) == [str(number) for number in range(max(whole - 1, 0))]
        again.add("last", 1)
        again.close()
        assert list(Journal(path, {"order": 1}).done) == [*map(str, range(max(whole - 1, 0))), "last"]
        other = Journal(path, {"order": 2})
        assert other.done == {}
        other.close()


def test_a_journal_has_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, {"order": 1})
    journal.add("a", 1)
    with pytest.raises(UserError, match="another evalharness"):
        Journal(path, {"order": 2})
    journal.add("b", 2)
    journal.close()
    again = Journal(path, {"order": 1})
    assert again.done == {"a": 1, "b": 2}
    again.remove()
    assert not path.exists()


def test_a_full_disk_is_said_and_loses_no_whole_line(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    path = tmp_path / "journal"
    journal = Journal(path, {"order": 1})
    journal.add("a", 1)
    file = journal._file
    journal._file = full.open("ab")
    with pytest.raises(UserError, match=r"No space left.*continues"):
        journal.add("b", 2)
    journal.close()
    file.close()
    assert Journal(path, {"order": 1}).done == {"a": 1}


def test_a_file_that_was_changed_is_not_taken_for_made(tmp_path: Path) -> None:
    order = Order(("pddl",), 100, 1)
    path = tmp_path / "data.jsonl"
    write_samples(path, [erring_sample()], {"order": asdict(order)})
    assert is_made(order, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="changed after it was made"):
        is_made(order, path)


# --- thoughts --------------------------------------------------------------------------------------------------------


def scene(at: int) -> Scene:
    spec = specs()["alfworld"]
    steps = (
        Step("go to shelf 1", "On the shelf 1, you see a mug 2.", 0.0, True),
        Step("take mug 2 from shelf 1", "You pick up the mug 2.", 0.5, True),
        Step("go to desk 1", "On the desk 1, you see a pen 3.", 0.5, True),
        Step("put mug 2 in/on desk 1", "You put it.", 1.0, True),
    )
    task = Task("alfworld/open/000", "alfworld", "open", 0, "put a mug in desk.", "easy", "put",
                payload={"object": "mug", "target": "desk"})  # fmt: skip
    return Scene(
        task, task.goal, "You see a shelf 1, and a desk 1.", "", steps, at, ActionSurface(spec.actions)
    )


def test_a_thought_that_names_the_future_is_noticed() -> None:
    own = "go to shelf 1"
    assert foretells("The mug 2 is there.", scene(0), own)
    assert foretells("Later I see pen 3.", scene(1), "take mug 2 from shelf 1")
    assert not foretells("A mug may be on shelf 1 and goes to desk 1.", scene(0), own)
    assert not foretells("I take mug 2.", scene(1), "take mug 2 from shelf 1")
    assert not foretells("Only mug 21 would do.", scene(0), own)


def test_a_models_thought_is_taken_only_as_it_should_be() -> None:
    from evalharness.refine.draft import Turn

    turn = Turn(scene(0), "go to shelf 1", True, 0.0)
    assert usable("Thought: A mug may be on the shelf.", turn) == "A mug may be on the shelf."
    assert usable("A mug may be\non the shelf.\nAction: go to desk 1", turn) == "A mug may be on the shelf."
    for bad in (
        "",
        "mug 2 is on shelf 1",
        "word " * 80,
        "I \u202egnorw",
        "One. Action: go to desk 1. Action: look",
    ):
        assert usable(bad, turn) is None, bad


@given(st.text("abc x-1", min_size=1, max_size=12), st.integers(0, 1000))
def test_a_misspelt_name_is_nearly_the_name(name: str, seed: int) -> None:
    if sum(letter.isalpha() for letter in name[1:]) < 1:
        return
    wrong = _misspelt(name, Random(seed))
    assert abs(len(wrong) - len(name)) <= 1
    difference = Counter(wrong)
    difference.subtract(Counter(name))
    assert sum(map(abs, difference.values())) <= 1
