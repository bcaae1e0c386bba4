"""Warn if nearly every reply has a format error, or if nearly every action is refused; name the cause and a remedy.

A token limit or a wrong interface can cause a score of 0 that says nothing about the model. The user should learn this
after twenty replies instead of after hours.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from evalharness.protocol.react import FormatError, answer_in, template_token_in
from evalharness.protocol.reasoning import find_unknown_marks
from evalharness.records.episode import Episode, Turn
from evalharness.records.summary import ReplyTrouble

ENOUGH = 20
"""Number of replies before a running evaluation warns."""
_ENOUGH_ACTIONS = 10
_EXAMPLES = 3
"""Number of refused actions in a warning."""
_NEARLY_ALL = 0.9
_MOST = 0.5
"""A warning names a cause only if it explains at least this share of the format errors."""
_JSON = re.compile(r"\s*(?:```\w*\s*)?[\[{]\s*[\"'\]{}\[]")
_CALL = re.compile(
    r'<\|?tool_call|<function[=_]|"(?:tool_calls?|function_call|arguments|parameters)"\s*:|\[TOOL_CALLS\]'
)
_ASK_FOR_LINES = ("react", "act")
"""Agents that ask for a line `Action: ...`; only for them can a warning give advice on the format."""
_LOOK = "look at some replies: evalharness show RUN TASK_ID"
_THINKING = "or have it think less: --chat-template-kwargs '{\"enable_thinking\": false}' where its template takes that"


def cut_prompts(episodes: int, turn: int) -> str:
    """Return the warning about a server that drops the beginning of prompts. `turn`: first turn with a cut prompt."""
    were = "1 episode" if episodes == 1 else f"{episodes} episodes"
    return (
        f"{were} became longer than the context, and the server dropped the beginning without an error (from turn "
        f"{turn} on, its prompt tokens did not grow): the scores are invalid; serve it with a longer context (Ollama: "
        "num_ctx or OLLAMA_CONTEXT_LENGTH; llama.cpp: --ctx-size, without --context-shift; LM Studio: context length; "
        "vLLM, SGLang: --max-model-len, --context-length)"
    )


@dataclass
class Replies:
    """Counts replies with format errors, refused actions, template tokens and unknown tags."""

    max_tokens: int
    agent: str = "react"
    turns: int = 0
    errors: int = 0
    """Number of replies with a format error."""
    causes: Counter[str] = field(default_factory=Counter)
    actions: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Actions that the environment refused."""
    tokens: Counter[str] = field(default_factory=Counter)
    """Token of the chat template -> number of replies in which the server left it; one token counts per reply."""
    marks: Counter[str] = field(default_factory=Counter)
    """Unknown tags around an action -> number of replies."""

    def add(self, turn: Turn) -> None:
        self.turns += 1
        if token := template_token_in(turn.reply):
            self.tokens[token] += 1
        self.marks.update(set(find_unknown_marks(turn.reply)))
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
        """Return a warning about format errors; "" if there are few."""
        if not self.is_trouble:
            return ""
        head = f"{_how_many(self.errors, self.turns)} a format error"
        [(cause, count)] = self.causes.most_common(1)
        if count < _MOST * self.errors:
            parts = ", ".join(f"{name} {n}" for name, n in sorted(self.causes.items()))
            return f"{head} ({parts}); {_LOOK}"
        return f"{head}: {_ADVICE[cause](self)}"

    def describe_refusals(self) -> str:
        """Return a warning; "" unless the environment refuses nearly every action."""
        refused = self.refused.total()
        if self.actions < _ENOUGH_ACTIONS or refused < _NEARLY_ALL * self.actions:
            return ""
        examples = ", ".join(repr(action)[:80] for action, _ in self.refused.most_common(_EXAMPLES))
        head = f"the environment refused {refused} of {self.actions} actions, as received: {examples}"
        return f"{head}; {_LOOK}"

    def describe_tokens(self) -> str:
        """Return a warning; "" unless the server left tokens of its chat template in replies."""
        if not self.tokens:
            return ""
        return (
            f"a fault of the server, not of the model: {self.tokens.total()} of {self.turns} replies contain tokens of "
            f"the chat template ({', '.join(self.tokens)}); check its chat template and stop tokens"
        )

    def describe_marks(self) -> str:
        """Return a warning; "" unless replies have an action inside unknown tags."""
        if not self.marks:
            return ""
        marks = ", ".join(mark for mark, _ in self.marks.most_common(_EXAMPLES))
        return (
            f"{self.marks.total()} of {self.turns} replies have an action inside {marks}: it counts as reasoning and "
            "is not carried out; let the server separate the reasoning (--reasoning-parser)"
        )

    def warning(self) -> str:
        """Return one line with all warnings about a run in progress."""
        form = self.describe_errors() if self.turns >= ENOUGH else ""
        return "; ".join(
            filter(None, (form, self.describe_refusals(), self.describe_tokens(), self.describe_marks()))
        )

    def troubles(self) -> dict[str, ReplyTrouble]:
        """Map the summary's key of each problem (such as `format_trouble`) to the problem with its warning."""
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
        "replies contain JSON instead of a line 'Action: ...': ask for that line with --prompts, or give --agent tools"
    ),
    "empty": lambda _: (
        "replies are empty: send one request to the server; check its chat template and its stop tokens"
    ),
    "no_action": lambda replies: (
        "no line 'Action: ...': the model may not be a chat model, or its chat template is wrong (--chat-template)"
        if replies.agent in _ASK_FOR_LINES
        else f"the agent {replies.agent} finds no action in the replies; {_LOOK}"
    ),
    "thought_only": lambda replies: (
        "the model calls no tool: start its server with a parser for tool calls, or give --agent react"
        if replies.agent == "tools"
        else "a thought without an action: ask for both lines with --prompts"
    ),
    "bad_call": lambda _: "calls of another tool than `act`, or without a command; --agent react needs none",
    "several_actions": lambda _: "several actions in one reply; only the first is carried out",
    "several_refused": lambda _: "several actions or lines in one reply; none is carried out",
    "invented_observation": lambda _: (
        "the model writes the observation itself; that part is cut off, and the action before it counts"
    ),
    "protocol_invalid": lambda _: (
        "the protocol of --protocol counts these replies as invalid by its own rule, but carries them out"
    ),
    "echoed_observation": lambda _: (
        "the reply repeats the observation before the thought; that part is ignored"
    ),
}
