"""`agentgym`: AgentGym's agent. The chat begins with an instruction and the model's "OK", and grows with each turn.

Source: agentenv/ at commit 3ef9235: controller/task.py (messages), controller/utils.py and envs/*.py (reading a reply).
`python -m tests.conform --protocol` compares prompts and actions with the original's.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from evalharness.agents.base import Agent, AgentOptions, EpisodeStart, ModelReply, Request
from evalharness.base.errors import UserError
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import FormatError, ParsedReply

_WITHOUT_BLANK, _ARGUMENT_ALONE = "wait", "choose"
"""Functions whose text is not `words argument`: `wait` has no blank, and `choose` has only the argument."""
_COMMENT = re.compile(r"#.*")
_LONGEST = 10_000
"""Largest reply in characters that is parsed as Python: the parser can crash on deep nesting."""


class NoCallError(ValueError):
    """AgentGym reads no action from this reply."""


def parse_json_call(reply: str, functions: Mapping[str, Any], *, strict: bool) -> tuple[str, str]:
    """Read a function call in JSON and return (thought, action). Raises NoCallError; if `strict`, also for a call with
    too many arguments."""
    try:
        call = json.loads("{" + reply.split("{", 1)[-1].rsplit("}", 1)[0] + "}", strict=False)
        thought, name, given = call["thought"], call["function_name"].strip(), call["arguments"]
        function = functions[name]
        names = function["arguments"]
        if len(given) > 1 and (not function["joint"] or (strict and len(given) > len(names))):
            raise NoCallError
        arguments = [given[names[place]] for place in range(min(len(given), 2))]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise NoCallError from None
    return f"{thought}", _words(name, function, arguments)


def parse_code_call(reply: str, functions: Mapping[str, Any]) -> tuple[str, str]:
    """Read a Python function call and return (comments as thought, action). Raises NoCallError."""
    code = reply.strip()
    if code.startswith("```"):
        code = code.split("\n", 1)[-1]
    if code.endswith("```"):
        code = code.rsplit("\n", 1)[0]
    try:
        call = _parse_code(code)
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise NoCallError
        name, function = call.func.id, functions[call.func.id]
        given = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords if each.arg}
        if len(named) < len(call.keywords):
            raise NoCallError
        arguments = _bind_arguments(function["parameters"], given, named)
    except (ValueError, SyntaxError, LookupError, TypeError, RecursionError, MemoryError):
        raise NoCallError from None
    return " ".join(each.strip() for each in _COMMENT.findall(code)), _words(name, function, arguments)


def _parse_code(code: str) -> ast.expr:
    if len(code) > _LONGEST:
        raise NoCallError
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of invalid escapes in strings
        return ast.parse(code.lstrip(" \t"), mode="eval").body


def _bind_arguments(parameters: Mapping[str, bool], given: list[Any], named: Mapping[str, Any]) -> list[Any]:
    """Bind positional and named arguments as in a Python call, and return them in the order of `parameters` (name ->
    whether it is required). Empty optional arguments are omitted."""
    names = list(parameters)
    if len(given) > len(names) or not named.keys() <= set(names[len(given) :]):
        raise NoCallError
    values = {**dict(zip(names, given, strict=False)), **named}
    if any(needed and name not in values for name, needed in parameters.items()):
        raise NoCallError
    return [values[name] for name in names if parameters[name] or values.get(name)]


def _words(name: str, function: Mapping[str, Any], arguments: list[Any]) -> str:
    words = function["words"]
    match arguments:
        case [only] if name == _ARGUMENT_ALONE:
            return f"{only}"
        case [only] if name == _WITHOUT_BLANK:
            return f"{words}{only}"
        case [only]:
            return f"{words} {only}"
        case [first, second]:
            return f"{words} {first} {function['joint']} {second}"
    return f"{words}"


_END = "</s>"
_LABEL = "Action:"
_LINE = re.compile(r"Action:\s*(.*?)(?=\n|$)", re.DOTALL)
_ARRIVAL = "You arrive at loc "
_TITLE = "-= Welcome to TextWorld, ALFRED! =-\n\n"
_FORMAT = (
    "\n\nWrite each answer in this form:\nThought:\nwhat you think\n\nAction:\nyour next action, one line\n"
)
_OK = "OK. I will do that."


class AgentGymOptions(AgentOptions):
    format: Literal["react", "json", "code"] = "react"
    """form of a reply: thought and action (react), function call in JSON (json), or function call in Python (code)"""
    reading: Literal["last", "line"] = "last"
    """last: the action is the text after the last `Action:`; line (as in AgentGym's BabyAI): it is the rest of the
    line, two actions are refused, and all but letters, digits, commas and spaces is removed"""
    list_actions: bool = False
    """list the available actions in the first observation (as in AgentGym's ALFWorld)"""


class AgentGymAgent(Agent):
    """Sends a chat: instruction, "OK" as the model's answer, first observation, then all replies and observations."""

    name: ClassVar[str] = "agentgym"
    Options: ClassVar[type[AgentOptions]] = AgentGymOptions
    options: AgentGymOptions
    # The agent only appends messages. But its first message lists the actions of the game, so episodes of a kind begin
    # differently, and the report could not show a common first message.
    appends: ClassVar[bool] = False

    def wants_valid_actions(self) -> bool:
        return self.options.list_actions

    def start(self, episode: EpisodeStart) -> None:
        prompt = episode.prompt
        texts: Any = prompt.texts
        chosen = self.options.format
        if chosen != "react" and (texts is None or chosen not in texts):
            raise UserError(
                f"format {chosen} needs the functions that AgentGym lists for {episode.family}, from a whole "
                "checkout: evalharness data protocols import agentgym CHECKOUT"
            )
        if texts is None:
            parts = prompt.system.strip(), prompt.instruction_text(episode.actions, episode.max_turns)
            opening, answer = "\n\n".join(filter(None, parts)) + _FORMAT, _OK
            self._refusal = "Give one action in an answer."
        else:
            of_format = texts if chosen == "react" else texts[chosen]
            opening, answer = str(of_format["instruction"]), str(of_format["answer"])
            self._refusal = str(texts.get("refusal", ""))
        self._texts = texts
        self._messages: list[Message] = [
            {"role": "user", "content": opening},
            {"role": "assistant", "content": answer},
            {"role": "user", "content": self._first(episode)},
        ]
        self._reply = ""
        self._seen, self._answered = self._messages[-1]["content"], True

    def _first(self, episode: EpisodeStart) -> str:
        observation = episode.observation
        if observation.startswith(_TITLE):
            observation = "\n".join(observation.split("\n\n")[1:])
        elif self.options.reading == "line":
            observation = f"Your goal: {episode.goal}\n{observation}"
        else:
            observation = f"{episode.goal}\n{observation}"
        return self._with_actions(observation, episode.valid_actions)

    def _with_actions(self, observation: str, valid_actions: tuple[str, ...] | None) -> str:
        if self.options.list_actions and valid_actions is not None:
            return f"{observation}\nAVAILABLE ACTIONS: {','.join(valid_actions)}"
        return observation

    def request(self) -> Request:
        return Request(self._messages)

    def read(self, said: ModelReply) -> ParsedReply | None:
        self._reply = said.text
        if self.options.format != "react":
            parsed = self._parse_call(said)
            self._answered = parsed.action is not None
            return parsed
        thought = said.text.partition(_LABEL)[0].strip().removeprefix("Thought:").strip()
        action = self._action(said.text)
        errors = (FormatError.SEVERAL_ACTIONS,) if action is None else ()
        return ParsedReply(thought, action, said.text.strip(), errors, said.reasoning)

    def _parse_call(self, said: ModelReply) -> ParsedReply:
        text, functions = _without_end(said.text), self._texts["functions"]
        try:
            if self.options.format == "json":
                strict = bool(self._texts.get("strict_arguments"))
                thought, action = parse_json_call(text, functions, strict=strict)
            else:
                thought, action = parse_code_call(text, functions)
        except NoCallError:
            return ParsedReply("", None, said.text.strip(), (FormatError.NO_ACTION,), said.reasoning)
        return ParsedReply(thought, action, said.text.strip(), (), said.reasoning)

    def _action(self, reply: str) -> str | None:
        if self.options.reading == "line":
            lines = _LINE.findall(reply)
            if len(lines) > 1:
                return None
            return " ".join(re.sub(r"[^A-Za-z0-9, ]+", "", lines[0] if lines else "").split())
        reply = _without_end(reply)
        return reply.rpartition(_LABEL)[2].strip() if _LABEL in reply else ""

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        self._messages += self._turn(self._reply, observation)
        if self._answered:
            self._seen = self._with_actions(without_arrival(observation), valid_actions)

    def turn_messages(self, parsed: ParsedReply, said: ModelReply, observation: str) -> list[Message]:
        return self._turn(said.text, observation)

    def _turn(self, reply: str, observation: str) -> list[Message]:
        return [
            {"role": "assistant", "content": reply},
            {"role": "user", "content": without_arrival(observation)},
        ]

    def correction(self, parsed: ParsedReply) -> str:
        if self.options.format == "react":
            return self._refusal
        return f"{self._texts['invalid']}{self._seen}"


def _without_end(reply: str) -> str:
    return reply[:-5] if reply.endswith(_END) else reply  # one character more than `_END`, as in the original


def without_arrival(observation: str) -> str:
    """Remove ALFWorld's "You arrive at loc 3." from an observation, as AgentGym's server does."""
    return observation[observation.find(". ") + 2 :] if observation.startswith(_ARRIVAL) else observation
