"""What a vLLM server says of itself at `/metrics`: how busy it is, and what its caches are worth.

Names as vLLM 0.32 prints them (read off a running server); any server that prints them can be looked into, also one
that somebody else started.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from evalharness.records.summary import Server

if TYPE_CHECKING:
    from aiohttp import ClientSession

EVERY = 2.0
"""Seconds between looks. A page has 60 kB, and vLLM itself updates its gauges once a step."""
_LINE = re.compile(r"^vllm:(\w+?)(?:\{[^}]*\})? ([-+0-9.eE]+)$")
_CACHE = re.compile(r"^vllm:cache_config_info\{(.*)\} ")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_PAGE_LIMIT = 16 * 2**20


@dataclass(frozen=True)
class Reading:
    """One look. Gauges are now, counters since the server started; summed over a server's engines."""

    running: float = 0.0
    waiting: float = 0.0
    kv_usage: float = 0.0
    """Share of the key-value cache in use, 0..1."""
    cache_tokens: float = 0.0
    """Tokens that the key-value cache holds, where conversations are found in it again; 0 where that is not said."""
    prefix_queries: float = 0.0
    """Prompt tokens looked up in the prefix cache."""
    prefix_hits: float = 0.0
    prompt_tokens: float = 0.0
    generation_tokens: float = 0.0
    preemptions: float = 0.0
    requests_s: float = 0.0
    """Time of all requests inside the server, queue included."""

    def plus(self, other: Reading) -> Reading:
        return Reading(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Reading)})

    def since(self, earlier: Reading) -> Reading:
        """Counters as differences; gauges as they are now."""
        return replace(self, **{name: getattr(self, name) - getattr(earlier, name) for name in _COUNTERS})


_NAMES = {
    "num_requests_running": "running",
    "num_requests_waiting": "waiting",
    "kv_cache_usage_perc": "kv_usage",
    "prefix_cache_queries_total": "prefix_queries",
    "prefix_cache_hits_total": "prefix_hits",
    "prompt_tokens_total": "prompt_tokens",
    "generation_tokens_total": "generation_tokens",
    "num_preemptions_total": "preemptions",
    "e2e_request_latency_seconds_sum": "requests_s",
}
_GAUGES = ("running", "waiting", "kv_usage", "cache_tokens")
_COUNTERS = tuple(f.name for f in fields(Reading) if f.name not in _GAUGES)


def parse(page: str) -> Reading | None:
    """None when the page is not a vLLM server's."""
    values: dict[str, float] = {}
    engines = 0
    for line in page.splitlines():
        if (cache := _CACHE.match(line)) is not None:
            values["cache_tokens"] = values.get("cache_tokens", 0.0) + _cache_tokens(
                dict(_LABEL.findall(cache[1]))
            )
            continue
        match = _LINE.match(line)
        if match is None or (name := _NAMES.get(match[1])) is None:
            continue
        with contextlib.suppress(ValueError):
            values[name] = values.get(name, 0.0) + _finite(match[2])
            engines += name == "running"
    if not engines:
        return None
    values["kv_usage"] = values.get("kv_usage", 0.0) / engines
    return Reading(**values)


def _cache_tokens(labels: Mapping[str, str]) -> float:
    if labels.get("enable_prefix_caching") != "True":
        return 0.0
    with contextlib.suppress(KeyError, ValueError):
        return _finite(labels["kv_cache_size_tokens"])
    with contextlib.suppress(KeyError, ValueError):  # as vLLM said it before
        return _finite(labels["num_gpu_blocks"]) * _finite(labels["block_size"])
    return 0.0


def _finite(text: str) -> float:
    """Raises ValueError for what no count can be made of, infinities among it."""
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


@dataclass
class ServerInsight:
    """Sums over a run of what one server, or several, said of themselves."""

    urls: Callable[[], Sequence[str]]
    """Addresses of the metrics pages to look at now."""
    on_preempted: Callable[[], None] = lambda: None
    """Called when the server has preempted requests since the previous reading."""
    on_cache: Callable[[float], None] = lambda tokens: None
    """Called with the tokens that the caches of all servers can hold, if the servers report it."""
    now: Reading | None = None
    """The last look at all servers together."""
    prompt_rate: float = 0.0
    """Tokens/s between the last two looks."""
    generation_rate: float = 0.0
    looks: int = 0
    total: Reading = field(default_factory=Reading)
    """Counters over this run: what was counted before we came is not ours."""
    _last: dict[str, Reading] = field(default_factory=dict)
    """By address. Zeros for a server that is away: it begins anew."""
    _sums: dict[str, float] = field(default_factory=dict)
    _when: float = 0.0

    async def watch(self) -> None:
        """Read the metrics until cancelled, then read them once more. Without a metrics page, try again each minute."""
        # A script's run asks nobody, and does not wait for the client's import.
        while not self.urls():  # noqa: ASYNC110
            await asyncio.sleep(EVERY)
        import aiohttp

        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
            try:
                while True:
                    await self.look(http)
                    await asyncio.sleep(EVERY if self.looks or not self.urls() else 60.0)
            except asyncio.CancelledError:
                if self.looks:
                    await self.look(http)
                raise

    async def look(self, http: ClientSession) -> bool:
        """Read every page once."""
        urls = list(self.urls())
        self._last |= dict.fromkeys(self._last.keys() - set(urls), Reading())
        readings = await asyncio.gather(*(read_metrics(http, url) for url in urls))
        found = {url: r for url, r in zip(urls, readings, strict=True) if r is not None}
        if not found:
            return False
        together = new = Reading()
        for url, reading in found.items():
            last = self._last.get(url, reading)
            restarted = reading.generation_tokens < last.generation_tokens
            new = new.plus(reading.since(Reading() if restarted else last))
            together = together.plus(reading)
            self._last[url] = reading
        known = all(reading.cache_tokens for reading in found.values())
        self.now = replace(
            together,
            kv_usage=together.kv_usage / len(found),
            cache_tokens=together.cache_tokens if known else 0.0,
        )
        self._add(new)
        return True

    def _add(self, new: Reading) -> None:
        """What was counted since the look before."""
        assert self.now is not None
        self.total = self.total.plus(new)
        if new.preemptions > 0:
            self.on_preempted()
        if self.now.cache_tokens:
            self.on_cache(self.now.cache_tokens)
        moment = time.monotonic()
        seconds, self._when = max(moment - self._when, 1e-6), moment
        self.prompt_rate, self.generation_rate = new.prompt_tokens / seconds, new.generation_tokens / seconds
        self.looks += 1
        for name in _GAUGES:
            self._sums[name] = self._sums.get(name, 0.0) + getattr(self.now, name)
        self._sums["kv_peak"] = max(self._sums.get("kv_peak", 0.0), self.now.kv_usage)

    @property
    def prefix_hit_rate(self) -> float | None:
        """Share of prompt tokens found in the prefix cache, over the run; None before the first prompt."""
        total = self.total
        return total.prefix_hits / total.prefix_queries if total.prefix_queries else None

    def summary(self, wall_s: float) -> Server | None:
        """For `summary.json`; None when no server could be looked into. Rates are over the whole run."""
        if not self.looks:
            return None
        total = self.total
        mean = {name: self._sums[name] / self.looks for name in _GAUGES}
        return Server(
            running_mean=mean["running"],
            waiting_mean=mean["waiting"],
            kv_cache_usage_mean=mean["kv_usage"],
            kv_cache_usage_peak=self._sums["kv_peak"],
            prefix_cache_hit_rate=self.prefix_hit_rate,
            preemptions=int(total.preemptions),
            prompt_tokens_per_s=total.prompt_tokens / wall_s if wall_s else 0.0,
            generation_tokens_per_s=total.generation_tokens / wall_s if wall_s else 0.0,
            requests_s=total.requests_s,
        )


async def read_metrics(http: ClientSession, url: str) -> Reading | None:
    """One look; None where there is no such page, or one beyond all bounds."""
    import aiohttp

    with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, ValueError):
        async with http.get(url) as response:
            if response.status == 200:
                page = bytearray()
                async for chunk in response.content.iter_any():  # `read(n)` ends with the first piece
                    page += chunk
                    if len(page) > _PAGE_LIMIT:
                        return None
                return parse(page.decode(errors="replace"))
    return None
