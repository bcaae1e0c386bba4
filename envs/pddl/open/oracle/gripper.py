"""Compute a lower bound of the number of remaining actions in gripper."""

from __future__ import annotations

from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.open.oracle.search import Bound, atoms_naming, read_true
from evalharness.envs.pddl.syntax import Atom


def bound(world: GroundedProblem) -> Bound:
    """Count `pick` and `drop` for every ball that is not in its goal room, and the smallest number of moves. The robot
    carries at most one ball per gripper, so the balls determine how often it must leave and enter each room. It leaves
    a room as often as it enters the room, but once more in its first room and once less in its last room."""
    rooms = [atom[1] for atom in world.decode(world.initial) if atom[0] == "room"]
    rooms.sort()
    number = {room: index for index, room in enumerate(rooms)}
    capacity = max(1, sum(atom[0] == "gripper" for atom in world.decode(world.initial)))

    def room_of(atoms: list[Atom]) -> int:
        """Return the number of a ball's room; -1 if the robot carries the ball."""
        return next((number[atom[2]] for atom in atoms if atom[0] == "at"), -1)

    balls = [
        (read_true(world, atoms_naming(world, {"at"}, 0, atom[1]), room_of), number[atom[2]])
        for atom in world.goal_atoms
        if atom[0] == "at"
    ]
    robby = read_true(
        world,
        [atom for atom in world.atoms if atom[0] == "at-robby"],
        lambda atoms: number[atoms[0][1]] if atoms else 0,
    )
    goal_room = next((number[atom[1]] for atom in world.goal_atoms if atom[0] == "at-robby"), None)

    def at_least(state: int) -> int:
        start = robby(state)
        handled = 0
        leaving = [0] * len(rooms)
        entering = [0] * len(rooms)
        for where, goal in balls:
            room = where(state)
            if room == goal:
                continue
            handled += 1 if room < 0 else 2
            if room < 0:
                room = start
            if room != goal:
                leaving[room] += 1
                entering[goal] += 1
        leaves = [-(-count // capacity) for count in leaving]
        enters = [-(-count // capacity) for count in entering]
        ends = range(len(rooms)) if goal_room is None else (goal_room,)
        return handled + min(
            sum(
                max(leaves[room], enters[room] + (room == start) - (room == end))
                for room in range(len(rooms))
            )
            for end in ends
        )

    return at_least
