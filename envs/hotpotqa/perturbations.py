"""HotpotQA in other words."""

from __future__ import annotations

from evalharness.envs.base import Perturbation, Wording
from evalharness.envs.hotpotqa.actions import LISTING

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
        "capitals": Perturbation("the words of actions in capitals", upper_case=True),
        "listing": Perturbation("actions listed in the opposite order", reverse_actions=True),
        "instruction": Perturbation(
            "format rules first, bulleted rules in the opposite order", reorder_instruction=True
        ),
        "no-rules": Perturbation("the emphasised format rules are left out", drop_format_rules=True),
    },
    listing=LISTING,
)
