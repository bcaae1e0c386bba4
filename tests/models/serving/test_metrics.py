"""Reading a vLLM server's metrics: a page recorded from vLLM 0.32, and pages over time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import aiohttp
from aiohttp import web

from evalharness.models.serving.metrics import ServerInsight, parse, read_metrics
from evalharness.models.transport import Transport

RECORDED = Path(__file__).with_name("metrics.txt").read_text()


def page(**values: object) -> str:
    """The recorded page with other values."""
    text = RECORDED
    for name, value in values.items():
        text, count = re.subn(rf"^(vllm:{name}\{{[^}}]*\}}) \S+$", rf"\1 {value}", text, flags=re.MULTILINE)
        assert count == 1, name
    return text


def test_a_recorded_page() -> None:
    reading = parse(RECORDED)
    assert reading is not None
    assert (reading.prompt_tokens, reading.generation_tokens, reading.prefix_queries) == (165, 60, 165)
    assert reading.requests_s == 0.8895764350891113
    assert (reading.running, reading.waiting, reading.kv_usage) == (0, 0, 0)


def test_engines_of_one_server_are_added_and_their_cache_use_is_the_mean() -> None:
    one = page(num_requests_running=3, kv_cache_usage_perc=0.2)
    other = page(num_requests_running=5, kv_cache_usage_perc=0.6).replace('engine="0"', 'engine="1"')
    reading = parse(one + other)
    assert reading is not None
    assert (reading.running, reading.kv_usage, reading.prompt_tokens) == (8, 0.4, 330)


def test_another_servers_page_is_none_of_ours() -> None:
    assert parse("<html>not found</html>") is None
    assert parse("process_cpu_seconds_total 3\nvllm:unknown{} 1\n") is None
    assert parse("") is None


def test_what_is_no_finite_number_is_not_counted() -> None:
    """No count of tokens can be made of it, and a cache of `nan` tokens would let nobody in."""
    cache = 'vllm:cache_config_info{enable_prefix_caching="True",kv_cache_size_tokens="nan"} 1.0\n'
    for odd in ("1e999", "nan", "inf"):
        reading = parse(cache + page(num_preemptions_total=odd, prompt_tokens_total=7))
        assert reading is not None
        assert (reading.preemptions, reading.cache_tokens, reading.prompt_tokens) == (0, 0, 7)


async def test_where_the_page_is() -> None:
    for base, page in (
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/metrics"),
        ("http://host/v1/", "http://host/metrics"),
    ):
        transport = Transport(base, None, connections=1, timeout=1.0)
        assert transport.url("/metrics", outside=True) == page
        await transport.close()


async def test_a_page_that_comes_in_pieces_is_read_to_its_end() -> None:
    async def metrics(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        half = RECORDED.index("vllm:generation_tokens_total{")
        await response.write(RECORDED[:half].encode())
        for _ in range(1000):  # the client has its turns, too
            await asyncio.sleep(0)
        await response.write(RECORDED[half:].encode())
        return response

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with aiohttp.ClientSession() as session:
            reading = await read_metrics(session, f"http://127.0.0.1:{runner.addresses[0][1]}/metrics")
    finally:
        await runner.cleanup()
    assert reading == parse(RECORDED)


async def look_at(
    pages: Sequence[str | None], preempted: list[int] | None = None, cache: list[float] | None = None
) -> ServerInsight:
    """One look for each page; None: the server is away. `preempted` gets the number, from 1, of each look that told,
    `cache` what each look said that the cache holds."""
    now: list[str | None] = [None]

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(text=now[0])

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/metrics"
    insight = ServerInsight(lambda: [url] if now[0] is not None else [])
    if cache is not None:
        insight.on_cache = cache.append
    try:
        async with aiohttp.ClientSession() as session:
            for number, text in enumerate(pages, start=1):
                now[0] = text
                if preempted is not None:
                    insight.on_preempted = partial(preempted.append, number)
                await insight.look(session)
    finally:
        await runner.cleanup()
    return insight


async def test_only_what_was_counted_since_we_came_is_ours() -> None:
    insight = await look_at(
        [
            page(prompt_tokens_total=1000, prefix_cache_queries_total=1000, prefix_cache_hits_total=0),
            page(prompt_tokens_total=1500, prefix_cache_queries_total=1500, prefix_cache_hits_total=400),
        ]
    )
    assert insight.total.prompt_tokens == 500
    assert insight.prefix_hit_rate == 0.8
    summary = insight.summary(10.0)
    assert summary is not None
    assert summary.prompt_tokens_per_s == 50


async def test_a_restarted_server_counts_on() -> None:
    insight = await look_at(
        [
            page(generation_tokens_total=100),
            page(generation_tokens_total=160),
            page(generation_tokens_total=5),
            page(generation_tokens_total=25),
        ]
    )
    assert insight.total.generation_tokens == 60 + 25


async def test_a_server_that_was_away_begins_anew_even_when_it_has_counted_further() -> None:
    insight = await look_at(
        [
            page(generation_tokens_total=10),
            page(generation_tokens_total=30),
            None,
            page(generation_tokens_total=100),
            page(generation_tokens_total=105),
        ]
    )
    assert insight.total.generation_tokens == 20 + 105


async def test_no_page_no_summary() -> None:
    insight = await look_at(["nothing", "here"])
    assert insight.summary(1.0) is None
    assert insight.now is None


async def test_preemptions_since_the_last_look_are_told_and_those_before_we_came_are_not() -> None:
    counts = (7, 7, 9, 9, 10)
    preempted: list[int] = []
    await look_at([page(num_preemptions_total=count) for count in counts], preempted)
    assert preempted == [3, 5]


def cache_info(**labels: str) -> str:
    said = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"vllm:cache_config_info{{{said}}} 1.0\n"


def test_how_many_tokens_the_cache_holds_is_known_where_it_keeps_prefixes() -> None:
    now = cache_info(block_size="32", enable_prefix_caching="True", kv_cache_size_tokens="93184")
    before = cache_info(block_size="16", enable_prefix_caching="True", num_gpu_blocks="100")
    without = cache_info(block_size="16", enable_prefix_caching="False", num_gpu_blocks="100")
    for info, tokens in ((now, 93184), (before, 1600), (now + before, 94784), (without, 0), ("", 0)):
        reading = parse(RECORDED + info)
        assert reading is not None
        assert reading.cache_tokens == tokens


async def test_each_look_tells_what_the_cache_holds_and_none_that_does_not_say_so() -> None:
    told: list[float] = []
    info = cache_info(enable_prefix_caching="True", kv_cache_size_tokens="500")
    await look_at([RECORDED + info, RECORDED, None, RECORDED + info], cache=told)
    assert told == [500, 500]
