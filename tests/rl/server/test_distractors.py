"""Objects and rooms that a goal does not need: in training tasks alone, and solvable all the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from oracle_plans import oracle_plan

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.envs.alfworld.open.households import household_of
from evalharness.envs.babyai.world import World
from evalharness.envs.base import EnvSpec, Task, distractor_rooms
from evalharness.envs.jericho.open.distractors import quest_with
from evalharness.envs.pddl.syntax import parse_domain, parse_problem
from evalharness.rl.server.tasks import Wanted, load_table
from evalharness.suites.distractors import LEFT_OUT, check_distractors, with_distractors
from evalharness.suites.excluded import EVALUATED, excluded, task_forms
from evalharness.suites.open import prove
from evalharness.suites.selection import family_tasks

ABLE = ("alfworld", "babyai", "jericho", "pddl")
COUNTS = (1, 5, 12)

pytestmark = pytest.mark.slow(30)


def some(family: str) -> list[Task]:
    """A few tasks of different kinds: of seed 0 where its tasks are made from the same generator."""
    spec = specs()[family]
    if family == "jericho":
        assert spec.suites.generate is not None
        return list(islice(spec.suites.generate(3), 0, 20, 6))
    tasks = spec.suites.load_tasks("open", None, 0)
    if family == "babyai":  # quick for the oracle, of one room and of several
        kinds = ("GoToObjS6", "GoToObjMazeS7", "Unlock", "PickupLoc", "OpenDoorLoc", "KeyCorridorS6R3")
        return [next(task for task in tasks if task.kind == kind) for kind in kinds]
    return list({task.kind: task for task in tasks}.values())


def distracted(task: Task, count: int) -> Task:
    distract = specs()[task.family].suites.distract
    assert distract is not None
    made = distract(task, count)
    assert made is not None
    return made


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("family", ABLE)
def test_the_oracle_solves_it_and_the_goal_is_the_same(family: str, count: int) -> None:
    """In the real simulator, within the turns of an open task."""
    environment = specs()[family].make(None)
    try:
        for task in some(family)[:: 1 if count == COUNTS[1] else 2]:
            made = distracted(task, count)
            assert (made.id, made.goal, made.subgoals, made.kind) == (
                task.id,
                task.goal,
                task.subgoals,
                task.kind,
            )
            assert made.content_hash != task.content_hash
            assert made == distracted(task, count)
            assert prove(environment, made).plan_turns <= 30
            assert environment.goal == task.goal
    finally:
        environment.close()


@pytest.mark.parametrize("family", [family for family in ABLE if family != "babyai"])
def test_what_solves_the_task_without_them_solves_it_with_them(family: str) -> None:
    """So nothing is in the way. (In BabyAI a plan names things by numbers, which change.)"""
    environment = specs()[family].make(None)
    try:
        for task in some(family):
            environment.reset(options={"task": task})
            plan = oracle_plan(environment, task)
            made = distracted(task, 6)
            environment.reset(options={"task": made})
            ends = [environment.step(action) for action in plan]
            assert [terminated for _, _, terminated, *_ in ends].index(True) == len(plan) - 1
            assert ends[-1][4]["success"]
    finally:
        environment.close()


def test_a_household_gets_things_and_places_of_other_kinds() -> None:
    for task in some("alfworld"):
        homes = [household_of(each) for each in (task, distracted(task, 9))]
        plain, more = ({t: p for p, things in home.contents.items() for t in things} for home in homes)
        assert {**more, **plain} == more
        assert len(more) == len(plain) + 9
        assert not any(thing.startswith(task.payload["object"] + " ") for thing in more.keys() - plain.keys())
        added = set(homes[1].places) - set(homes[0].places)
        assert len(added) == distractor_rooms(9) == 3
        assert not any(
            place.startswith((task.payload["target"] + " ", "microwave", "fridge", "sinkbasin"))
            for place in added
        )


def test_a_problem_gets_objects_and_gripper_rooms() -> None:
    for task in some("pddl"):
        domain = parse_domain(task.payload["domain"])
        plain, more = (parse_problem(each.payload["problem"], domain) for each in (task, distracted(task, 6)))
        assert plain.initial < more.initial
        assert plain.goal == more.goal or sorted(plain.goal) == sorted(more.goal)
        added = more.objects.keys() - plain.objects.keys()
        rooms = {name for name in added if ("room", name) in more.initial}
        taps = {name for name in added if name.startswith("dispenser")}
        assert len(added - rooms - taps) == 6
        assert len(rooms) == (distractor_rooms(6) if task.kind == "gripper" else 0)
        assert not added & {name for atom in more.goal for name in atom[1:]}


def test_a_quest_gets_dead_ends_and_things_that_the_altar_does_not_take() -> None:
    environment = specs()["jericho"].make(None)
    tasks = some("jericho")
    for task in tasks:
        seed, number = task.payload["quest"]
        plain, more = quest_with(seed, number, 0), quest_with(seed, number, 5)
        assert (plain.goal, plain.plan) == (more.goal, more.plan)
        dead_ends = more.rooms[len(plain.rooms) :]
        assert 1 <= len(dead_ends) <= distractor_rooms(5)
        names = [more.words[what]["name"] for what in more.items.keys() - plain.items.keys()]
        assert len(set(names)) == 5
        assert not {word for name in names for word in name.split()} & set(
            more.words["treasure"]["name"].split()
        )
    here = next(
        (task, item, quest)
        for task in tasks
        for quest in [quest_with(*task.payload["quest"], 12)]
        for item in quest.items.values()
        if item.what.startswith("other") and item.room == 0
    )
    task, item, quest = here
    environment.reset(options={"task": distracted(task, 12)})
    name = quest.words[item.what]["name"]
    assert "Taken" in environment.step(f"take {name}")[0]
    answer = environment.step(f"put {name} on {quest.words['altar']['name']}")
    assert "not what belongs there" in answer[0]
    assert not answer[2]
    environment.close()


@pytest.mark.parametrize("count", [3, 9])
def test_a_level_gets_things_that_the_mission_does_not_describe_and_rooms_one_can_enter(count: int) -> None:
    entered = 0
    for task in some("babyai"):
        level, seed = task.payload["level"], task.payload["seed"]
        plain, more = (World(level, seed, task.payload.get("parameters"), n) for n in (0, count))
        things, others = (
            [cell for cell in world.simulator.grid.grid if cell is not None and cell.type != "wall"]
            for world in (plain, more)
        )
        doors = sum(thing.type == "door" for thing in others) - sum(thing.type == "door" for thing in things)
        assert len(others) - doors == len(things) + count
        assert doors in (0, distractor_rooms(count))
        for ours, theirs in zip(plain._clauses, more._clauses, strict=True):
            if hasattr(ours, "desc"):
                before = len(ours.desc.find_matching_objs(plain.simulator)[0])
                assert len(theirs.desc.find_matching_objs(more.simulator)[0]) == before
        if doors:
            entered += _enter_the_last_room(more)
    assert entered


def _enter_the_last_room(world: World) -> int:
    """From before its door: open it, and go in."""
    simulator = world.simulator
    last = max((row for row in simulator.room_grid), key=len)[-1]
    x, y = last.doors[2].cur_pos
    simulator.agent_pos, simulator.agent_dir = (x - 1, y), 0
    for move in (simulator.actions.toggle, simulator.actions.forward, simulator.actions.forward):
        simulator.step(move)
    assert tuple(simulator.agent_pos) == (x + 1, y)
    assert simulator.room_from_pos(*simulator.agent_pos) is last
    return 1


# --- in training -------------------------------------------------------------------------------------------------


def short(family: str, tasks: Sequence[Task] | None = None) -> EnvSpec:
    """A family whose suites of other seeds than 0 are a few tasks of its generator's."""
    spec = specs()[family]
    assert spec.suites.generate is not None
    generate, few = spec.suites.generate, 4
    suites = replace(
        spec.suites,
        generate=lambda seed: list(tasks) if tasks else islice(generate(seed), few),
        expected={**spec.suites.expected, "open": len(tasks) if tasks else few},
    )
    return replace(spec, suites=suites)


def test_train_has_them_and_validation_and_evaluations_have_not(clean_home: Path) -> None:
    spec, notes = short("alfworld"), list[str]()
    wanted = Wanted([spec], [1], [1001], distractors=3)
    table = load_table(wanted, None, notes.append)
    assert [served.task.payload.get("distractors", 0) for served in table.split("train")] == [3] * 4
    assert not any("distractors" in served.task.payload for served in table.split("validation"))
    assert sum("adding 3 distractors" in note for note in notes) == 1
    plain = {task.id: task for task in family_tasks(spec, "open", None, 1)}
    evaluated = {task.content_hash for task in specs()["alfworld"].suites.load_tasks("open", None, 0)}
    for served in table.split("train"):
        base = plain[served.task.id]
        assert "distractors" not in base.payload
        assert served.task.content_hash not in {base.content_hash, *evaluated}
        # Whoever keeps away from the suite keeps away from this, too.
        assert set(task_forms(spec, base)) <= set(task_forms(spec, served.task))
    again = load_table(wanted, None, notes.append)
    assert again.split("train") == table.split("train")
    assert sum("adding 3 distractors" in note for note in notes) == 1


def test_a_damaged_file_of_them_is_made_again(clean_home: Path) -> None:
    spec, notes = short("alfworld"), list[str]()
    tasks = family_tasks(spec, "open", None, 1)
    made = with_distractors(spec, 1, tasks, 2, notes.append)
    (file,) = clean_home.rglob("open-1-distractors-2/alfworld.jsonl")
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2])
    assert with_distractors(spec, 1, tasks, 2, notes.append) == made
    assert len(notes) == 2
    assert file.read_text() == whole
    assert with_distractors(spec, 1, tasks, 0, notes.append) == tasks


def test_with_distractors_a_task_of_an_evaluation_stays_one(clean_home: Path) -> None:
    """Seed 0's tasks under another seed's name are recognised by what they were made of."""
    spec = short("alfworld", specs()["alfworld"].suites.load_tasks("open", None, 0)[:4])
    tasks = with_distractors(spec, 1, family_tasks(spec, "open", None, 1), 2, lambda _: None)
    barred = excluded(spec, None)
    assert len(tasks) == 4
    assert {barred.why_not(task) for task in tasks} == {EVALUATED}
    with pytest.raises(UserError, match="no task is left for train"):
        load_table(Wanted([spec], [1], [], distractors=2), None, lambda _: None)


def test_a_task_that_is_not_proven_with_them_is_left_out_and_counted(clean_home: Path) -> None:
    """What a generator adds is not believed: here it takes the goal's things away."""
    whole = short("alfworld")

    def spoil(task: Task, count: int) -> Task | None:
        if task.index == 0:
            return None
        emptied = {**task.payload["household"], "contents": {}}
        return replace(task, payload={**task.payload, "household": emptied}) if task.index == 1 else task

    spec = replace(whole, suites=replace(whole.suites, distract=spoil))
    notes: list[str] = []
    table = load_table(Wanted([spec], [1], [], distractors=1), None, notes.append)
    assert [served.task.index for served in table.split("train")] == [2, 3]
    assert f"2 left out: {LEFT_OUT}" in notes[-1]


def test_families_with_fixed_worlds_refuse_them_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        UserError, match=r"of HotpotQA, ScienceWorld are fixed.*alfworld, babyai, jericho, pddl"
    ):
        check_distractors([specs()[family] for family in ("hotpotqa", "pddl", "sciworld")], 2)
    for command in (
        "env serve sciworld --distractors 2",
        "refine grounded --tasks sciworld --suite-seed 4 -n 1 -o x.jsonl --distractors 2",
    ):
        assert main(command.split()) == 2
        assert "the worlds of ScienceWorld are fixed" in " ".join(capsys.readouterr().err.split())
    check_distractors([specs()["sciworld"]], 0)
    for count in (-1, 51):
        with pytest.raises(UserError, match="give 0 to 50"):
            check_distractors([specs()["pddl"]], count)


def test_they_are_refused_with_tasks_of_evaluations(clean_home: Path) -> None:
    wanted = Wanted([short("alfworld")], [0], [], allow_eval_tasks=True, distractors=1)
    with pytest.raises(UserError, match="for training tasks alone"):
        load_table(wanted, None, lambda _: None)


@pytest.mark.parametrize(
    "command",
    [
        "run --model oracle --suite open --tasks alfworld:0",
        "sweep --model oracle --suite open --tasks alfworld",
        "bon --model oracle --suite open --tasks alfworld:0 -n 2",
        "data suite build --suite-seed 3 --tasks alfworld",
    ],
)
def test_no_evaluation_has_the_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--distractors", "2"])
    assert ended.value.code == 2
    assert "--distractors" in capsys.readouterr().err
