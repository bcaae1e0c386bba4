"""Warnings if nearly every reply is a format error or every action is refused: which, why, and what to do. Pure.

A score of 0 caused by a token limit or a wrong interface says nothing about the model. The user should read this after
twenty replies instead of after hours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from evalharness.protocol.react import FormatError, answer_in, template_token_in
from evalharness.protocol.reasoning import unknown_marks
from evalharness.records.episode import Episode, Turn
from evalharness.records.summary import ReplyTrouble

ENOUGH = 20
"""Replies before a running evaluation warns."""
_ENOUGH_ACTIONS = 10
_EXAMPLES = 3
"""Number of refused actions that are shown."""
_NEARLY_ALL = 0.9
_MOST = 0.5
"""Share of the format errors that a cause needs to be named."""
_JSON = re.compile(r"\s*(?:```\w*\s*)?[\[{]\s*[\"'\]{}\[]")
_CALL = re.compile(
    r'<\|?tool_call|<function[=_]|"(?:tool_calls?|function_call|arguments|parameters)"\s*:|\[TOOL_CALLS\]'
)
_ASK_FOR_LINES = ("react", "act")
"""Agents that ask for a line `Action: ...`; for other formats there is no advice."""
_LOOK = "look at some: evalharness show RUN TASK_ID"
_THINKING = "or have it think less: --chat-template-kwargs '{\"enable_thinking\": false}' where its template takes that"


def cut_prompts(episodes: int, turn: int) -> str:
    """Return the warning for a server that drops the beginning of conversations; `turn`: the first turn without it."""
    were = "1 episode" if episodes == 1 else f"{episodes} episodes"
    return (
        f"{were} outgrew the model's context, and the server dropped the beginning without an error (from turn {turn} "
        "on its prompt tokens did not grow): the scores are not the model's; serve it with a longer context (Ollama: "
        "num_ctx or OLLAMA_CONTEXT_LENGTH; llama.cpp: --ctx-size, without --context-shift; LM Studio: context length; "
        "vLLM, SGLang: --max-model-len, --context-length)"
    )


@dataclass
class Replies:
    """Counts replies by their errors of form."""

    max_tokens: int
    agent: str = "react"
    turns: int = 0
    errors: int = 0
    """Replies with any format error."""
    causes: Counter[str] = field(default_factory=Counter)
    actions: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Actions that the environment refused."""
    tokens: Counter[str] = field(default_factory=Counter)
    """The first token of a chat template that the server left in each reply."""
    marks: Counter[str] = field(default_factory=Counter)
    """Unknown marks around an action, counted for each reply."""

    def add(self, turn: Turn) -> None:
        self.turns += 1
        if token := template_token_in(turn.reply):
            self.tokens[token] += 1
        self.marks.update(set(unknown_marks(turn.reply)))
        if turn.action is not None:
            self.actions += 1
            self.refused.update([] if turn.valid else [turn.action])
        if turn.format_errors:
            self.errors += 1
            self.causes[self._cause(turn)] += 1

    def count_episode(self, episode: Episode) -> Episode:
        for turn in episode.turns:
            self.add(turn)
        return episode

    @property
    def share(self) -> float:
        return self.errors / self.turns if self.turns else 0.0

    @property
    def is_trouble(self) -> bool:
        return self.share >= _NEARLY_ALL

    def describe_errors(self) -> str:
        """Return a line for the user; "" without trouble."""
        if not self.is_trouble:
            return ""
        head = f"{_how_many(self.errors, self.turns)} a format error"
        [(cause, count)] = self.causes.most_common(1)
        if count < _MOST * self.errors:
            parts = ", ".join(f"{name} {n}" for name, n in sorted(self.causes.items()))
            return f"{head} ({parts}); {_LOOK}"
        return f"{head}: {_ADVICE[cause](self)}"

    def describe_refusals(self) -> str:
        """Return a line; "" unless the environment refuses nearly every action."""
        refused = self.refused.total()
        if self.actions < _ENOUGH_ACTIONS or refused < _NEARLY_ALL * self.actions:
            return ""
        examples = ", ".join(repr(action)[:80] for action, _ in self.refused.most_common(_EXAMPLES))
        head = f"the environment refused {refused} of {self.actions} actions, as received: {examples}"
        return f"{head}; {_LOOK}"

    def describe_tokens(self) -> str:
        """Return a line; "" unless the server left tokens of its chat template in replies."""
        if not self.tokens:
            return ""
        return (
            f"a fault of the server, not of the model: {self.tokens.total()} of {self.turns} replies hold tokens of "
            f"the chat template ({', '.join(self.tokens)}); check its chat template and stop tokens"
        )

    def describe_marks(self) -> str:
        """Return a line; "" unless replies have an action in unknown marks."""
        if not self.marks:
            return ""
        marks = ", ".join(mark for mark, _ in self.marks.most_common(_EXAMPLES))
        return (
            f"{self.marks.total()} of {self.turns} replies have an action inside {marks}: it is taken for reasoning "
            "and not carried out; a server that sends reasoning apart says which it is (--reasoning-parser)"
        )

    def warning(self) -> str:
        """Return one line about all troubles while a run goes on."""
        form = self.describe_errors() if self.turns >= ENOUGH else ""
        return "; ".join(
            filter(None, (form, self.describe_refusals(), self.describe_tokens(), self.describe_marks()))
        )

    def troubles(self) -> dict[str, ReplyTrouble]:
        """Return the troubles by their keys in the summary."""
        examples = dict(self.refused.most_common(_EXAMPLES))
        listed = {
            "format_trouble": (
                self.turns,
                self.errors,
                dict(sorted(self.causes.items())),
                self.describe_errors(),
            ),
            "refused_actions": (self.actions, self.refused.total(), examples, self.describe_refusals()),
            "template_tokens": (self.turns, self.tokens.total(), dict(self.tokens), self.describe_tokens()),
            "unknown_marks": (self.turns, self.marks.total(), dict(self.marks), self.describe_marks()),
        }
        return {
            name: ReplyTrouble(turns=turns, errors=errors, causes=causes, said=said)
            for name, (turns, errors, causes, said) in listed.items()
            if said
        }

    def _cause(self, turn: Turn) -> str:
        kinds = set(turn.format_errors)
        for cut in (FormatError.REASONING_TRUNCATED, FormatError.TRUNCATED):
            if cut in kinds:
                return str(cut)
        if turn.action is None and FormatError.SEVERAL_ACTIONS in kinds:
            return "several_refused"
        if turn.action is None and self.agent in _ASK_FOR_LINES:
            if turn.calls or _CALL.search(turn.reply):
                return "tool_call"
            if _JSON.match(answer_in(turn.reply)):
                return "json"
        return str(turn.format_errors[-1])


def _how_many(errors: int, turns: int) -> str:
    return f"every one of {turns} replies is" if errors == turns else f"{errors} of {turns} replies are"


def _cut(replies: Replies) -> str:
    return f"cut off at {replies.max_tokens} tokens: raise --max-tokens"


_ADVICE: dict[str, Callable[[Replies], str]] = {
    "truncated": _cut,
    "reasoning_truncated": lambda replies: f"{_cut(replies)} (they end inside their reasoning), {_THINKING}",
    "tool_call": lambda _: "the model called a tool: --agent tools",
    "json": lambda _: (
        "replies hold JSON, and the action is a line 'Action: ...': say so with --prompts, or give "
        "--agent tools"
    ),
    "empty": lambda _: (
        "replies are empty: see what the server says to one request, its chat template and its stop tokens"
    ),
    "no_action": lambda replies: (
        "no line 'Action: ...': the model may be no chat model, or its chat template a wrong one (--chat-template)"
        if replies.agent in _ASK_FOR_LINES
        else f"the agent {replies.agent} finds no action in them; {_LOOK}"
    ),
    "thought_only": lambda replies: (
        "the model calls no tool: start its server with the parser of its tool calls, or give --agent react"
        if replies.agent == "tools"
        else "a thought and no action: say with --prompts that both lines are needed"
    ),
    "bad_call": lambda _: "calls of another tool than `act`, or without a command; --agent react needs none",
    "several_actions": lambda _: "several actions in one, of which only the first is carried out",
    "several_refused": lambda _: "several actions or lines in one, of which none is carried out",
    "invented_observation": lambda _: (
        "the model goes on to write the observation itself, which is cut off; what it did before counts"
    ),
    "protocol_invalid": lambda _: (
        "the protocol of --protocol calls them invalid by its own rule, and carries them out all the same"
    ),
    "echoed_observation": lambda _: (
        "the observation is repeated before the thought; that part is passed over"
    ),
}
