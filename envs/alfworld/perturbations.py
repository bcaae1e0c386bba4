"""Define ALFWorld's perturbations (P1 to P5 of the AgentRefine paper, and ours), and the words of its later release."""

from __future__ import annotations

from functools import partial

from evalharness.envs.base import GENERAL, GameWords, Perturbation, Wording

_published = partial(Perturbation, source="AgentRefine (arXiv 2501.01702)", published=True)

WORDING = Wording(
    perturbations={
        "P1": _published(
            "clean, heat and cool `using` instead of `with` a place",
            {verb: verb + " {object} using {receptacle}" for verb in ("clean", "heat", "cool")},
            in_first_average=True,
        ),
        "P2": _published(
            "`move to` instead of `go to`",
            {"go": "move to {receptacle}"},
            in_first_average=True,
        ),
        "P3": _published(
            "`from` a place `take` a thing",
            {"take": "from {receptacle} take {object}"},
            in_first_average=True,
        ),
        # The paper's last version added P4 and P5. It has results for these perturbations, but not their wording.
        "P4": _published(
            "no space between a name and its number (cup1)",
            join_numbers=True,
            recalled=True,
        ),
        "P5": _published(
            "the emphasised format rules are left out",
            drop_format_rules=True,
            recalled=True,
        ),
        "verbs": Perturbation(
            "synonyms of the verbs",
            {
                "go": "walk to {receptacle}",
                "take": "grab {object} from {receptacle}",
                "put": "place {object} in/on {receptacle}",
                "close": "shut {receptacle}",
                "use": "switch on {object}",
                "clean": "wash {object} with {receptacle}",
                "heat": "warm {object} with {receptacle}",
                "cool": "chill {object} with {receptacle}",
                "examine": "inspect {object}",
            },
        ),
        "order": Perturbation(
            "the place or tool before the thing",
            {
                "take": "from {receptacle} take {object}",
                "put": "in/on {receptacle} put {object}",
                "clean": "with {receptacle} clean {object}",
                "heat": "with {receptacle} heat {object}",
                "cool": "with {receptacle} cool {object}",
                "slice": "with {tool} slice {object}",
            },
        ),
        "capitals": Perturbation(
            "the words of actions in capitals", prose={", in lower case": ""}, upper_case=True
        ),
        "listing": GENERAL["listing"],
        "instruction": GENERAL["instruction"],
    },
    games={
        "move": GameWords(
            {"put": "move {object} to {receptacle}", "check": "help"},
            {"names every command that works right now": "names the kinds of commands"},
            {r"You put (the .+) in/on (the .+)\.": r"You move \1 to \2."},
        )
    },
    listing="Choose an action from these valid actions: ",
    # AgentBoard also accepts `put X in Y` and `put X on Y`.
    also={"put": r"put (?P<object>.+) (?:in|on|in/on) (?P<receptacle>.+)"},
    numbered=r"[a-z]+",
    case_matters=True,
)
