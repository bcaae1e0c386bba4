"""Whether greedy replies of a server are the same however many requests it computes at once.

    evalharness run --model oracle --suite open --draw 9 -o /tmp/oracle
    evalharness export --format openai-chat -o /tmp/conversations.jsonl /tmp/oracle
    python benchmarks/determinism.py /tmp/conversations.jsonl [--url http://host:8000] [--in-flight 1,4,16,44]

Each conversation gives one request: its beginning up to a turn drawn by seed. All requests are asked once, which fills
the prefix cache; then with each number in flight, and all of that `--repeats` times. Without `--url` a vLLM is started
for `--model`, as a run starts it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
from engine_vllm import NAME, checkpoint, serving

Request = dict[str, Any]


def read_requests(conversations: Path, count: int, max_tokens: int) -> list[Request]:
    chance, requests = random.Random(0), list[Request]()
    for line in conversations.read_text(encoding="utf-8").splitlines():
        messages = json.loads(line)["messages"]
        ends = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
        requests.append(
            {"messages": messages[: chance.choice(ends)], "max_tokens": max_tokens, "temperature": 0}
        )
    chance.shuffle(requests)
    return requests[:count]


async def ask_all(url: str, name: str, requests: Sequence[Request], in_flight: int) -> list[str]:
    slots = asyncio.Semaphore(in_flight)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as http:

        async def ask(request: Request) -> str:
            async with (
                slots,
                http.post(f"{url}/v1/chat/completions", json=request | {"model": name}) as answer,
            ):
                answer.raise_for_status()
                return str((await answer.json())["choices"][0]["message"]["content"])

        return list(await asyncio.gather(*map(ask, requests)))


def count_differences(first: Sequence[str], second: Sequence[str]) -> int:
    return sum(a != b for a, b in zip(first, second, strict=True))


def measure(
    url: str, name: str, requests: Sequence[Request], numbers: Sequence[int], repeats: int
) -> list[Any]:
    cold = asyncio.run(ask_all(url, name, requests, 1))
    passes: dict[int, list[list[str]]] = {number: [] for number in numbers}
    for _ in range(repeats):
        for number in numbers:
            passes[number].append(asyncio.run(ask_all(url, name, requests, number)))
    reference, rows = passes[numbers[0]][0], []
    for number, replies in passes.items():
        row = {
            "in_flight": number,
            "differ_from_first": [count_differences(reference, one) for one in replies],
            "differ_from_own_first": [count_differences(replies[0], one) for one in replies[1:]],
            "differ_from_empty_cache": [count_differences(cold, one) for one in replies],
        }
        rows.append(row)
        print(f"of {len(requests)} replies, {number} in flight: {json.dumps(row)}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("conversations", type=Path)
    parser.add_argument("--url", help="a running server, without /v1")
    parser.add_argument("--model", default="demo-base", help="with --url: the served name; else a checkpoint")
    parser.add_argument("--in-flight", default="1,4,16,44")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--requests", type=int, default=44)
    parser.add_argument("--max-tokens", type=int, default=60)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    requests = read_requests(options.conversations, options.requests, options.max_tokens)
    numbers = [int(number) for number in options.in_flight.split(",")]
    with contextlib.ExitStack() as stack:
        url, name = options.url, options.model
        if url is None:
            url, name = stack.enter_context(serving(checkpoint(options.model))), NAME
        rows = measure(url, name, requests, numbers, options.repeats)
    if options.json:
        options.json.write_text(json.dumps({"requests": len(requests), "passes": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
