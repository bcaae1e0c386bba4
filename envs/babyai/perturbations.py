"""Define BabyAI's perturbations."""

from __future__ import annotations

from evalharness.envs.base import GENERAL, Perturbation, Wording

WORDING = Wording(
    perturbations={
        "verbs": Perturbation(
            "synonyms of the verbs",
            {
                "turn_left": "rotate left",
                "turn_right": "rotate right",
                "move_forward": "step forward",
                "go_to": "walk to {object}",
                "pickup": "grab {object}",
                "toggle_and_go_through": "toggle and pass through {door}",
                "go_through": "pass through {door}",
            },
        ),
        "order": Perturbation(
            "the thing before the verb",
            {
                "go_to": "to {object} go",
                "pickup": "{object} pickup",
                "toggle_and_go_through": "{door} toggle and go through",
                "go_through": "through {door} go",
            },
        ),
        "joined": Perturbation("no space between a name and its number (red ball1)", join_numbers=True),
        **GENERAL,
    },
    listing="You can take the following actions: ",
    quoted=r"(?:You cannot|you can't) (?P<action>.+?)(?:, as |\.$)",
    also={"check": r".*check.*"},
    numbered=r"ball|box|key|door",
)
