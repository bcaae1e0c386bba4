"""Perturbations of HotpotQA: other words for its three actions."""

from __future__ import annotations

from evalharness.envs.base import GENERAL, Perturbation, Wording
from evalharness.paper.hotpotqa.actions import LISTING

WORDING = Wording(
    perturbations={
        "verbs": Perturbation(
            "synonyms of the verbs",
            {"search": "open[{entity}]", "lookup": "locate[{keyword}]", "finish": "answer[{answer}]"},
        ),
        "order": Perturbation(
            "the argument before the verb",
            {"search": "[{entity}] search", "lookup": "[{keyword}] lookup", "finish": "[{answer}] finish"},
        ),
        "brackets": Perturbation(
            "round brackets",
            {"search": "search({entity})", "lookup": "lookup({keyword})", "finish": "finish({answer})"},
        ),
        **GENERAL,
    },
    listing=LISTING,
)
