"""Define the perturbations of the PDDL domains. None of them joins names and numbers: `ball1` already has no space."""

from __future__ import annotations

from evalharness.envs.base import GENERAL, Perturbation, Wording
from evalharness.envs.pddl.wording import SENTENCES

_PROSE = {
    "To pick up a ball": ("pick", "To collect a ball"),
    "To drop a ball": ("drop", "To release a ball"),
    "Pickup takes": ("pickup", "Raise takes"),
    "unstack takes": ("unstack", "detach takes"),
    "Putdown puts": ("putdown", "Lower puts"),
    "stack puts": ("stack", "place puts"),
    "Fetch takes": ("fetch", "Get takes"),
    "put-away puts": ("put-away", "stow puts"),
    "Loosening": ("loosen", "Slackening"),
    "Inflating": ("inflate", "Pumping up"),
}
"""Text in the prompt -> (action that this text is about, the text with a synonym of the verb)."""

WORDING = Wording(
    perturbations={
        "verbs": Perturbation(
            "synonyms of the verbs",
            {
                "move": "Travel from {from_room} to {to_room}.",
                "pick": "Collect {ball} at {room} with arm {gripper}.",
                "drop": "release {ball} {room} {gripper}",
                "pickup": "Raise {block}.",
                "putdown": "Lower {block}.",
                "stack": "Place {block} on {under}.",
                "unstack": "Detach {block} from {under}.",
                "grasp": "{hand} grip {container}.",
                "leave": "{hand} set-down {container}.",
                "fetch": "Get {object} from {container}.",
                "put-away": "Stow {object} in {container}.",
                "loosen": "Slacken the nut {nut} on the hub {hub}.",
                "inflate": "Pump-up the wheel {wheel}.",
            },
            prose={old: new for old, (_, new) in _PROSE.items()},
        ),
        "order": Perturbation(
            "the place or second thing before the verb",
            {
                "move": "To {to_room} move from {from_room}.",
                "pick": "At {room} with arm {gripper} pick up {ball}.",
                "drop": "{room} {gripper} drop {ball}",
                "stack": "On {under} stack {block}.",
                "unstack": "From {under} unstack {block}.",
                "grasp": "grasp {container} with {hand}.",
                "leave": "leave {container} from {hand}.",
                "fetch": "From {container} fetch {object}.",
                "put-away": "In {container} put-away {object}.",
                "loosen": "On the hub {hub} loosen the nut {nut}.",
                "tighten": "On the hub {hub} tighten the nut {nut}.",
                "undo": "On the hub {hub} undo the fastening of the nut {nut}.",
                "do-up": "On the hub {hub} do-up the nut {nut}.",
                "remove-wheel": "From the hub {hub} remove-wheel {wheel}.",
                "put-on-wheel": "On the hub {hub} put-on-wheel {wheel}.",
            },
        ),
        **GENERAL,
    },
    mentions={old: action for old, (action, _) in _PROSE.items()},
    listing="Valid actions are: ",
    # AgentBoard accepts every text that has the name of the action among its words.
    also={
        **{name: rf"(?:.*(?<![\w-]))?{name}(?![\w-]).*" for name in SENTENCES},
        "check": r".*check.*",
        "look": r".*look around.*",
    },
)
