"""What training data teaches: which rules decide how often, and whether what looks equal is decided equally.

A decision is a trained turn's action. Its view is the conversation's opening (prompt, goal, first observation) and the
last observation; its exchange is the view and the last reply. Where two decisions of one view differ, the last reply
must say why: where two of one exchange differ, nothing near the decision does, and a small model learns to guess.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalharness.protocol import react
from evalharness.training.datasets.conversation import Conversation, MarkedMessage

RARE = 0.1
"""A rule that decides in a smaller share of a family's conversations is rare."""


def rules_of(conversation: Conversation) -> list[str]:
    """The rule behind each player turn; where the data does not name it, the action's first word."""
    named = conversation.metadata.get("rules")
    turns = conversation.player_turns
    if isinstance(named, list) and len(named) == len(turns):
        return [str(rule) for rule in named]
    actions = [react.parse(turn.content).action or "" for turn in turns]
    return [(action.split() or ["no action"])[0] for action in actions]


@dataclass
class Alike:
    """Decisions by what a player reads before them."""

    found: dict[bytes, Counter[str]] = field(default_factory=dict)

    def add(self, read: Iterable[str], decision: str) -> None:
        key = hashlib.sha256("\0".join(read).encode("utf-8", "surrogatepass")).digest()
        self.found.setdefault(key, Counter())[decision] += 1

    @property
    def repeated(self) -> int:
        """States that were met more than once."""
        return sum(decisions.total() > 1 for decisions in self.found.values())

    @property
    def conflicts(self) -> int:
        """Of these, such as were decided differently."""
        return sum(len(decisions) > 1 for decisions in self.found.values())

    def to_json(self) -> dict[str, int]:
        return {"repeated": self.repeated, "conflicts": self.conflicts}


@dataclass
class FamilyDecisions:
    conversations: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    """Rule -> decisions."""
    holding: Counter[str] = field(default_factory=Counter)
    """Rule -> conversations."""
    views: Alike = field(default_factory=Alike)
    exchanges: Alike = field(default_factory=Alike)

    @property
    def decisions(self) -> int:
        return self.rules.total()

    @property
    def rare(self) -> frozenset[str]:
        return frozenset(rule for rule, count in self.holding.items() if count < RARE * self.conversations)

    def add(self, conversation: Conversation) -> None:
        self.conversations += 1
        decided: set[str] = set()
        rules = iter(rules_of(conversation))
        opening: list[str] = []
        last: MarkedMessage | None = None
        read = ""
        for message in conversation.messages:
            if message.role != "assistant":
                if last is None:
                    opening.append(message.content)
                read = message.content
                continue
            rule = next(rules)
            if message.trained:
                decision = react.parse(message.content).action or ""
                self.rules[rule] += 1
                decided.add(rule)
                self.views.add([*opening, read], decision)
                self.exchanges.add([*opening, read, "" if last is None else last.content], decision)
            last = message
        self.holding.update(decided)

    def to_json(self) -> dict[str, Any]:
        return {
            "conversations": self.conversations,
            "decisions": self.decisions,
            "rules": dict(self.rules.most_common()),
            "holding": dict(sorted(self.holding.items())),
            "rare": sorted(self.rare),
            "views": self.views.to_json(),
            "exchanges": self.exchanges.to_json(),
        }


def decisions_of(conversations: Iterable[Conversation]) -> dict[str, FamilyDecisions]:
    """Family -> its decisions."""
    found: dict[str, FamilyDecisions] = {}
    for conversation in conversations:
        found.setdefault(conversation.world, FamilyDecisions()).add(conversation)
    return dict(sorted(found.items()))


def lines(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """For the terminal, from the JSON of each family."""
    said = []
    for family, row in found.items():
        views, exchanges, name = row["views"], row["exchanges"], family or "without a family"
        said.append(
            f"{name}: {row['decisions']:,} decisions in {row['conversations']:,} conversations; of equal views "
            f"{views['conflicts']:,} of {views['repeated']:,} are decided differently, with the last reply "
            f"{exchanges['conflicts']:,} of {exchanges['repeated']:,}"
        )
        for rule, count in row["rules"].items():
            rare = f"  rare: in {row['holding'][rule]:,} conversations" if rule in row["rare"] else ""
            said.append(f"  {count / max(row['decisions'], 1):6.1%} {count:>7,}  {rule}{rare}")
    return said


def balanced(conversations: Sequence[Conversation], wanted: int) -> list[Conversation]:
    """`wanted` of one family's conversations, in their order: half of them hold a rare decision, as far as there are
    such, each rare rule in turn, the rarest first; the others are the first ones."""
    found = decisions_of(conversations)
    rare = {rule: row.holding[rule] for row in found.values() for rule in row.rare}
    holding = {rule: [i for i, s in enumerate(conversations) if rule in rules_of(s)] for rule in sorted(rare)}
    chosen: dict[int, None] = {}
    queues = [iter(holding[rule]) for rule in sorted(rare, key=lambda rule: (rare[rule], rule))]
    while queues and len(chosen) < wanted // 2:
        for queue in list(queues):
            fresh = next((i for i in queue if i not in chosen), None)
            if fresh is None:
                queues.remove(queue)
            elif len(chosen) < wanted // 2:
                chosen[fresh] = None
    for i in range(len(conversations)):
        if len(chosen) == wanted:
            break
        chosen.setdefault(i)
    return [conversations[i] for i in sorted(chosen)]
