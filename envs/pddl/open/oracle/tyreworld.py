"""Compute a lower bound of the number of remaining actions in tyreworld."""

from __future__ import annotations

from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.open.oracle.search import Bound
from evalharness.envs.pddl.syntax import Atom


def bound(world: GroundedProblem) -> Bound:
    """Count the actions that every plan must contain, from the goal backwards. The agent can remove a wheel only from a
    hub that is raised and unfastened. To unfasten a hub, it needs a loose nut and the wrench. There is one jack, so it
    must lower a hub before it raises the next hub. It can take things only from an open boot."""
    seen: dict[int, int] = {}
    goal = world.goal_atoms

    def at_least(state: int) -> int:
        if state not in seen:
            seen[state] = len(_collect_needed(set(world.decode(state)), goal))
        return seen[state]

    return at_least


def _collect_needed(true: set[Atom], goal: tuple[Atom, ...]) -> set[Atom]:
    """Return the set of actions that every plan still needs. `jack-down` has a number, because its hub is unknown."""
    where = {atom[1]: atom[2] for atom in true if atom[0] in ("in", "on")}
    nut_on = {atom[2]: atom[1] for atom in true if atom[0] in ("loose", "tight")}
    needed: set[Atom] = set()

    def open_up(container: str) -> None:
        if ("closed", container) in true:
            needed.add(("open", container))

    def reach(thing: str) -> None:
        """Add the actions that the agent needs to get the thing into its hands."""
        if ("have", thing) in true:
            return
        place = where.get(thing)
        if place is None:
            for hub, nut in nut_on.items():
                if nut == thing:
                    undo(hub)
        elif ("in", thing, place) in true:
            needed.add(("fetch", thing))
            open_up(place)
        else:
            take_off(place)

    def use(tool: str) -> None:
        place = where.get(tool)
        if place is not None:
            needed.add(("fetch", tool))
            open_up(place)

    def raise_up(hub: str) -> None:
        if ("on-ground", hub) in true:
            needed.add(("jack-up", hub))
            use("jack")

    def undo(hub: str) -> None:
        if ("fastened", hub) in true:
            needed.add(("undo", hub))
            raise_up(hub)
            use("wrench")
            if ("loose", nut_on.get(hub, ""), hub) not in true:
                needed.add(("loosen", hub))

    def take_off(hub: str) -> None:
        needed.add(("remove-wheel", hub))
        raise_up(hub)
        undo(hub)

    jack_free = False
    lowered: set[str] = set()
    for atom in goal:
        if atom in true:
            continue
        kind, *objects = atom
        if kind == "on":
            wheel, hub = objects
            needed.add(("put-on-wheel", wheel, hub))
            reach(wheel)
            raise_up(hub)
            undo(hub)
            if any(place == hub and ("on", other, hub) in true for other, place in where.items()):
                take_off(hub)
        elif kind == "in":
            thing, container = objects
            needed.add(("put-away", thing, container))
            open_up(container)
            if thing == "jack" and ("in", thing, where.get(thing, "")) not in true:
                jack_free = True
            else:
                reach(thing)
        elif kind == "have":
            if objects[0] == "jack":
                jack_free = True
                use("jack")
            else:
                reach(objects[0])
        elif kind == "inflated":
            needed.add(("inflate", objects[0]))
            use("pump")
        elif kind == "isopen":
            open_up(objects[0])
        elif kind == "closed":
            needed.add(("close", objects[0]))
        elif kind == "on-ground":
            lowered.add(objects[0])
        elif kind in ("tight", "loose", "fastened"):
            hub = objects[-1]
            if kind == "tight":
                needed.add(("tighten", hub))
                use("wrench")
                # The agent can tighten a nut only if the hub is on the ground.
                if ("not-on-ground", hub) in true:
                    lowered.add(hub)
            if ("fastened", hub) not in true:
                needed.add(("do-up", hub))
                use("wrench")
                raise_up(hub)
                if kind == "tight":
                    lowered.add(hub)
                if len(objects) == 2:
                    reach(objects[0])
    for hub in [name for action, name, *_ in needed if action == "undo"]:
        # If the goal needs the nut on its hub, the agent must put the nut back.
        if any(atom[0] in ("tight", "loose", "fastened") and atom[-1] == hub for atom in goal):
            needed.add(("do-up", hub))
            if any(atom[0] == "tight" and atom[-1] == hub for atom in goal):
                needed.add(("tighten", hub))
                lowered.add(hub)
    raised = [name for action, name, *_ in needed if action == "jack-up"]
    for hub in raised:
        if ("on-ground", hub) in goal:
            lowered.add(hub)
    in_use = any(atom[0] == "not-on-ground" for atom in true)
    downs = max(len(lowered), len(raised) - 1 + in_use + jack_free if raised else in_use and jack_free)
    for number in range(downs):
        needed.add(("jack-down", str(number)))
    for atom in goal:
        if atom[0] == "closed" and ("open", atom[1]) in needed:
            needed.add(("close", atom[1]))
    return needed
