"""Define Jericho's perturbations. They change only the commands in `ACTIONS`; a game knows many other commands."""

from __future__ import annotations

from evalharness.envs.base import GENERAL, Perturbation, Wording
from evalharness.envs.jericho.observation import CHECK_PREFIX

WORDING = Wording(
    perturbations={
        "verbs": Perturbation(
            "synonyms of the listed verbs",
            {
                "go": "head {direction}",
                "examine": "inspect {object}",
                "take": "grab {object}",
                "drop": "discard {object}",
                "put_in": "insert {object} into {container}",
                "put_on": "set {object} upon {surface}",
                "close": "shut {object}",
                "give": "hand {object} over to {person}",
                "attack": "strike {creature} with {weapon}",
            },
        ),
        "order": Perturbation(
            "the other thing or person before the verb",
            {
                "put_in": "in {container} put {object}",
                "put_on": "on {surface} put {object}",
                "unlock": "with {key} unlock {object}",
                "ask": "about {topic} ask {person}",
                "give": "to {person} give {object}",
                "show": "to {person} show {object}",
                "attack": "with {weapon} attack {creature}",
            },
        ),
        **GENERAL,
    },
    listing=CHECK_PREFIX,
    also={"check": r".*check.*action.*|.*action.*check.*"},
    unread_from=r"[,.]",  # AgentBoard cuts a command here
)
