"""Run by the training environment's Python: losses and gradients of one micro-batch, computed in several ways.

python -I gradients.py FOLDER_OF_THE_TRAINER CHECKPOINT      prints one JSON object
"""

from __future__ import annotations

import json
import sys
from itertools import product
from typing import Any

sys.path.append(sys.argv[1])

import attention  # type: ignore[import-not-found, unused-ignore]
import torch  # type: ignore[import-not-found, unused-ignore]
from losses import add_gradients, families  # type: ignore[import-not-found, unused-ignore]
from peft import LoraConfig, get_peft_model  # type: ignore[import-not-found, unused-ignore]
from torch.nn.functional import cross_entropy  # type: ignore[import-not-found, unused-ignore]
from transformers import AutoModelForCausalLM  # type: ignore[import-not-found, unused-ignore]

torch.manual_seed(0)
torch.set_num_threads(1)
attention._BLOCK = 16  # several of them in a conversation of 100 tokens


def conversation(
    beginning: list[int], length: int, trained: list[tuple[int, int]]
) -> tuple[list[int], list[int]]:
    ids = beginning + torch.randint(3, 250, (length,)).tolist()
    labels = [-100] * len(ids)
    for start, stop in trained:
        start, stop = start + len(beginning), stop + len(beginning)
        labels[start:stop] = ids[start:stop]
    return ids, labels


def batch(rows: list[tuple[list[int], list[int]]]) -> tuple[Any, Any, list[int]]:
    longest = max(len(ids) for ids, _ in rows)
    ids = torch.tensor([ids + [2] * (longest - len(ids)) for ids, _ in rows])
    labels = torch.tensor([marks + [-100] * (longest - len(marks)) for _, marks in rows])
    return ids, labels, [len(ids) for ids, _ in rows]


def gradients(model: Any) -> dict[str, Any]:
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


def by_the_book(model: Any, rows: list[tuple[list[int], list[int]]], scale: float) -> float:
    """Each conversation alone, whole, with all its logits."""
    total = 0.0
    for ids, labels in rows:
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, :-1].float()
        loss = cross_entropy(logits, torch.tensor(labels[1:]), ignore_index=-100, reduction="sum") * scale
        loss.backward()
        total += float(loss.detach())
    return total


def furthest(first: dict[str, Any], second: dict[str, Any]) -> float:
    """The largest difference of two gradients, as a share of the largest gradient."""
    if first.keys() != second.keys():
        return float("inf")
    largest = max(float(value.abs().max()) for value in second.values())
    return max(float((first[name] - second[name]).abs().max()) for name in second) / largest


def main() -> None:
    base = AutoModelForCausalLM.from_pretrained(sys.argv[2], dtype=torch.float32, local_files_only=True)
    one = torch.randint(3, 250, (90,)).tolist()
    other = torch.randint(3, 250, (60,)).tolist()
    rows = [
        conversation(one, 40, [(5, 12), (20, 40)]),
        conversation(one, 25, [(0, 4)]),  # the token after the beginning is trained
        conversation(other, 30, [(3, 30)]),
        conversation(one, 61, [(50, 60)]),
        conversation(other, 12, [(1, 2)]),
        conversation([], 20, [(2, 9)]),
    ]
    ids, labels, lengths = batch(rows)
    answer: dict[str, Any] = {
        "families": families(ids, labels, lengths),
        "largest_difference": {},
        "losses": {},
    }
    lora = LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    for method in ("full", "lora"):
        model = get_peft_model(base, lora) if method == "lora" else base
        head = model.get_output_embeddings()
        model.train()
        base.set_attn_implementation("sdpa")
        losses = {"by the book": by_the_book(model, rows, 0.01)}
        wanted = gradients(model)
        for share, at_once, how in product((False, True), (1, 100_000), ("sdpa", attention.register())):
            base.set_attn_implementation(how)
            name = f"{method}, {how}, {'shared' if share else 'apart'}, {at_once} tokens at once"
            losses[name] = add_gradients(
                model, head, ids, labels, lengths, scale=0.01, share=share, at_once=at_once
            )
            answer["largest_difference"][name] = furthest(gradients(model), wanted)
        answer["losses"][method] = losses
        nothing = torch.full_like(labels, -100)
        answer[f"{method}: loss without a trained token"] = add_gradients(
            model, head, ids, nothing, lengths, scale=1.0, share=True, at_once=1000
        )
        answer[f"{method}: gradient without a trained token"] = max(
            [float(value.abs().max()) for value in gradients(model).values()], default=0.0
        )
    print(json.dumps(answer))


main()
