"""Compute a lower bound of the number of remaining actions in barman."""

from __future__ import annotations

from dataclasses import dataclass

from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.open.oracle.search import DEAD, Bound, atoms_naming, read_true
from evalharness.envs.pddl.syntax import Atom


@dataclass(frozen=True)
class _Vessel:
    held: bool
    content: frozenset[str]
    clean: bool
    used: frozenset[str]
    shaked: bool


def bound(world: GroundedProblem) -> Bound:
    """Count the actions that every plan needs for the drinks that are not served yet: pour, fill, shake, empty and
    clean, and between them `grasp` and `leave`. To fill or clean a shot, or to shake or clean the shaker, the agent
    needs this vessel in one hand, and the other hand empty. A test checks on every state of small problems that the
    bound is never too high. At the start of a published problem it is at most one action too low."""
    start = world.decode(world.initial)
    shakers = sorted({atom[1] for atom in start if atom[0] == "shaker-empty-level"})
    ingredients = {atom[2] for atom in start if atom[0] == "dispenses"}
    parts: dict[str, frozenset[str]] = {}
    for atom in sorted(start):
        if atom[0] in ("cocktail-part1", "cocktail-part2"):
            parts[atom[1]] = parts.get(atom[1], frozenset()) | {atom[2]}
    goals = [(atom[1], atom[2]) for atom in world.goal_atoms if atom[0] == "contains"]
    if len(shakers) != 1 or any(len(parts[drink]) != 2 for _, drink in goals if drink in parts):
        return lambda state: len(world.goal_bits) - world.count_satisfied(state)
    shot_names = sorted(name for name, kind in world.objects.items() if kind == "shot")
    vessels = {name: read_true(world, _atoms_of(world, name), _read) for name in [*shakers, *shot_names]}
    read_shaker = vessels[shakers[0]]

    def at_least(state: int) -> int:
        shots = {name: vessels[name](state) for name in shot_names}
        shaker = read_shaker(state)
        plain: list[str] = []
        mixed: list[str] = []
        pending: set[str] = set()
        for name, drink in goals:
            shot = shots[name]
            if drink in shot.content:
                continue
            if not (shot.clean or shot.used or shot.content & ingredients):
                # The agent can never clean this shot again: cleaning needs a fact that says what was in the shot.
                return DEAD
            if drink in parts:
                mixed.append(name)
                if drink not in shaker.content:
                    pending.add(drink)
            else:
                plain.append(name)
        unmet = {name: drink for name, drink in goals if drink not in shots[name].content}
        wanted = frozenset().union(*(parts[drink] for drink in pending)) if pending else frozenset()

        cleanings = 0
        emptyings = 0
        for name, drink in unmet.items():
            shot = shots[name]
            emptyings += bool(shot.content) and not shot.content & wanted
            cleanings += not shot.clean and (drink in parts or drink not in shot.used)
        held = sum(shot.held for shot in shots.values())
        rounds = len(pending)
        actions = len(mixed) + len(plain) + emptyings + rounds
        if not rounds:
            return actions + cleanings + _last_moves(shots, shaker, plain, bool(mixed), held)

        ready = not shaker.shaked and (shaker.clean or bool(shaker.content))
        overlap = 0
        if ready and shaker.content:
            fits = [drink for drink in pending if shaker.content <= parts[drink]]
            if fits:
                overlap = len(shaker.content)
            else:
                # No wanted drink has this content. The agent must shake it before it can empty the shaker.
                ready = False
                actions += 1
        pours = 2 * rounds - overlap
        filled = sum(bool(shot.content & wanted) for shot in shots.values())
        actions += pours + max(0, pours - filled)
        # Between two drinks that are shaken, the agent must empty and clean the shaker.
        actions += 2 * (rounds - 1)
        if not ready:
            actions += (shaker.shaked or bool(shaker.content)) + 1
        to_pour = 2 - overlap if ready else 0
        moves = held + (not shaker.held)
        if ready and to_pour:
            moves += 2 * (held == 0)
            if to_pour == 2 and held < 2:
                # The agent must clean the shot between two ingredients, or grasp a second shot, which costs more.
                cleanings = max(cleanings, 1)
        moves += 4 * (rounds - 1 if ready else rounds)
        unheld = sum(not shots[name].held for name in plain)
        return actions + cleanings + moves + max(0, unheld - 2 * rounds)

    return at_least


def _last_moves(shots: dict[str, _Vessel], shaker: _Vessel, plain: list[str], pour: bool, held: int) -> int:
    """Return the number of `grasp` and `leave` actions that are needed if no drink must be shaken."""
    moves = 0
    if plain:
        own = sum(shots[name].held for name in plain)
        moves += held + shaker.held - own + 2 * len(plain) - 1 - min(own, 1)
    elif pour and not shaker.held and held == 2:
        moves += 1
    return moves + (pour and not shaker.held)


def _atoms_of(world: GroundedProblem, name: str) -> list[Atom]:
    about = atoms_naming(world, {"contains", "clean", "used", "shaked"}, 0, name)
    return about + atoms_naming(world, {"holding"}, 1, name)


def _read(atoms: list[Atom]) -> _Vessel:
    return _Vessel(
        held=any(atom[0] == "holding" for atom in atoms),
        content=frozenset(atom[2] for atom in atoms if atom[0] == "contains"),
        clean=any(atom[0] == "clean" for atom in atoms),
        used=frozenset(atom[2] for atom in atoms if atom[0] == "used"),
        shaked=any(atom[0] == "shaked" for atom in atoms),
    )
