"""Read the messages of one record of other projects' training data (layouts: docs/data-formats.md).

If a field changes the messages or the turns to train on and this module does not read the field, it refuses the record
with a reason that names the field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from evalharness.protocol import react
from evalharness.training.datasets.atif import is_atif, read_steps
from evalharness.training.datasets.conversation import Role, UnfitError, parse_json

Fields = Mapping[str, Any]
_ROLES: Mapping[str, Role] = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user", "observation": "user", "environment": "user", "dm": "user", "prompter": "user",
    "assistant": "assistant", "gpt": "assistant", "chatgpt": "assistant", "model": "assistant", "bot": "assistant",
    "agent": "assistant", "player": "assistant", "bing": "assistant", "bard": "assistant", "ai": "assistant",
}  # fmt: skip
_LISTS = ("messages", "conversations", "conversation", "dialog", "trajectory", "steps")
_PROMPTS = ("prompt", "instruction", "question", "query", "input")
_OPENINGS = (*_PROMPTS, "task", "goal")
"""Fields that can hold the user's first message if the list of messages begins with an action."""
_ANSWERS = ("completion", "response", "output", "answer")
_SYSTEMS = ("system", "system_prompt")
_TEXTS = ("content", "value", "text", "message")
_NAMES = ("role", "from", "source")
_REASONING = ("reasoning_content", "reasoning", "thinking")
_STEP = ("thought", "action", "observation")
"""Fields on the turns of AgentRefine's trajectories and of agents' logs, in upper or lower case."""
_MEDIA = tuple(f"{medium}{s}" for medium in ("image", "video", "audio") for s in ("", "s"))
_UNREADABLE = (
    *_MEDIA, "train_detail", "training_detail", "segments", "input_ids", "completions",
    "mask", "masks", "masked", "train_mask", "no_loss", "ignore_loss", "ignore", "ignore_turns", "skip",
    "weights", "turn_weights", "loss_weights",
    "tools", "functions", "tool_definitions", "tool_calls", "function_call",
    "chosen", "rejected", "preferred_output", "non_preferred_output", "history",
)  # fmt: skip
"""Fields that change the messages or the turns to train on. This module does not read them and refuses their records.
"""
_VERDICTS = ("label", "kto_tag", "success", "successful", "is_success", "task_success", "succeeded", "resolved",
             "is_resolved", "passed", "correct", "is_correct", "accepted", "desirable", "solved", "is_solved", "won",
             "valid", "is_valid", "good", "is_good")  # fmt: skip
_FAULTS = ("failed", "failure", "is_failure", "undesirable", "bad", "is_bad", "invalid", "error", "has_error")
_REWARDS = ("reward", "rewards", "final_reward", "total_reward", "return", "success_rate", "progress")
_OUTCOMES = ("outcome", "result", "status", "verdict", "quality")
"""Fields that mark a bad example only if they hold a word of `_NO`."""
_NO = ("false", "no", "bad", "fail", "failed", "failure", "incorrect", "wrong", "rejected", "undesirable", "negative",
       "unsuccessful", "unresolved", "unsolved", "invalid", "error", "timeout", "max_steps")  # fmt: skip
_NO_TEXT = f"a message has no text (looked for: {', '.join(_TEXTS)})"
_READ_OF_MESSAGES = frozenset((*_TEXTS, *_NAMES, *_REASONING, *_STEP, "turn", "step_id"))
"""Message fields that `list_unread_fields` does not report: they are read, or they only number the message."""


class SpokenText(NamedTuple):
    """The text of one speaker. A message that holds an action and the environment's answer gives two texts."""

    role: Role
    text: str
    marks: Fields = MappingProxyType({})
    """The message's fields; the module `marks` reads loss masks and error marks from them."""
    observed: bool = False
    """Whether the text is an observation of the environment."""


def list_messages(record: object) -> list[Any]:
    """Return the record's list of messages without checking them; empty if the record has no such list."""
    if isinstance(record, list):
        return record
    try:
        return _find_list(record)[1] if isinstance(record, Mapping) else []
    except UnfitError:
        return []


def _find_list(record: Fields) -> tuple[str, list[Any]]:
    """Return the name of the field with the messages, and the messages. The field may hold their list as JSON text."""
    for key in _LISTS:
        value = record.get(key)
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = parse_json(value)
        if isinstance(value, list) and value:
            return key, value
    return "", []


def _read_speaker(message: Fields) -> str:
    """Return the speaker that the message names, or the speaker that its fields imply: "agent" for an action."""
    named = next((message[key] for key in _NAMES if isinstance(message.get(key), str)), None)
    if named is None:
        step = {str(key).lower() for key in message}
        return "agent" if "action" in step else "environment" if "observation" in step else ""
    return str(named).strip().lower()


def read_role(message: Fields) -> Role:
    """Return the role of the message's speaker. Raises UnfitError."""
    speaker = _read_speaker(message)
    if not speaker:
        raise UnfitError(f"a message does not name its speaker (looked for: {', '.join(_NAMES)})")
    if speaker not in _ROLES:
        raise UnfitError("a message has a role that cannot be read here")
    return _ROLES[speaker]


def read_messages(record: Fields, read: set[str]) -> list[Fields]:
    """Return the record's messages, with the answer if a field of its own holds the answer. Adds the names of the
    fields used to `read`. Raises UnfitError, also if the record is marked as a bad example."""
    _refuse_unreadable(record)
    _refuse_bad(record)
    name, listed = _find_list(record)
    read.add(name)
    if is_atif(record):
        listed = read_steps(_as_objects(listed))
    messages = _as_objects(listed) if listed else _read_prompt(record, read)
    if listed and read_role(messages[0]) == "assistant":
        texts = [key for key in _OPENINGS if _is_text(record.get(key)) and " " in record[key].strip()]
        messages = [*({"role": "user", "content": record[key]} for key in texts[:1]), *messages]
        read.update(texts[:1])
    if not messages:
        raise UnfitError(
            f"it has no list of messages (looked for: {', '.join(_LISTS)}) and no prompt "
            f"(looked for: {', '.join(_PROMPTS)})"
        )
    return messages if read_role(messages[-1]) == "assistant" else [*messages, *_read_answer(record, read)]


def read_texts(record: Fields, messages: Sequence[Fields], read: set[str]) -> list[SpokenText]:
    """Return the text of each speaker, the system text first, with reasoning as part of the text. Raises UnfitError."""
    texts: list[SpokenText] = []
    acts = False
    for spoken in (spoken for message in messages for spoken in _split_message(message)):
        if spoken.observed and acts and not spoken.text.startswith("Observation:"):
            spoken = spoken._replace(text=f"Observation: {spoken.text}")
        if spoken.role == "assistant":
            acts = react.parse(spoken.text).action is not None
        texts.append(spoken)
    named = [key for key in _SYSTEMS if _is_text(record.get(key))]
    system = [record[key] for key in named]
    if texts[0].role == "system":
        system.append(texts.pop(0).text)
    read.update(named)
    if len(set(system)) > 1:
        raise UnfitError(f"it has several system texts (one of them its {named[0]!r})")
    return [SpokenText("system", system[0]), *texts] if system else texts


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _as_objects(listed: Sequence[Any]) -> list[Fields]:
    if not all(isinstance(message, dict) for message in listed):
        raise UnfitError("a message is no object")
    return list(listed)


def _first(fields: Fields, names: Sequence[str]) -> Any:
    """Return the first value in `fields` under one of `names` that is not None; None if all are."""
    return next((fields[key] for key in names if fields.get(key) is not None), None)


# --- records that must not be trained ----------------------------------------------------------------------------


def _refuse_unreadable(fields: Fields) -> None:
    if (
        key := next((key for key in _UNREADABLE if fields.get(key) not in (None, "", [], {})), None)
    ) is not None:
        raise UnfitError(f"its field {key!r} cannot be read here")


def flatten(fields: Fields, before: str = "", room: int = 4) -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, value) of each field; a nested object gives the fields in it, up to `room` levels."""
    for key, value in fields.items():
        if isinstance(value, Mapping) and value and room:
            yield from flatten(value, f"{before}{key}.", room - 1)
        else:
            yield f"{before}{key}", value


def _refuse_bad(record: Fields) -> None:
    """Raise UnfitError if a field of the record says that it failed, is undesirable, or must not be trained on."""
    fields = {key: value for key, value in record.items() if key not in _LISTS}
    for key in _ABOUT:  # parquet files hold the fields of `_ABOUT` as JSON text
        if isinstance(value := fields.get(key), str) and value.lstrip().startswith("{"):
            fields[key] = parse_json(value)
    for name, value in flatten(fields):
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
            raise UnfitError(f"its field {name!r} marks it as a bad example")


_ABOUT = ("metadata", "meta", "info", "extra_info")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WHOLE = re.compile(r"\.(?:value|total|overall|final|mean)$", re.IGNORECASE)
"""Suffix that is removed from a field's name, so that `reward.total` is read like `reward`."""


def says_no(value: object) -> bool:
    """Return whether the value is a word of `_NO`, a number of 0 or less, or a list of only such values."""
    if isinstance(value, str) and value.strip().lower() in _NO:
        return True
    return _is_no_reward(value)


def _is_no_reward(value: object) -> bool:
    """Return whether the value is 0 or less (as a number or text), or a list for which `says_no` is true everywhere."""
    if isinstance(value, list):
        return bool(value) and all(map(says_no, value))
    if isinstance(value, str):
        return re.fullmatch(r"\s*(-\s*\d+(\.\d*)?|0+(\.0*)?)\s*", value) is not None
    return isinstance(value, bool | int | float) and value <= 0


# --- prompts and answers -----------------------------------------------------------------------------------------


def _read_prompt(record: Fields, read: set[str]) -> list[Fields]:
    """Return the messages before the answer: TRL's prompt, alpaca's instruction with its input, or a question."""
    present = [key for key in _PROMPTS if record.get(key)]
    names = [key for key in present if key != "input"] or present
    if len(names) > 1:
        raise UnfitError(f"it has several prompts: {', '.join(names)}")
    read.update(present)
    texts = [record[key] for key in dict.fromkeys((*names, *present))]
    if len(texts) == 1 and isinstance(texts[0], list):
        return _as_objects(texts[0])
    if not all(isinstance(text, str) for text in texts):
        raise UnfitError(f"its prompt is neither a text nor messages ({', '.join(present)})")
    return [{"role": "user", "content": "\n".join(texts)}] if texts else []


def _read_answer(record: Fields, read: set[str]) -> list[Fields]:
    """Return the messages of the answer field (`completion`, `response`, ...); empty without such a field."""
    answers = [key for key in _ANSWERS if record.get(key)]
    if len(answers) > 1:
        raise UnfitError(f"it has several answers: {', '.join(answers)}")
    if not answers:
        return []
    answer = record[answers[0]]
    read.update(answers)
    if isinstance(answer, str):
        thoughts = {key: record[key] for key in _REASONING if record.get(key)}
        read.update(thoughts)
        return [{"role": "assistant", "content": answer, **thoughts}]
    return _as_objects(answer if isinstance(answer, list) else [answer])


# --- one message -------------------------------------------------------------------------------------------------


def list_unread_fields(message: Fields) -> list[str]:
    """Return the names of fields that `read_texts` ignores, such as a second text or a thought of the environment."""
    used = [next((key for key in keys if message.get(key) is not None), "") for keys in (_TEXTS, _NAMES)]
    inner = () if read_role(message) == "assistant" else (*_REASONING, "thought")
    return [
        str(key)
        for key in message
        if (name := str(key).lower()) not in _READ_OF_MESSAGES
        or name in inner
        or (name in (*_TEXTS, *_NAMES) and key not in used)
    ]


def _split_message(message: Fields) -> Iterator[SpokenText]:
    """Yield the speaker's text and, if the message also holds the environment's answer, that answer."""
    _refuse_unreadable(message)
    role = read_role(message)
    step = {str(key).lower(): value for key, value in message.items() if str(key).lower() in _STEP}
    reasoning = [message[key] for key in _REASONING if message.get(key)]
    if role == "assistant" and not all(isinstance(text, str) for text in reasoning):
        raise UnfitError("its reasoning is no text")
    content, action, observation = _first(message, _TEXTS), step.get("action"), step.get("observation")
    for value in (action, observation):
        if value is not None and not isinstance(value, str):
            raise UnfitError("its action or observation is no text")
    if isinstance(content, list):
        content = _join_texts(content)
    if action is not None and role != "assistant":
        raise UnfitError(f"a message of role {role} acts")
    if content is None and (action is not None or (observation is not None and role != "assistant")):
        content = ""
    if not isinstance(content, str):
        raise UnfitError(_NO_TEXT)
    if role != "assistant":
        text = "\n".join(filter(None, (content, observation)))
        yield SpokenText(role, text, message, observed=observation is not None)
        return
    reply = _write_reply(content, step.get("thought"), "\n\n".join(reasoning), action)
    turn = SpokenText(role, reply, message)
    answer = [] if observation is None else [SpokenText("user", observation, observed=True)]
    order = [str(key).lower() for key in message if str(key).lower() in (*_STEP, *_TEXTS)]
    yield from (*answer, turn) if order[:1] == ["observation"] else (turn, *answer)


def _join_texts(parts: Sequence[Any]) -> str:
    """Return the text of a message whose content is a list of texts."""
    texts = [_first(part, ("text", "value", "content")) if isinstance(part, dict) else part for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise UnfitError("a part of a message is no text")
    return "".join(texts)


_LABEL = re.compile(r"\s*(?:thought|action)\s*:\s*", re.IGNORECASE)


def _write_reply(text: str, thought: object, reasoning: str, action: str | None) -> str:
    """Return the assistant's text, completed by the thought, reasoning and action from the message's other fields."""
    if isinstance(thought, str) and thought.strip() and thought.strip() not in text:
        text = f"Thought: {_LABEL.sub('', thought, count=1).strip()}\n{text}".rstrip()
    if action is not None:
        action = _LABEL.sub("", action, count=1) if _LABEL.match(action) else action
        if react.parse(text).action != action.strip():
            if react.parse(text).action is not None:
                raise UnfitError("a turn has one action in its text and another beside it")
            thoughts = text if not text.strip() or _LABEL.match(text) else f"Thought: {text}"
            text = "\n".join(filter(None, (thoughts, f"Action: {action.strip()}")))
    beside = [part for part in reasoning.split("\n\n") if part.strip() and part.strip() not in text]
    return "<think>\n{}\n</think>\n\n{}".format("\n\n".join(beside), text) if beside else text
