"""Define ScienceWorld's perturbations. None of them rewords `focus`, because the goals contain this word."""

from __future__ import annotations

from evalharness.envs.base import GENERAL, Perturbation, Wording

WORDING = Wording(
    perturbations={
        "verbs": Perturbation(
            "synonyms of the verbs",
            {
                "look_at": "inspect {object}",
                "go": "walk to {location}",
                "close": "shut {object}",
                "pick_up": "grab {object}",
                "put_down": "set down {object}",
                "pour": "tip {substance} into {container}",
                "mix": "stir {container}",
                "activate": "switch on {device}",
                "deactivate": "switch off {device}",
            },
        ),
        "order": Perturbation(
            "the second thing before the verb",
            {
                "move": "to {container} move {object}",
                "pour": "into {container} pour {substance}",
                "dunk": "into {liquid} dunk {container}",
                "use": "on {object} use {tool}",
                "connect": "to {terminal_of_another} connect {terminal}",
            },
        ),
        "joined": Perturbation("no space between a name and its number (flower pot1)", join_numbers=True),
        **GENERAL,
    },
    listing="Choose an action from these valid actions: ",
    # Other wordings that the simulator lists or accepts. In `pour A in B in C`, the last `in` separates the objects,
    # because a name may include a place ("cup in art studio").
    also={
        "go": r"go (?:to )?(?P<location>.+)",
        "pour": r"pour (?P<substance>.+) (?:in|into) (?P<container>.+)",
        "dunk": r"dunk (?P<container>.+) (?:in|into) (?P<liquid>.+)",
        "move": r"move (?P<object>.+) (?:to|in|into) (?P<container>.+)",
    },
    numbered=r"flower pot",
)
