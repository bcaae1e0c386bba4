"""GRPO through TRL on a CPU: how many rollouts an hour that is, and what share of the time they take.

    evalharness tune install
    evalharness env serve pddl --train-seeds 401 --max-turns 10 --port 8000
    PYTHON benchmarks/grpo_trl.py http://127.0.0.1:8000 MODEL --adapter DIR --kind gripper --steps 3

PYTHON is the interpreter that `evalharness tune install` names. MODEL and DIR are those of `demo`:
`smollm2-135m-instruct` in the cache's `models`, and `evalharness/models/serving/demo_adapter`. Prints a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import urllib.request
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from evalharness.rl.clients.session import tasks
from evalharness.rl.clients.trl import data_set, episode_reward, rollout


def served(url: str) -> dict[str, float]:
    """Sums over the episodes of `train` that have ended."""
    with urllib.request.urlopen(f"{url}/status") as answer:
        families = json.load(answer)["splits"]["train"].values()
    return {key: sum(each[key] for each in families) for key in ("episodes", "turns", "reward", "success")}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--adapter")
    parser.add_argument("--kind", help="tasks of this kind alone")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--generations", type=int, default=4, help="rollouts of one task, which are one step")
    parser.add_argument("--tokens", type=int, default=64, help="of a reply, at most")
    parser.add_argument("--output", default="grpo")
    given = parser.parse_args()

    wanted = {task["id"] for task in tasks(given.url) if given.kind in (None, task["kind"])}
    rows = data_set(given.url).filter(lambda row: row["prompt"] in wanted)
    # The checkpoint is in bfloat16, which a processor without AVX-512 emulates.
    model: Any = AutoModelForCausalLM.from_pretrained(given.model, dtype=torch.float32)
    if given.adapter:
        model = PeftModel.from_pretrained(model, given.adapter, is_trainable=True)
    settings = GRPOConfig(
        given.output,
        max_steps=given.steps,
        per_device_train_batch_size=given.generations,
        num_generations=given.generations,
        max_completion_length=given.tokens,
        learning_rate=1e-5,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    play, rollouts_s = rollout(given.url), 0.0

    def timed(prompts: list[str], trainer: Any) -> dict[str, Any]:
        nonlocal rollouts_s
        began = time.perf_counter()
        try:
            return play(prompts, trainer)
        finally:
            rollouts_s += time.perf_counter() - began

    trainer = GRPOTrainer(
        model=model,
        processing_class=AutoTokenizer.from_pretrained(given.model),
        args=settings,
        train_dataset=rows,
        rollout_func=timed,
        reward_funcs=episode_reward,
    )
    before, load = served(given.url), os.getloadavg()[0]
    began, cpu = time.perf_counter(), time.process_time()
    trainer.train()
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    after = served(given.url)
    counted = {key: after[key] - before[key] for key in after}
    steps = [
        {key: step[key] for key in ("step", "reward", "loss") if key in step}
        for step in trainer.state.log_history
    ]
    print(
        json.dumps(
            {
                "tasks": len(rows),
                **counted,
                "wall_s": round(wall_s),
                "rollouts_s": round(rollouts_s),
                "cpu_s": round(cpu_s),
                "rollouts_an_hour": round(3600 * counted["episodes"] / wall_s, 1),
                "turns_an_hour": round(3600 * counted["turns"] / wall_s),
                "load_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)],
                "steps": [step for step in steps if "reward" in step],
            }
        )
    )


if __name__ == "__main__":
    main()
