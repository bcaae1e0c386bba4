"""A sample as each trainer takes it, with the turns that are trained. Pure; the files around it are `export`'s.

How a trainer learns to leave a turn out of the loss, as read in their packages (November 2026):

| format | trainer | switch |
|---|---|---|
| `messages` | ms-swift | `messages[].loss` |
| `sharegpt` | Axolotl | `message_field_training`: a key of the message, here `loss` |
| `llamafactory` | LLaMA-Factory 0.9 | none a turn; `mask_history: true` trains the last turn of a sample alone |
| `llamafactory-v1` | LLaMA-Factory's v1 engine | `messages[].loss_weight` |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from evalharness.training.datasets.sample import Sample, SampleMessage

_FROM = {"system": "system", "user": "human", "assistant": "gpt"}


def messages(sample: Sample) -> Iterator[dict[str, Any]]:
    """`loss` stands on the assistant's messages."""
    listed: list[dict[str, Any]] = []
    for message in sample.messages:
        row: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.role == "assistant":
            row["loss"] = message.trained
        listed.append(row)
    yield {"id": sample.id, "messages": listed}


def sharegpt(sample: Sample) -> Iterator[dict[str, Any]]:
    """`loss` on every message: a trainer that reads it looks at each."""
    yield {
        "id": sample.id,
        "conversations": [
            {"from": _FROM[message.role], "value": message.content, "loss": message.trained}
            for message in sample.messages
        ],
    }


def llamafactory(sample: Sample) -> Iterator[dict[str, Any]]:
    """A record for each trained turn: the conversation up to it. Only its last turn is to be trained.

    The characters of a conversation of n turns are written n times over, shorter and shorter: its cost is quadratic.
    """
    for end, message in enumerate(sample.messages):
        if message.trained:
            yield {
                "id": f"{sample.id}#{end}",
                "conversations": [
                    {"from": _FROM[m.role], "value": m.content} for m in sample.messages[: end + 1]
                ],
            }


def llamafactory_v1(sample: Sample) -> Iterator[dict[str, Any]]:
    yield {
        "id": sample.id,
        "messages": [
            {
                "role": message.role,
                "content": [{"type": "text", "value": message.content}],
                "loss_weight": 1.0 if message.trained else 0.0,
            }
            for message in sample.messages
        ],
    }


FORMATS: dict[str, Callable[[Sample], Iterator[dict[str, Any]]]] = {
    "messages": messages,
    "sharegpt": sharegpt,
    "llamafactory": llamafactory,
    "llamafactory-v1": llamafactory_v1,
}
"""Those that need no tokenizer."""


def alternates(sample: Sample) -> bool:
    """Whether user and assistant take turns after the system's text, the user first: what ShareGPT readers demand."""
    roles = [message.role for message in sample.messages]
    if roles and roles[0] == "system":
        roles = roles[1:]
    return bool(roles) and all(role == ("user", "assistant")[i % 2] for i, role in enumerate(roles))


def trimmed(sample: Sample) -> Sample:
    """Without what follows the assistant's last message."""
    last = max((i for i, m in enumerate(sample.messages) if m.role == "assistant"), default=-1)
    kept: tuple[SampleMessage, ...] = sample.messages[: last + 1]
    return Sample(sample.id, sample.source, sample.world, sample.task_hash, kept, sample.metadata)


def axolotl(file: str) -> str:
    """The data set's block of an Axolotl configuration."""
    return f"""\
# Put this into the Axolotl configuration. Turns whose "loss" is false stay in the context and are not trained.
datasets:
  - path: {json.dumps(file)}
    ds_type: json
    type: chat_template
    chat_template: tokenizer_default
    field_messages: conversations
    message_property_mappings:
      role: from
      content: value
    message_field_training: loss
    roles_to_train: []
    train_on_eos: turn
"""


def dataset_info(name: str, file: str, *, v1: bool) -> dict[str, Any]:
    """The data set's entry of LLaMA-Factory's `dataset_info.json`."""
    if v1:
        return {name: {"path": file, "source": "local"}}
    return {
        name: {
            "file_name": file,
            "formatting": "sharegpt",
            "columns": {"messages": "conversations"},
            "tags": {
                "role_tag": "from",
                "content_tag": "value",
                "user_tag": "human",
                "assistant_tag": "gpt",
                "system_tag": "system",
            },
        }
    }


def llamafactory_yaml(name: str) -> str:
    return f"""\
# Put this into the LLaMA-Factory configuration. Each record trains its last turn alone.
dataset: {name}
dataset_dir: .
mask_history: true
"""
