"""A record of somebody else's training data -> who says what, whatever layout it has. Pure.

A field with meaning is read, or the record is refused with a reason that names it; the caller names every other field.
Calls of tools become `Action:` lines, and their answers `Observation:` lines: the form in which agents act here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from evalharness.protocol import react
from evalharness.protocol.tools import NAME as ACT
from evalharness.training.datasets.conversation import Role, UnfitError, parse_json

Fields = Mapping[str, Any]
_ROLES: Mapping[str, Role] = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user", "observation": "user", "environment": "user", "dm": "user", "prompter": "user",
    "assistant": "assistant", "gpt": "assistant", "chatgpt": "assistant", "model": "assistant", "bot": "assistant",
    "agent": "assistant", "player": "assistant", "bing": "assistant", "bard": "assistant", "ai": "assistant",
    "tool": "user", "function": "user", "function_response": "user", "function_result": "user",
    "tool_response": "user", "ipython": "user", "function_call": "assistant", "tool_call": "assistant",
}  # fmt: skip
_TOOLS = ("tool", "function", "function_response", "function_result", "tool_response", "ipython", "function_call",
          "tool_call")  # fmt: skip
"""Speakers that stand for a call of a tool, or for what it answered."""
_LISTS = ("messages", "conversations", "conversation", "dialog", "trajectory", "steps")
_PROMPTS = ("prompt", "instruction", "question", "query", "input")
_OPENINGS = (*_PROMPTS, "task", "goal")
"""They may hold what a trajectory that begins with an action answers."""
_ANSWERS = ("completion", "response", "output", "answer")
_PREFERRED = {"chosen": "rejected", "preferred_output": "non_preferred_output"}
"""The better answer -> the worse one, of TRL and LLaMA-Factory, and of OpenAI."""
WORSE = frozenset(_PREFERRED.values())
_SYSTEMS = ("system", "system_prompt")
_TOOL_LISTS = ("tools", "functions", "tool_definitions")
_TEXTS = ("content", "value", "text", "message")
_NAMES = ("role", "from", "source")
_REASONING = ("reasoning_content", "reasoning", "thinking")
_STEP = ("thought", "action", "observation")
"""On the turns of AgentRefine's trajectories and of agents' logs; the case differs."""
_MEDIA = tuple(f"{medium}{s}" for medium in ("image", "video", "audio") for s in ("", "s"))
_UNREADABLE = (
    *_MEDIA, "train_detail", "training_detail", "segments", "input_ids", "completions",
    "mask", "masks", "masked", "train_mask", "no_loss", "ignore_loss", "ignore", "ignore_turns", "skip",
    "weights", "turn_weights", "loss_weights",
)  # fmt: skip
"""Fields that change what is said or trained, and cannot be read here."""
_VERDICTS = ("label", "kto_tag", "success", "successful", "is_success", "task_success", "succeeded", "resolved",
             "is_resolved", "passed", "correct", "is_correct", "accepted", "desirable", "solved", "is_solved", "won",
             "valid", "is_valid", "good", "is_good")  # fmt: skip
_FAULTS = ("failed", "failure", "is_failure", "undesirable", "bad", "is_bad", "invalid", "error", "has_error")
_REWARDS = ("reward", "rewards", "final_reward", "total_reward", "return", "success_rate", "progress")
_OUTCOMES = ("outcome", "result", "status", "verdict", "quality")
"""They can say in a word of `_NO` that a record is a bad example, and other things."""
_NO = ("false", "no", "bad", "fail", "failed", "failure", "incorrect", "wrong", "rejected", "undesirable", "negative",
       "unsuccessful", "unresolved", "unsolved", "invalid", "error", "timeout", "max_steps")  # fmt: skip
_NO_TEXT = f"a message has no text (looked for: {', '.join(_TEXTS)})"
_READ_OF_MESSAGES = frozenset(
    (*_TEXTS, *_NAMES, *_REASONING, *_STEP, "tool_calls", "function_call", "tool_call_id", "turn", "step_id")
)
"""Fields of messages that are read here, or that only say which message it is."""


class Part(NamedTuple):
    """One message, or part of one, by one speaker."""

    role: Role
    text: str
    marks: Fields = MappingProxyType({})
    """The message that it is of, for masks and marks."""
    calls: bool = False
    """It calls a tool, which its text did not say."""
    observed: bool = False
    """It is what the world or a tool answered."""


def listed_messages(record: object) -> list[Any]:
    """The list of messages of a record, nothing read off them yet; empty where there is none."""
    if isinstance(record, list):
        return record
    try:
        return _list_of(record)[1] if isinstance(record, Mapping) else []
    except UnfitError:
        return []


def _list_of(record: Fields) -> tuple[str, list[Any]]:
    """(name, messages); the list may be JSON in a text."""
    for key in _LISTS:
        value = record.get(key)
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = parse_json(value)
        if isinstance(value, list) and value:
            return key, value
    return "", []


def uses_tools(messages: Sequence[Any]) -> bool:
    return any(isinstance(message, Mapping) and _speaker(message) in _TOOLS for message in messages)


def _speaker(message: Fields) -> str:
    """As the message names it, else "". Which of a step's fields it has says it, too."""
    named = next((message[key] for key in _NAMES if isinstance(message.get(key), str)), None)
    if named is None:
        step = {str(key).lower() for key in message}
        return "agent" if "action" in step else "environment" if "observation" in step else ""
    return str(named).strip().lower()


def role_of(message: Fields) -> Role:
    """Raises UnfitError."""
    speaker = _speaker(message)
    if not speaker:
        raise UnfitError(f"a message says nowhere who speaks (looked for: {', '.join(_NAMES)})")
    if speaker not in _ROLES:
        raise UnfitError("a message is of a role that is not known here")
    return _ROLES[speaker]


def raw_messages(record: Fields, read: set[str]) -> list[Fields]:
    """The messages as they stand in the record, an answer beside them included. The names of the fields that they are
    made of go to `read`. Raises UnfitError, also for a record that calls itself a bad example."""
    _refuse_unreadable(record)
    _refuse_bad(record)
    name, listed = _list_of(record)
    read.add(name)
    messages = _objects(listed) if listed else _prompt(record, read)
    if listed and role_of(messages[0]) == "assistant":
        texts = [key for key in _OPENINGS if _is_text(record.get(key)) and " " in record[key].strip()]
        messages = [*({"role": "user", "content": record[key]} for key in texts[:1]), *messages]
        read.update(texts[:1])
    messages = _with_answer(record, messages, read)
    if not messages:
        raise UnfitError(
            f"it has no list of messages (looked for: {', '.join(_LISTS)}) and no prompt "
            f"(looked for: {', '.join(_PROMPTS)})"
        )
    return messages


def parts_of(record: Fields, messages: Sequence[Fields], read: set[str]) -> list[Part]:
    """What is said, turn by turn: system text and tools first, calls and reasoning written out. Raises UnfitError."""
    parts: list[Part] = []
    acts = False
    for part in (part for message in messages for part in _parts(message)):
        if part.observed and acts and not part.text.startswith("Observation:"):
            part = part._replace(text=f"Observation: {part.text}")
        if part.role == "assistant":
            acts = react.parse(part.text).action is not None
        parts.append(part)
    named = [key for key in _SYSTEMS if _is_text(record.get(key))]
    texts = [record[key] for key in named]
    if parts[0].role == "system":
        texts.append(parts.pop(0).text)
    read.update(named)
    if len(set(texts)) > 1:
        raise UnfitError(f"it has several system texts (one of them its {named[0]!r})")
    tools = _tools(record, read)
    if tools or any(part.calls for part in parts):
        texts = [*texts[:1], "\n".join((_CALLING, *tools))]
    return [Part("system", "\n\n".join(texts[:2])), *parts] if texts else parts


_CALLING = f"A tool is called by a line `Action: NAME(ARGUMENTS)`, the tool `{ACT}` by `Action: COMMAND`."


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _objects(listed: Sequence[Any]) -> list[Fields]:
    if not all(isinstance(message, dict) for message in listed):
        raise UnfitError("a message is no object")
    return list(listed)


def _first(fields: Fields, names: Sequence[str]) -> Any:
    """The value of the first of `names` that has one; None if none has."""
    return next((fields[key] for key in names if fields.get(key) is not None), None)


def _tools(record: Fields, read: set[str]) -> list[str]:
    """The definitions of the record's tools, a line each."""
    lines: list[str] = []
    for key in _TOOL_LISTS:
        if value := record.get(key):
            tools = parse_json(value) if isinstance(value, str) else value
            lines += map(json.dumps, tools if isinstance(tools, list) else [tools])
            read.add(key)
    return lines


# --- what a record says of itself --------------------------------------------------------------------------------


def _refuse_unreadable(fields: Fields) -> None:
    if (
        key := next((key for key in _UNREADABLE if fields.get(key) not in (None, "", [], {})), None)
    ) is not None:
        raise UnfitError(f"its field {key!r} cannot be read here")


def nested_fields(fields: Fields, before: str = "", room: int = 4) -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of each field; an object's own fields stand in its place."""
    for key, value in fields.items():
        if isinstance(value, Mapping) and value and room:
            yield from nested_fields(value, f"{before}{key}.", room - 1)
        else:
            yield f"{before}{key}", value


def _refuse_bad(record: Fields) -> None:
    """Raises UnfitError for what its own fields call a failure, an undesired answer, or not to be trained."""
    fields = {key: value for key, value in record.items() if key not in _LISTS}
    for key in _ABOUT:  # parquet has them as JSON in a text
        if isinstance(value := fields.get(key), str) and value.lstrip().startswith("{"):
            fields[key] = parse_json(value)
    for name, value in nested_fields(fields):
        match _CAMEL.sub("_", _WHOLE.sub("", name)).lower().rpartition(".")[2]:
            case key if key in _VERDICTS or name in ("train", "loss"):
                bad = says_no(value)
            case key if key in _FAULTS:
                bad = value is True or (
                    isinstance(value, str) and value.strip().lower() in ("true", "yes", "1")
                )
            case key if key in _REWARDS or _WHOLE.sub("", name) in (
                "score",
                "weight",
                "loss_weight",
                "sample_weight",
            ):
                bad = _is_no_reward(value)
            case key:
                bad = key in _OUTCOMES and isinstance(value, str) and says_no(value)
        if bad:
            raise UnfitError(f"its field {name!r} says that it is no good example")


_ABOUT = ("metadata", "meta", "info", "extra_info")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WHOLE = re.compile(r"\.(?:value|total|overall|final|mean)$", re.IGNORECASE)
"""`reward.total` is the reward."""


def says_no(value: object) -> bool:
    """Also a list of nothing else."""
    if isinstance(value, str) and value.strip().lower() in _NO:
        return True
    return _is_no_reward(value)


def _is_no_reward(value: object) -> bool:
    """0 or less, also as a text, or a list of nothing else."""
    if isinstance(value, list):
        return bool(value) and all(map(says_no, value))
    if isinstance(value, str):
        return re.fullmatch(r"\s*(-\s*\d+(\.\d*)?|0+(\.0*)?)\s*", value) is not None
    return isinstance(value, bool | int | float) and value <= 0


# --- prompts and answers -----------------------------------------------------------------------------------------


def _prompt(record: Fields, read: set[str]) -> list[Fields]:
    """What precedes the answer: TRL's prompt, alpaca's instruction with its input and history, a question."""
    there = [key for key in _PROMPTS if record.get(key)]
    names = [key for key in there if key != "input"] or there
    if len(names) > 1:
        raise UnfitError(f"it has several prompts: {', '.join(names)}")
    if not names:
        return []
    read.update((*there, "history"))
    texts = [record[key] for key in dict.fromkeys((*names, *there))]
    pairs = record.get("history") or []
    if len(texts) == 1 and isinstance(texts[0], list) and not pairs:
        return _objects(texts[0])
    if not all(isinstance(text, str) for text in texts):
        raise UnfitError(f"its prompt is neither a text nor messages ({', '.join(there)})")
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise UnfitError("its history is no list of questions with their answers")
    speakers = ("user", "assistant")
    turns = [(role, text) for pair in pairs for role, text in zip(speakers, pair, strict=True)]
    return [{"role": role, "content": text} for role, text in (*turns, ("user", "\n".join(texts)))]


def _with_answer(record: Fields, context: list[Fields], read: set[str]) -> list[Fields]:
    """With the answer that stands beside its context: the preferred one of two, or the only one."""
    worse = next(
        (worse for key, worse in _PREFERRED.items() if record.get(worse) and not record.get(key)), None
    )
    if worse is not None:
        raise UnfitError(f"its field {worse!r} has no better answer beside it")
    is_open = bool(context) and role_of(context[-1]) != "assistant"
    answers = [key for key in (*_PREFERRED, *(_ANSWERS if is_open else ())) if record.get(key)]
    if len(answers) > 1:
        raise UnfitError(f"it has several answers: {', '.join(answers)}")
    if not answers:
        return context
    name, answer = answers[0], record[answers[0]]
    read.add(name)
    if isinstance(answer, str):
        thoughts = {key: record[key] for key in _REASONING if record.get(key)}
        answer = [{"role": "assistant", "content": answer, **thoughts}]
        read.update(thoughts)
    whole = _objects(answer if isinstance(answer, list) else [answer])
    before, after = ([(role_of(each), _first(each, _TEXTS)) for each in part] for part in (context, whole))
    if after[-1:] == before[-1:]:
        goes_on = before[-len(after) :] == after
        whole = context
    elif after[0][0] == "assistant":
        goes_on = is_open
        whole = [*context, *whole]
    else:  # TRL and UltraFeedback repeat the prompt, perhaps without the system's text
        known = before[1:] if before and before[0][0] == "system" != after[0][0] else before
        goes_on = after[: len(known)] == known
        whole = [*context[: len(before) - len(known)], *whole]
    if goes_on:
        return whole
    raise UnfitError(f"its field {name!r} does not go on from the rest of the record")


# --- one message -------------------------------------------------------------------------------------------------


def unread_fields(message: Fields) -> list[str]:
    """The names of fields that `parts_of` does not read: also a second text, and what the world thought."""
    used = [next((key for key in keys if message.get(key) is not None), "") for keys in (_TEXTS, _NAMES)]
    inner = () if role_of(message) == "assistant" else (*_REASONING, "thought")
    return [
        str(key)
        for key in message
        if (name := str(key).lower()) not in _READ_OF_MESSAGES
        or name in inner
        or (name in (*_TEXTS, *_NAMES) and key not in used)
    ]


def _parts(message: Fields) -> Iterator[Part]:
    """What the speaker says and, if it stands on the same message, what the world answers."""
    _refuse_unreadable(message)
    role, speaker = role_of(message), _speaker(message)
    step = {str(key).lower(): value for key, value in message.items() if str(key).lower() in _STEP}
    calls, reasoning = _calls(message), [message[key] for key in _REASONING if message.get(key)]
    if role == "assistant" and not all(isinstance(text, str) for text in reasoning):
        raise UnfitError("its reasoning is no text")
    content = _first(message, _TEXTS)
    if isinstance(content, list):
        content = _text_of(content, calls, reasoning)
    if speaker in _TOOLS:
        if role == "assistant" and isinstance(content, str) and (named := _calls_in(content)):
            content, calls = "", [*calls, *named]
        elif isinstance(content, dict):
            content = json.dumps(content)
    if isinstance(action := step.get("action"), dict):
        calls.append(action)
    actions = [*([action] if isinstance(action, str) else []), *map(_action_of, calls)]
    if len(set(actions)) > 1 or len(calls) > 1 + bool(message.get("function_call")):
        raise UnfitError("a turn calls several tools at once")
    if actions and role != "assistant":
        raise UnfitError(f"a message of role {role} acts")
    seen = _observed(step.get("observation"))
    if content is None and (actions or (seen is not None and role != "assistant")):
        content = ""
    if not isinstance(content, str):
        raise UnfitError(_NO_TEXT)
    if role != "assistant":
        text = "\n".join(filter(None, (content, seen)))
        yield Part(role, text, message, observed=seen is not None or speaker in _TOOLS)
        return
    text = _reply(content, step.get("thought"), "\n\n".join(reasoning), actions[0] if actions else None)
    turn = Part(role, text, message, calls=bool(calls) and text != content)
    answer = [] if seen is None else [Part("user", seen, observed=True)]
    order = [str(key).lower() for key in message if str(key).lower() in (*_STEP, *_TEXTS)]
    yield from (*answer, turn) if order[:1] == ["observation"] else (turn, *answer)


def _text_of(parts: Sequence[Any], calls: list[Any], reasoning: list[str]) -> str:
    """The text of a message that is a list; calls and reasoning go where they belong."""
    texts = []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        inner = _first(part, ("text", "value", "content")) if isinstance(part, dict) else part
        if kind == "tool_use":
            calls.append(part)
        elif kind == "thinking" and isinstance(part.get("thinking"), str):
            reasoning.append(part["thinking"])
        elif isinstance(inner, str):
            texts.append(inner)
        elif kind == "tool_result" and isinstance(inner, list):
            texts.append(_text_of(inner, calls, reasoning))
        else:
            raise UnfitError("a part of a message is no text")
    return "".join(texts)


def _calls(message: Fields) -> list[Any]:
    calls = message.get("tool_calls") or []
    if isinstance(calls, str):
        calls = parse_json(calls)
    single = message.get("function_call")
    return [*(calls if isinstance(calls, list) else [calls]), *([single] if single else [])]


def _calls_in(text: str) -> list[Any]:
    """The calls that a message of LLaMA-Factory's `function_call` is; empty if it is something else."""
    try:
        value = parse_json(text)
    except UnfitError:
        return []
    calls = value if isinstance(value, list) else [value]
    return calls if all(isinstance(call, dict) and "name" in call for call in calls) else []


def _action_of(call: Any) -> str:
    """The call as an action: the command of our own tool, any other one as `name({...})`."""
    call = call if isinstance(call, dict) else {}
    function = call["function"] if isinstance(call.get("function"), dict) else call
    name = _first(function, ("name", "function_name", "tool_name"))
    arguments = _first(function, ("arguments", "input", "parameters", "args"))
    if not isinstance(name, str):
        raise UnfitError("a call of a tool has no name")
    if isinstance(arguments, str):
        try:
            arguments = parse_json(arguments)
        except UnfitError:
            return f"{name}({arguments})"
    values = list(arguments.values()) if isinstance(arguments, dict) else []
    if name == ACT and len(values) == 1 and isinstance(values[0], str) and len(values[0].splitlines()) == 1:
        return values[0].strip()
    return f"{name}({json.dumps({} if arguments is None else arguments)})"


def _observed(value: Any) -> str | None:
    """What the world answered, as a text; ATIF lists the results of several calls."""
    if isinstance(value, dict) and isinstance(value.get("results"), list):
        value = value["results"]
    if isinstance(value, list):
        return "\n".join(filter(None, (_observed(each) for each in value)))
    if isinstance(value, dict):
        inner = _first(value, ("content", "text"))
        return json.dumps(value) if inner is None else _observed(inner)
    return value if value is None or isinstance(value, str) else json.dumps(value)


_LABEL = re.compile(r"\s*(?:thought|action)\s*:\s*", re.IGNORECASE)


def _reply(text: str, thought: object, reasoning: str, action: str | None) -> str:
    """What an assistant says, with what stood beside its text and not in it."""
    if isinstance(thought, str) and thought.strip() and thought.strip() not in text:
        text = f"Thought: {_LABEL.sub('', thought, count=1).strip()}\n{text}".rstrip()
    if action is not None:
        action = _LABEL.sub("", action, count=1) if _LABEL.match(action) else action
        if react.parse(text).action != action.strip():
            if react.parse(text).action is not None:
                raise UnfitError("a turn acts in its text and beside it")
            said = text if not text.strip() or _LABEL.match(text) else f"Thought: {text}"
            text = "\n".join(filter(None, (said, f"Action: {action.strip()}")))
    beside = [part for part in reasoning.split("\n\n") if part.strip() and part.strip() not in text]
    return "<think>\n{}\n</think>\n\n{}".format("\n\n".join(beside), text) if beside else text
