"""What a run is: all that its results depend on, and how two such identities differ. Pure.

| part | what it tells apart |
|---|---|
| `config` | the options that change results (`config.run`) |
| `model` | which model answered: a checkpoint's hash, what an endpoint's server says it serves, the name of a script |
| `tasks_sha256` | the tasks of each family |
| `prompts_sha256` | the prompt file of each family |

It stands in `manifest.json`. A run is continued only while all of it stays equal; only more samples
and more tasks may join.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from evalharness.base.redaction import redact_data

ANSWERED_BY = "answered_by"
SOURCE = (ANSWERED_BY, "system_fingerprint", "weight_version")
"""Keys of what a start knows of an endpoint: what its first reply says of the model and the server that made it."""
_LONGEST = 300
"""Characters of a value that a message repeats: a manifest may hold anything."""


def digest(identity: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the whole identity as it is written: without secrets."""
    return hashlib.sha256(json.dumps(redact_data(identity), sort_keys=True).encode()).hexdigest()


def changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return why a run of identity `earlier` cannot continue as `now`, one line per reason; empty if it can."""
    now = redact_data(now)
    before, now = _with_more_samples(earlier, now), with_words_of(earlier, now)
    options = differences(_as_options(before), _as_options(now))
    # Other options select other tasks.
    left_out = {"config", "tasks_sha256"} if options else {"config"}
    old, new = ({key: value for key, value in one.items() if key not in left_out} for one in (before, now))
    return options + differences(old, new)


def telling(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a reply's source that must stay the same. Hosted services change their `system_fingerprint`
    at any time; vLLM's is a hash of the server's configuration."""
    return {
        key: source[key]
        for key in SOURCE
        if key in source and (key != "system_fingerprint" or "vllm-" in str(source[key]))
    }


def other_answerers(starts: Sequence[Any]) -> list[str]:
    """Return a readable line for each difference between the sources of the last start and of an earlier one."""

    def source_of(start: Any) -> dict[tuple[str, str], Any]:
        facts = start.items() if isinstance(start, Mapping) else ()
        return {
            (role, key): value
            for role, each in facts
            if isinstance(each, Mapping)
            for key, value in telling(each).items()
        }

    *earlier, last = map(source_of, starts)
    first = {place: said for start in reversed(earlier) for place, said in start.items() if place in last}
    before, now = ({".".join(place): said[place] for place in first} for said in (first, last))
    return differences(before, now)


def _as_options(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"--{_NAMED.get(name, name).replace('_', '-')}": value
        for name, value in identity.get("config", {}).items()
    }


_NAMED = {"sample": "draw"}
"""Options that have another name in a manifest."""


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return a readable line for every key with different values in two nested mappings."""
    lines = []
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            lines += differences(before, after, f"{prefix}{key}.")
        elif before != after:
            lines.append(f"{prefix}{key}: {_clip_value(before)} there, {_clip_value(after)} now")
    return lines


def _clip_value(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def with_words_of(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `now` with only those words of the agent's command that named something at the first start: another word
    may name a file that the program has written since."""
    before, after = (identity.get("config", {}).get("agent") for identity in (earlier, now))
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return now
    hashes = after.get("command_sha256", {})
    agent = {key: value for key, value in after.items() if key not in ("command_sha256", "not_checked")}
    if isinstance(words := before.get("command_sha256"), Mapping):
        agent["command_sha256"] = {word: hashes.get(word) for word in words}
    if "not_checked" in before:
        agent["not_checked"] = before["not_checked"]
    return {**now, "config": {**now["config"], "agent": agent}}


def _with_more_samples(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `earlier` with the number of samples of `now` if that is larger: existing attempts stay valid, so a run
    of 4 samples continues to 10."""
    before, wanted = (identity.get("config", {}).get("samples", 1) for identity in (earlier, now))
    if not before < wanted:
        return earlier
    return {**earlier, "config": {**earlier["config"], "samples": wanted}}
