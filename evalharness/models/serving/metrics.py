"""Read a vLLM server's `/metrics`: its load, and the use of its caches.

The names are those of vLLM 0.32 (copied from a running server). Any server whose metrics have these names can be
read, even if another program started it.
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
"""Seconds between readings. A page has 60 kB, and vLLM updates its gauges once a step."""
_LINE = re.compile(r"^vllm:(\w+?)(?:\{[^}]*\})? ([-+0-9.eE]+)$")
_CACHE = re.compile(r"^vllm:cache_config_info\{(.*)\} ")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_PAGE_LIMIT = 16 * 2**20


@dataclass(frozen=True)
class Reading:
    """Metrics at one time, summed over a server's engines: current gauges, and counters since the server's start."""

    running: float = 0.0
    waiting: float = 0.0
    kv_usage: float = 0.0
    """Share of the key-value cache in use, 0..1."""
    cache_tokens: float = 0.0
    """Size of the key-value cache in tokens; 0 if the server does not report it or has no prefix caching."""
    prefix_queries: float = 0.0
    """Prompt tokens looked up in the prefix cache."""
    prefix_hits: float = 0.0
    prompt_tokens: float = 0.0
    generation_tokens: float = 0.0
    preemptions: float = 0.0
    requests_s: float = 0.0
    """Total seconds that requests spent in the server, including its queue."""

    def plus(self, other: Reading) -> Reading:
        return Reading(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Reading)})

    def since(self, earlier: Reading) -> Reading:
        """Return this reading with its counters reduced by those of `earlier`; gauges stay unchanged."""
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
    """Read a metrics page; None if it is not from a vLLM server."""
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
    with contextlib.suppress(KeyError, ValueError):  # names of earlier versions of vLLM
        return _finite(labels["num_gpu_blocks"]) * _finite(labels["block_size"])
    return 0.0


def _finite(text: str) -> float:
    """Read a finite number. Raises ValueError otherwise."""
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


@dataclass
class ServerInsight:
    """The metrics of one server, or several, over a run."""

    urls: Callable[[], Sequence[str]]
    """Return the URLs of the metrics pages to read now."""
    on_preempted: Callable[[], None] = lambda: None
    """Called when the server has preempted requests since the previous reading."""
    on_cache: Callable[[float], None] = lambda tokens: None
    """Called with the total size of all servers' caches in tokens, if the servers report it."""
    now: Reading | None = None
    """The last reading, summed over all servers."""
    prompt_rate: float = 0.0
    """Tokens/s between the last two readings."""
    generation_rate: float = 0.0
    looks: int = 0
    total: Reading = field(default_factory=Reading)
    """Counters of this run; counts from before the run are not included."""
    _last: dict[str, Reading] = field(default_factory=dict)
    """URL -> the server's last reading. For a server that is down: zeros, since its counters restart at zero."""
    _sums: dict[str, float] = field(default_factory=dict)
    _when: float = 0.0

    async def watch(self) -> None:
        """Read the metrics until cancelled, then read them once more. Without a metrics page, try again each minute."""
        # Import aiohttp only if there is a server: a scripted policy has none, and the import takes time.
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
        by_url = {url: r for url, r in zip(urls, readings, strict=True) if r is not None}
        if not by_url:
            return False
        together = new = Reading()
        for url, reading in by_url.items():
            last = self._last.get(url, reading)
            restarted = reading.generation_tokens < last.generation_tokens
            new = new.plus(reading.since(Reading() if restarted else last))
            together = together.plus(reading)
            self._last[url] = reading
        known = all(reading.cache_tokens for reading in by_url.values())
        self.now = replace(
            together,
            kv_usage=together.kv_usage / len(by_url),
            cache_tokens=together.cache_tokens if known else 0.0,
        )
        self._add(new)
        return True

    def _add(self, new: Reading) -> None:
        """Add the counts since the previous reading."""
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
        """Return the field for `summary.json`; None if no server could be read. Rates are over the whole run."""
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
    """Read one metrics page; None if there is no such page, or it is too long."""
    import aiohttp

    with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, ValueError):
        async with http.get(url) as response:
            if response.status == 200:
                page = bytearray()
                async for chunk in response.content.iter_any():  # `read(n)` would return only the first chunk
                    page += chunk
                    if len(page) > _PAGE_LIMIT:
                        return None
                return parse(page.decode(errors="replace"))
    return None
