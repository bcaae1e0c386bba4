"""Prefixes of episodes that end in an error: grounded conversations up to their first correction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.locks import exclusive
from evalharness.base.paths import home_folder
from evalharness.envs import specs
from evalharness.models.event_loop import run_to_end
from evalharness.protocol import react
from evalharness.protocol.prompt import Message, load_prompt
from evalharness.training.datasets.conversation import (
    BrokenLine,
    Conversation,
    MarkedMessage,
    none_found,
    read_data,
    read_manifest,
)
from evalharness.training.grounded.draft import ErrorPlan
from evalharness.training.grounded.grounded import Order, is_made, make
from evalharness.training.grounded.making import FamilyCounts

SUITE_SEED = 9000
"""Of the prefixes that are made here: far from the seeds of training data and of evaluations."""


@dataclass(frozen=True)
class Prefix:
    """One conversation that ends in the world's answer to an error."""

    key: str
    family: str
    kind: str
    """Of its task; "" where the data does not say."""
    error: str
    """Kind of the last error."""
    task_id: str
    task_hash: str
    suite_seed: int
    messages: tuple[Message, ...]
    said: tuple[str, ...]
    """Every action so far; the errors are the last ones."""
    errors: tuple[str, ...]
    """The actions of the run of errors that it ends in."""
    plan: tuple[str, ...]
    """The right actions of the whole trajectory, in order."""

    @property
    def task(self) -> str:
        """What the prefixes of one task have in common."""
        return f"{self.suite_seed}/{self.task_id}"

    def kind_in(self, patterns: Iterable[str]) -> bool:
        """`*` in a pattern stands for anything."""
        return any(fnmatchcase(self.kind, pattern) for pattern in patterns)


def prefix_of(conversation: Conversation) -> Prefix | None:
    """None where the conversation has no correction, or does not say what it was played on."""
    at = next((i for i, message in enumerate(conversation.messages) if message.refine), None)
    facts, task_hash = conversation.metadata, conversation.task_hash
    seed, task_id = facts.get("suite_seed"), facts.get("task_id")
    if at is None or task_hash is None or not isinstance(seed, int) or not isinstance(task_id, str):
        return None
    turns = [message for message in conversation.messages[:at] if message.role == "assistant"]
    said = _actions(turns)
    plan = _actions([turn for turn in conversation.player_turns if not turn.error])
    if said is None or plan is None:
        return None
    run = 0
    while run < len(turns) and turns[-1 - run].error:
        run += 1
    messages: list[Message] = [
        {"role": message.role, "content": message.content} for message in conversation.messages[:at]
    ]
    return Prefix(
        key=conversation.id,
        family=conversation.world,
        kind=str(facts.get("kind", "")),
        error=turns[-1].error[0] if turns[-1].error else "",
        task_id=task_id,
        task_hash=task_hash,
        suite_seed=seed,
        messages=tuple(messages),
        said=said,
        errors=said[len(said) - run :],
        plan=plan,
    )


def _actions(turns: Sequence[MarkedMessage]) -> tuple[str, ...] | None:
    """None where a turn has none."""
    found = [action for turn in turns if (action := react.parse(turn.content).action) is not None]
    return tuple(found) if len(found) == len(turns) else None


def read_prefixes(path: Path) -> list[Prefix]:
    """Those of the families that are installed. Raises UserError where there is none."""
    broken: list[BrokenLine] = []
    conversations = list(read_data(path, broken))
    if not conversations:
        raise none_found(path, broken)
    found = [prefix for conversation in conversations if (prefix := prefix_of(conversation)) is not None]
    found = [prefix for prefix in found if prefix.family in specs() and prefix.errors]
    if not found:
        raise UserError(
            f"{path} holds no grounded conversation with an error and its correction; make some with: "
            f"evalharness refine grounded --suite-seed {SUITE_SEED} -n 300 -o probes.jsonl"
        )
    return found


def shares(prefixes: Sequence[Prefix], count: int) -> list[Prefix]:
    """The first `count`, of all families in equal shares as far as they have so many."""
    families = dict.fromkeys(prefix.family for prefix in prefixes)
    rows = zip_longest(*([p for p in prefixes if p.family == family] for family in families))
    return [prefix for row in rows for prefix in row if prefix is not None][:count]


def order_of(families: Sequence[str], count: int) -> Order:
    return Order(
        families=tuple(sorted(families)), suite_seed=SUITE_SEED, samples=count, errors=ErrorPlan(runs=(1, 1))
    )


def made_prefixes(families: Sequence[str], count: int, progress: FamilyCounts) -> Path:
    """The data set of `count` trajectories with one run of errors, kept in the user's folder and made once."""
    order = order_of(families, count)
    path = home_folder() / "probes" / f"{'-'.join(order.families)}-{count}.jsonl"
    with exclusive(path.with_suffix(".lock")):
        if not _is_of(path, order):
            path.unlink(missing_ok=True)
            run_to_end(make(order, specs(), path, progress=progress))
    return path


def _is_of(path: Path, order: Order) -> bool:
    """Whether it is whole and of today's prompts: what is kept here nobody else has made."""
    made = (read_manifest(path) or {}).get("made", {})
    try:
        return is_made(order, path) and made.get("prompts") == {
            family: load_prompt(specs()[family]).sha256 for family in order.families
        }
    except UserError:
        return False
