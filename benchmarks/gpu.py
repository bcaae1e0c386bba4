"""Parts of `gpu.sh`: a model of LLaMA-3-8B's shape, and a suite played with it beside vLLM's own client.

    python benchmarks/gpu.py model FOLDER
    python benchmarks/gpu.py play MODEL -o FOLDER [--tasks all] [--turns 30] [--tokens 60] [--json FILE]

The model has random weights, so every reply is forced to its number of tokens, and every episode lasts all its turns.
Its tokenizer and its vocabulary (49,152 tokens instead of 128,256) are those of demo-base.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

from engine_vllm import NAME, ask_again, checkpoint, empty_cache, serving

from evalharness.config import RunConfig
from evalharness.models.serving.demo import ensure_demo
from evalharness.models.serving.find import find_server
from evalharness.runs.evaluation import evaluate

_MAKE = """
import sys, torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
config = LlamaConfig(vocab_size=49152, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
    num_attention_heads=32, num_key_value_heads=8, max_position_embeddings=8192, rope_theta=500000.0,
    bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, tie_word_embeddings=False)
torch.set_default_dtype(torch.bfloat16)
torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
LlamaForCausalLM(config).save_pretrained(sys.argv[2])
tokenizer.save_pretrained(sys.argv[2])
"""


def make_model(folder: Path) -> None:
    python = find_server(None).python
    assert python is not None
    subprocess.run([python, "-I", "-c", _MAKE, ensure_demo(print), folder], check=True)


def play(options: argparse.Namespace) -> dict[str, Any]:
    """Play with the harness, then send the same requests by vLLM's own client, with an empty cache each."""
    model = checkpoint(options.model)
    with serving(model) as url:
        forced = json.dumps({"ignore_eos": True})
        config = RunConfig.of(
            model=f"{url}/v1", model_name=NAME, suite="open", tasks=options.tasks, max_turns=options.turns,
            max_tokens=options.tokens, extra_body=forced, stop_on_format_errors=None, output=options.output,
        )  # fmt: skip
        summary = evaluate(config).summary.to_json()
        rows = read_requests(options.output)
        empty_cache(url)
        client = ask_again(url, model, rows, summary["performance"]["concurrency"]["highest"])
    ours = summary["tokens"]["completion"] / summary["wall_s"]
    return {
        "wall_s": summary["wall_s"],
        "turns_per_s": summary["turns"] / summary["wall_s"],
        "tokens_per_s": ours,
        "client_tokens_per_s": client,
        "ratio": ours / client,
        "performance": summary["performance"],
    }


def read_requests(run: Path) -> list[dict[str, Any]]:
    """Every request of a run, in the order of turns: what was sent, and the tokens of the reply."""
    file = run.with_suffix(".chat.jsonl")
    subprocess.run(["evalharness", "export", "--format", "openai-chat", "-o", file, run], check=True)
    rows: list[tuple[int, dict[str, Any]]] = []
    episodes = (run / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    for line, episode in zip(file.read_text(encoding="utf-8").splitlines(), episodes, strict=True):
        messages = json.loads(line)["messages"]
        ends = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
        turns = json.loads(episode)["turns"]
        for turn, end in zip(turns, ends[len(ends) - len(turns) :], strict=True):
            tokens = turn["completion_tokens"]
            rows.append((turn["turn"], {"messages": messages[:end], "completion_tokens": tokens}))
    return [row for _, row in sorted(rows, key=lambda row: row[0])]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = parser.add_subparsers(dest="part", required=True)
    model = parts.add_parser("model")
    model.add_argument("folder", type=Path)
    playing = parts.add_parser("play")
    playing.add_argument("model")
    playing.add_argument("-o", "--output", type=Path, required=True)
    playing.add_argument("--tasks", default="all")
    playing.add_argument("--turns", type=int, default=30)
    playing.add_argument("--tokens", type=int, default=60)
    playing.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.part == "model":
        make_model(options.folder)
        return
    figures = play(options)
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
