"""Convert conversations to the formats of training libraries, which mark the turns to train on.

This switch excludes a turn from the loss, according to each library's source code (November 2026):

| format | trainer | switch |
|---|---|---|
| `messages` | ms-swift | `messages[].loss` |
| `sharegpt` | Axolotl | `message_field_training`: a key of the message, here `loss` |
| `llamafactory` | LLaMA-Factory's v1 engine (the older engine has no switch) | `messages[].loss_weight` |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from evalharness.base.errors import UserError
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.datasets.modes import Mode, apply_mode

_FROM = {"system": "system", "user": "human", "assistant": "gpt"}


def messages(conversation: Conversation) -> dict[str, Any]:
    """Return a list of messages. Only assistant's messages have `loss`."""
    listed: list[dict[str, Any]] = []
    for message in conversation.messages:
        row: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.role == "assistant":
            row["loss"] = message.trained
        listed.append(row)
    return {"id": conversation.id, "messages": listed}


def sharegpt(conversation: Conversation) -> dict[str, Any]:
    """Return a ShareGPT record. Every message has `loss`, because Axolotl reads the field on each message."""
    return {
        "id": conversation.id,
        "conversations": [
            {"from": _FROM[message.role], "value": message.content, "loss": message.trained}
            for message in conversation.messages
        ],
    }


def llamafactory(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "messages": [
            {
                "role": message.role,
                "content": [{"type": "text", "value": message.content}],
                "loss_weight": 1.0 if message.trained else 0.0,
            }
            for message in conversation.messages
        ],
    }


FORMATS: dict[str, Callable[[Conversation], dict[str, Any]]] = {
    "messages": messages,
    "sharegpt": sharegpt,
    "llamafactory": llamafactory,
}
"""The formats that need no tokenizer."""


def trim(conversation: Conversation) -> Conversation:
    """Return the conversation up to the assistant's last message."""
    last = max((i for i, m in enumerate(conversation.messages) if m.role == "assistant"), default=-1)
    return replace(conversation, messages=conversation.messages[: last + 1])


def select_trainable(
    data: Iterable[Conversation], mode: Mode, left_out: Counter[str]
) -> Iterator[Conversation]:
    """Yield each conversation with the turns marked that `mode` trains, up to the assistant's last message.
    Conversations without a trained turn are left out and counted by reason.

    Raises UserError if no conversation is left, or if another mode trains the same turns as `full` in every
    conversation: the data then has no error marks, and the ablation would compare two equal trainings.
    """
    read = same = trained = 0
    for each in data:
        conversation = apply_mode(each, mode)
        read += 1
        same += conversation == apply_mode(each, "full")
        if conversation is None:
            left_out["it has errors, and the data does not say how to cut them out"] += 1
            continue
        conversation = trim(conversation)
        if any(message.trained for message in conversation.messages):
            trained += 1
            yield conversation
        else:
            left_out["no turn is trained"] += 1
    if mode != "full" and read and same == read:
        raise UserError(
            f"--mode {mode} needs marks of errors, and none of {read:,} conversations has any: the mode would train "
            "the same turns as --mode full. In data with a mask, evalharness refine read FILE marks masked turns that "
            "have an action (Action: ...) and an answer; other data needs an `error` field on its turns"
        )
    if read and not trained:
        reasons = "; ".join(f"{count:,} left out: {reason}" for reason, count in sorted(left_out.items()))
        raise UserError(f"--mode {mode} leaves none of {read:,} conversations to train on ({reasons})")


_AXOLOTL = """\
# axolotl train axolotl.yaml     (eight GPUs of 80 GB for 8B; AgentRefine, appendix B)
base_model: MODEL
datasets:
  - path: train.jsonl
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
sequence_len: 8192
micro_batch_size: 1
gradient_accumulation_steps: 8
num_epochs: 10
learning_rate: 0.000005
lr_scheduler: cosine
warmup_steps: 0
optimizer: adamw_torch
bf16: true
gradient_checkpointing: true
deepspeed: deepspeed_configs/zero3_bf16.json
output_dir: ./tuned
"""
"""A complete configuration with the settings of AgentRefine's appendix B. Turns with "loss": false stay in the context
and are not trained."""

_LLAMAFACTORY = """\
# USE_V1=1 llamafactory-cli sft llamafactory.yaml     (appendix B, but a constant rate and ChatML)
model: MODEL
template: chatml
train_dataset: train.jsonl
cutoff_len: 8192
micro_batch_size: 1
global_batch_size: 64
num_train_epochs: 10
learning_rate: 0.000005
bf16: true
enable_activation_checkpointing: true
dist_config:
  name: fsdp2
output_dir: ./tuned
"""
"""The settings of `_AXOLOTL`, except for learning rate and template: LLaMA-Factory's v1 engine (0.9.5) has only a
constant learning rate, and only its own templates, such as chatml."""

_SWIFT = """\
# AgentRefine, appendix B
NPROC_PER_NODE=8 swift sft --model MODEL --dataset train.jsonl \\
  --template_backend swift --tuner_type full --max_length 8192 --truncation_strategy delete \\
  --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --num_train_epochs 10 \\
  --learning_rate 5e-6 --lr_scheduler_type cosine --warmup_ratio 0 --torch_dtype bfloat16 \\
  --gradient_checkpointing true --deepspeed zero3 --output_dir tuned
"""
"""The settings of `_AXOLOTL`. The template backend must be `swift`: the other backend trains every turn."""

BESIDE = {
    "sharegpt": ("axolotl.yaml", _AXOLOTL),
    "llamafactory": ("llamafactory.yaml", _LLAMAFACTORY),
    "messages": ("swift.sh", _SWIFT),
}
"""Format -> the name and text of the trainer's configuration file."""
