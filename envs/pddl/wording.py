"""Write atoms and actions as sentences, with AgentBoard's templates.

The templates have errors, which we keep, because published results depend on them: `holding` of barman prints the hand
instead of the vessel, `used` is described as a pouring, and a carried ball "is carrying" its gripper. Four predicates
have no template, and are printed as they are ("handempty left").
"""

from __future__ import annotations

import re

from evalharness.envs.pddl.engine import GroundAction
from evalharness.envs.pddl.syntax import Atom

ATOMS = {
    # blockworld
    "clear": "The {} is clear.",
    "on": "{} is on {}.",
    "on-table": "{} is on the table.",
    "arm-empty": "Your arm is empty.",
    "holding": "You are holding {}. ",
    # gripper
    "ball": "{} is a ball. ",
    "gripper": "{} is a gripper. ",
    "at-robby": "Robby is at {}. ",
    "at": "{} is at {}. ",
    "free": "{} is free. ",
    "carry": "{} is carrying {}. ",
    # tyreworld
    "isopen": "{} is open.",
    "closed": "{} is closed.",
    "have": "You have {}.",
    "in": "{} is in {}.",
    "loose": "The nut {} on the hub {} is loose.",
    "tight": "The nut {} on the hub {} is tight.",
    "unlocked": "{} is unlocked.",
    "on-ground": "Hub {} is on the ground.",
    "not-on-ground": "Hub {} is not on the ground.",
    "inflated": "Wheel {} is inflated.",
    "not-inflated": "Wheel {} is not inflated.",
    "fastened": "Hub {} is fastened.",
    "unfastened": "Hub {} is unfastened.",
    "intact": "Wheel {} is intact.",
    # barman
    "ontable": "{} is on the table. ",
    "empty": "{} is empty. ",
    "contains": "{} contains {}. ",
    "clean": "{} is clean. ",
    "used": "Pour {} from a shot glass to a used shaker {}",
    "dispenses": "{} dispenses {}. ",
    "shaker-empty-level": "{} is at empty level {}. ",
    "shaker-level": "{} is at level {}. ",
    "next": "level {} is next to level {}. ",
    "unshaked": "{} is unshaked. ",
    "shaked": "{} is shaked. ",
    "cocktail-part1": "{} part1 ingredient is {}. ",
    "cocktail-part2": "{} part2 ingredient is {}. ",
}

SENTENCES = {
    # gripper
    "move": "Move from {from_room} to {to_room}. ",
    "pick": "Pick up {ball} at {room} with arm {gripper}. ",
    "drop": "drop {ball} {room} {gripper}",
    # blockworld
    "pickup": "Pickup {block}.",
    "putdown": "Putdown {block}.",
    "stack": "Stack {block} on {under}.",
    "unstack": "Unstack {block} from {under}.",
    # barman
    "grasp": "{hand} grasp {container}. ",
    "leave": "{hand} leave {container}. ",
    "fill-shot": "fill-shot glass {shot} with {ingredient} with {hand} and {other_hand} holding {dispenser}. ",
    "refill-shot": "refill-shot {shot} with {ingredient} with {hand} and {other_hand} holding {dispenser}. ",
    "empty-shot": "use hand {hand} to empty-shot glass {shot} with beverage {beverage}. ",
    "clean-shot": "clean-shot glass {shot} with {beverage} with hand {hand} holding shot glass and {other_hand}. ",
    "pour-shot-to-clean-shaker": "pour-shot-to-clean-shaker from a shot glass {shot} with {ingredient} "
    "to a clean shaker {shaker} with hand {hand} from level {level} to level {next_level}",
    "pour-shot-to-used-shaker": "pour-shot-to-used-shaker from a shot glass {shot} with {ingredient} "
    "to a used shaker {shaker} with hand {hand} from level {level} to level {next_level}",
    "empty-shaker": "use hand {hand} to empty-shaker {shaker} with ingredient {cocktail} "
    "from level {level} to level {empty_level}.",
    "clean-shaker": "use hand {hand} and hand {other_hand} to clean-shaker {shaker}",
    "shake": "shake a cocktail {cocktail} with ingredient {ingredient} and ingredient {other_ingredient} "
    "in a shaker {shaker} with hand {hand} and hand {other_hand}",
    "pour-shaker-to-shot": "pour-shaker-to-shot to a shot glass {beverage} the ingredient {shot} "
    "with hand {hand} from shaker {shaker} from level {level} to level {lower_level}",
    # tyreworld
    "open": "Open {container}.",
    "close": "Close {container}.",
    "fetch": "Fetch {object} from {container}.",
    "put-away": "Put-away {object} in {container}.",
    "loosen": "Loosen the nut {nut} on the hub {hub}.",
    "tighten": "Tighten the nut {nut} on the hub {hub}.",
    "jack-up": "jack-up the hub {hub}.",
    "jack-down": "Jack-down the hub {hub}.",
    "undo": "Undo the fastening of the nut {nut} on the hub {hub}.",
    "do-up": "Do-up the nut {nut} on the hub {hub}.",
    "remove-wheel": "Remove-wheel {wheel} from the hub {hub}.",
    "put-on-wheel": "put-on-wheel {wheel} on the hub {hub}.",
    "inflate": "Inflate the wheel {wheel}.",
}
"""Action -> template. Its slots are in the order of the PDDL parameters, because `resolve` reads objects in order."""

_POSITIONAL = {name: re.sub(r"\{\w+\}", "{}", template) for name, template in SENTENCES.items()}


def atom_text(atom: Atom) -> str:
    name, *arguments = atom
    template = ATOMS.get(name)
    return " ".join(atom) if template is None else template.format(*arguments)


def action_text(action: GroundAction) -> str:
    """Return the action as AgentBoard lists it, with the trailing space."""
    template = _POSITIONAL.get(action.name)
    return str(action) if template is None else template.format(*action.arguments)
