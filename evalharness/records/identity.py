"""Compare the identities of runs. An identity contains everything that the results of a run depend on.

| part | content |
|---|---|
| `config` | the options that change results (`config.run`) |
| `model` | the model: hash of a checkpoint, the model that an endpoint's server reports, or the name of a script |
| `tasks_sha256` | the tasks of each family |
| `prompts_sha256` | the prompt file of each family |

`manifest.json` stores it. A run can continue only with an equal identity; only samples and tasks may be added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from evalharness.base.redaction import redact_data
from evalharness.envs.base import Task, tasks_hash

ANSWERED_BY = "answered_by"
SOURCE = (ANSWERED_BY, "system_fingerprint", "weight_version")
"""Keys of facts about an endpoint's model and server in the manifest; the endpoint's first reply has these facts."""
_LONGEST = 300
"""Maximum length of a value in a message; a manifest may contain a value of any length."""


def make_identity(
    options: Mapping[str, Any],
    tasks: Mapping[str, Sequence[Task]],
    turn_limits: Mapping[str, int],
    prompts: Mapping[str, str],
    model: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a run's identity. `options`: of `RunConfig.identity`. `tasks`, `turn_limits`, `prompts`: by family."""
    fewer_turns = {f: turn_limits[f] for f in tasks if turn_limits[f] != options["max_turns"]}
    return {
        "config": dict(options),
        "model": dict(model),
        "tasks_sha256": {family: tasks_hash(own) for family, own in tasks.items()},
        "prompts_sha256": dict(prompts),
        **({"turn_limits": fewer_turns} if fewer_turns else {}),
    }


def digest(identity: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the identity after secrets are removed."""
    return hashlib.sha256(json.dumps(redact_data(identity), sort_keys=True).encode()).hexdigest()


def changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the reasons why a run with identity `earlier` cannot continue as `now`; empty if it can."""
    now = redact_data(now)
    before, now = _raise_samples(earlier, now), with_words_of(earlier, now)
    options = differences(_as_options(before), _as_options(now))
    # Different options select different tasks, so a difference in tasks needs no line of its own.
    left_out = {"config", "tasks_sha256"} if options else {"config"}
    old, new = ({key: value for key, value in one.items() if key not in left_out} for one in (before, now))
    return options + differences(old, new)


def select_stable(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about a reply's source that must not change during a run. Omit the `system_fingerprint` of
    hosted services, which may change at any time; keep vLLM's, which is a hash of the server's configuration."""
    return {
        key: source[key]
        for key in SOURCE
        if key in source and (key != "system_fingerprint" or "vllm-" in str(source[key]))
    }


def other_answerers(starts: Sequence[Any]) -> list[str]:
    """Return a line for each fact in `SOURCE` that differs between the last start and an earlier start of the run."""

    def source_of(start: Any) -> dict[tuple[str, str], Any]:
        facts = start.items() if isinstance(start, Mapping) else ()
        return {
            (role, key): value
            for role, each in facts
            if isinstance(each, Mapping)
            for key, value in select_stable(each).items()
        }

    *earlier, last = map(source_of, starts)
    first = {place: facts for start in reversed(earlier) for place, facts in start.items() if place in last}
    before, now = ({".".join(place): facts[place] for place in first} for facts in (first, last))
    return differences(before, now)


def _as_options(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"--{_NAMED.get(name, name).replace('_', '-')}": value
        for name, value in identity.get("config", {}).items()
    }


_NAMED = {"sample": "draw"}
"""Name of an option in the manifest -> the option's name on the command line, if the two names differ."""


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return a line for every key whose values differ in two nested mappings."""
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
    """Return `now` without hashes for words of `--agent-command` that named no file at the run's first start. Such a
    word may now name a file, because the agent's program has written the file since then."""
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


def _raise_samples(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `earlier` with the number of samples of `now` if `now` has more samples. So a run with 4 samples of each
    task can continue with 10; its finished episodes stay valid."""
    before, wanted = (identity.get("config", {}).get("samples", 1) for identity in (earlier, now))
    if not before < wanted:
        return earlier
    return {**earlier, "config": {**earlier["config"], "samples": wanted}}
