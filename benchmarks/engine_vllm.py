"""The parts of `engine.py` that need a real vLLM: the harness beside vLLM's own benchmark client, and beside a loop
that plays one episode at a time.

One server serves all passes; its prefix cache is emptied between them. The first pass goes through a recording
proxy, which notes every request; those are then sent again by `vllm bench serve`, in the same order, at the same
concurrency, each with the number of tokens it was answered with.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from evalharness.config import RunConfig
from evalharness.models.serving.arguments import server_arguments, server_environment
from evalharness.models.serving.demo import ensure_demo, is_demo
from evalharness.models.serving.find import find_server
from evalharness.runs.evaluation import evaluate

TASKS = "babyai"
"""The family with the shortest prompts: a CPU prefills a few hundred tokens a second."""
MAX_TOKENS = 32
CONCURRENCY = 8
NAME = "benchmark"

_RENDER = """
import json, sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
for line in sys.stdin:
    row = json.loads(line)
    text = tokenizer.apply_chat_template(row["messages"], add_generation_prompt=True, tokenize=False)
    print(json.dumps({"prompt": text, "output_tokens": row["completion_tokens"]}))
"""

# `vllm bench serve` itself; the command asks for the metadata of a distribution that the CPU build does not have.
# Its reader of request files wants pandas, which the server's environment lacks; sending and timing are untouched.
_CLIENT = """
import json
from vllm.benchmarks.datasets.datasets import CustomDataset
from vllm.benchmarks.serve import add_cli_args, main
from vllm.utils.argparse_utils import FlexibleArgumentParser
def load_data(self):
    with open(self.dataset_path) as file:
        self.data = [json.loads(line) for line in file]
CustomDataset.load_data = load_data
parser = FlexibleArgumentParser()
add_cli_args(parser)
main(parser.parse_args())
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def checkpoint(model: str) -> Path:
    return ensure_demo(print) if is_demo(model) else Path(model)


@contextlib.contextmanager
def serving(model: Path, *more: str) -> Iterator[str]:
    """A vLLM as the harness starts it, with two more switches: it reports cached tokens and can empty its cache."""
    command, port = find_server(None), _free_port()
    extra = ["--enable-prompt-tokens-details", *more]
    argv = server_arguments(
        command, model=str(model), served_name=NAME, port=port, max_model_len=4096, extra=extra
    )
    env = server_environment(command, local_model=True, extra=extra) | {"VLLM_SERVER_DEV_MODE": "1"}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            argv, env=env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            url = f"http://127.0.0.1:{port}"
            while not _answers(f"{url}/health"):
                if process.poll() is not None:
                    log.seek(0)
                    raise SystemExit(log.read().decode(errors="replace")[-3000:])
                time.sleep(0.5)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def empty_cache(url: str) -> None:
    request = urllib.request.Request(f"{url}/reset_prefix_cache", method="POST")
    urllib.request.urlopen(request, timeout=30).close()


@contextlib.contextmanager
def recording(url: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A proxy in a thread of its own; what went through it, in the order of arrival."""
    rows: list[dict[str, Any]] = []
    ready: list[int] = []
    loop = asyncio.new_event_loop()
    started = threading.Event()

    async def forward(request: web.Request) -> web.Response:
        body = await request.read()
        row: dict[str, Any] | None = None
        if request.method == "POST":
            row = {"messages": json.loads(body)["messages"]}
            rows.append(row)
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, f"{url}{request.path}", data=body or None,
                            headers={"Content-Type": "application/json"}) as response,
        ):  # fmt: skip
            answer = await response.read()
            if row is not None and response.status == 200:
                usage = json.loads(answer)["usage"]
                details = usage.get("prompt_tokens_details") or {}
                row |= {
                    "prompt_tokens": usage["prompt_tokens"],
                    "completion_tokens": usage["completion_tokens"],
                    "cached_tokens": details.get("cached_tokens") or 0,
                }
            return web.Response(body=answer, status=response.status, content_type="application/json")

    async def serve() -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", forward)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        ready.append(runner.addresses[0][1])
        started.set()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait()
    try:
        yield f"http://127.0.0.1:{ready[0]}", rows
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _play(url: str, episodes: int, turns: int, concurrency: int | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig.of(
            model=f"{url}/v1", model_name=NAME, suite="open", tasks=f"{TASKS}:0-{episodes - 1}", max_turns=turns,
            max_tokens=MAX_TOKENS, concurrency=concurrency, output=Path(folder) / "run",
        )  # fmt: skip
        return evaluate(config).summary.to_json()


def through_vllm(model: str, episodes: int, turns: int) -> dict[str, Any]:
    folder = checkpoint(model)
    with serving(folder) as url:
        with recording(url) as (proxy, rows):
            _play(proxy, episodes, turns, CONCURRENCY)
        asked = [row for row in rows if row.get("prompt_tokens", 0) > 200]  # without the client's own probe
        rounds = []
        for _ in range(2):  # in turn, so that other work on the machine meets both alike
            empty_cache(url)
            summary = _play(url, episodes, turns, CONCURRENCY)
            empty_cache(url)
            client = ask_again(url, folder, asked, CONCURRENCY)
            rounds.append((summary["tokens"]["completion"] / summary["wall_s"], client, summary))
    ours = sum(first for first, _, _ in rounds) / len(rounds)
    theirs = sum(second for _, second, _ in rounds) / len(rounds)
    late = [row for row in asked if (len(row["messages"]) - 2) // 2 >= 3]
    block = 128
    best = sum(max(0, row["prompt_tokens"] - _new_tokens(row)) // block * block for row in late)
    prompts = sum(row["prompt_tokens"] for row in late)
    performance = rounds[-1][2]["performance"]
    return {
        "ratio": ours / theirs,
        "harness_tokens_per_s": ours,
        "client_tokens_per_s": theirs,
        "rounds": [{"harness": first, "client": second} for first, second, _ in rounds],
        "requests": len(asked),
        "concurrency": CONCURRENCY,
        "hit_rate_after_turn_3": sum(row["cached_tokens"] for row in late) / prompts if prompts else 0.0,
        "best_hit_rate_after_turn_3": best / prompts if prompts else 0.0,
        "block": block,
        "mean_prompt_after_turn_3": prompts / len(late) if late else 0.0,
        "performance": {key: performance[key] for key in ("efficiency", "bound", "time", "server")},
    }


def _new_tokens(row: dict[str, Any]) -> int:
    """What the last turn added: a reply and an observation, by their length in characters (four a token)."""
    return sum(len(message["content"]) for message in row["messages"][-2:]) // 4 + 8


def ask_again(url: str, model: Path, rows: list[dict[str, Any]], concurrency: int) -> float:
    """Output tokens/s of vLLM's own client for the same requests."""
    command = find_server(None)
    python, target = command.python, {"VLLM_TARGET_DEVICE": "cpu"} if command.kind == "cpu" else {}
    assert python is not None
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "requests.jsonl"
        rendered = subprocess.run(
            [python, "-I", "-c", _RENDER, model], input="\n".join(map(json.dumps, rows)) + "\n",
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        data.write_text(rendered)
        done = subprocess.run(
            [
                python, "-c", _CLIENT, "--backend", "vllm",
                "--base-url", url, "--endpoint", "/v1/completions", "--model", NAME, "--tokenizer", model,
                "--dataset-name", "custom", "--dataset-path", data, "--custom-output-len", "-1",
                "--skip-chat-template", "--disable-shuffle", "--num-prompts", str(len(rows)),
                "--max-concurrency", str(concurrency), "--ignore-eos", "--temperature", "0",
                "--save-result", "--result-dir", name, "--result-filename", "result.json",
            ],
            capture_output=True, text=True, check=False, cwd=name,
            env=os.environ | target | {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "PYTHONSAFEPATH": "1"},
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"vllm bench serve failed:\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}")
        result = json.loads((Path(name) / "result.json").read_text())
        if result["completed"] != len(rows):
            raise SystemExit(f"vllm bench serve completed {result['completed']} of {len(rows)} requests")
        return float(result["output_throughput"])


def side_by_side(model: str, episodes: int, turns: int) -> dict[str, Any]:
    """All at once against one at a time; a fresh cache for each."""
    with serving(checkpoint(model)) as url:
        _play(url, 1, 2, 1)
        empty_cache(url)
        many = _play(url, episodes, turns, None)
        empty_cache(url)
        one = _play(url, episodes, turns, 1)
    return {
        "speed_up": one["wall_s"] / many["wall_s"],
        "sequential_s": one["wall_s"],
        "concurrent_s": many["wall_s"],
        "episodes": episodes,
        "sequential_tokens_per_s": one["tokens"]["completion"] / one["wall_s"],
        "concurrent_tokens_per_s": many["tokens"]["completion"] / many["wall_s"],
        "concurrency_found": many["performance"]["concurrency"],
    }
