"""An Inspect log (`.eval`, log version 2): a zip of JSON that Inspect's viewer and dataframes read.

| member | what |
|---|---|
| `_journal/start.json` | the specification, as at the start |
| `samples/<task id>_epoch_<n>.json` | an episode: its messages, scores, usage; epochs count from 1 |
| `summaries.json` | the same in short |
| `header.json` | specification, results, usage |

Inspect's own writer is not used: the harness would need its seventy dependencies. The tests read with the real package.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalharness.config import SAMPLING
from evalharness.records.episode import Episode, Turn
from evalharness.records.manifest import Manifest
from evalharness.results.exports.conversation import USUAL, Protocol, as_text, conversation, opening

LOG_VERSION = 2
_TIME = (1980, 1, 1, 0, 0, 0)
"""Of every member: the same run gives the same bytes."""
SCORES = ("success", "progress", "grounding_accuracy", "solved")
_STOPS = {
    "stop": "stop",
    "length": "max_tokens",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
}


def _time(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).isoformat(timespec="microseconds")


def _id(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:22]


def _usage(prompt: int, completion: int) -> dict[str, int]:
    return {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}


def _scores(episode: Episode) -> dict[str, Any]:
    return {
        "success": {"value": int(episode.success), "answer": episode.ended_by},
        "progress": {"value": episode.progress},
        "grounding_accuracy": {"value": episode.grounding_accuracy},
        "solved": {"value": int(episode.solved)},
    }


def sample(episode: Episode, model: str, protocol: Protocol = USUAL) -> dict[str, Any]:
    """One `EvalSample`. `input` is the opening, `messages` the whole chat."""
    key = (episode.task_id, episode.sample)
    messages = [
        {"id": _id(*key, i), **message}
        | ({"source": "generate", "model": model} if message["role"] == "assistant" else {"source": "input"})
        for i, message in enumerate(map(as_text, conversation(episode, protocol)))
    ]
    start, _ = opening(episode, protocol)
    empty: dict[str, Any] = {"model": model, "choices": [], "completion": ""}
    output = _output(episode.turns[-1], messages[-2], model) if episode.turns else empty
    return {
        "id": episode.task_id,
        "epoch": episode.sample + 1,
        "input": messages[: len(start)],
        "target": list(episode.subgoals),
        "messages": messages,
        "output": output,
        "scores": _scores(episode),
        "metadata": _metadata(episode),
        "events": _events(episode, model, messages, len(start)),
        "events_data": {"messages": messages, "calls": []},
        "model_usage": {model: _usage(episode.prompt_tokens, episode.completion_tokens)},
        "started_at": _time(episode.started),
        "completed_at": _time(episode.started + episode.wall_s),
        "total_time": episode.wall_s,
        "working_time": episode.wall_s,
        "uuid": _id(*key),
        "turn_count": len(episode.turns),
    } | ({"limit": {"type": "turn", "limit": len(episode.turns)}} if episode.ended_by == "turn_limit" else {})


def _output(turn: Turn, message: Mapping[str, Any], model: str) -> dict[str, Any]:
    return {
        "model": model,
        "choices": [{"message": message, "stop_reason": _STOPS.get(turn.finish_reason, "unknown")}],
        "completion": message["content"],
        "usage": _usage(turn.prompt_tokens or 0, turn.completion_tokens or 0),
        "time": turn.policy_s,
    }


def _events(
    episode: Episode, model: str, messages: Sequence[Mapping[str, Any]], head: int
) -> list[dict[str, Any]]:
    """For each turn the model's call and what the turn came to.

    A call's input is given by ranges of `events_data.messages`, half open: written out, it would grow with the square
    of the turns.
    """
    events: list[dict[str, Any]] = []
    dropped, elapsed = 0, 0.0
    dropped_before = episode.dropped_before
    for i, turn in enumerate(episode.turns):
        dropped += dropped_before.get(turn.turn, 0)
        reply = head + 2 * i
        shown = [[0, head], [head + 2 * dropped, reply]]
        about = {
            "uuid": _id(episode.task_id, episode.sample, turn.turn, "call"),
            "timestamp": _time(episode.started + elapsed),
            "working_start": elapsed,
        }
        call = {
            "event": "model",
            "model": model,
            "input": [],
            "input_refs": [pair for pair in shown if pair[0] < pair[1]],
            "tools": [],
            "tool_choice": "none",
            "config": {},
            "output": _output(turn, messages[reply], model),
            "working_time": turn.policy_s,
        }
        elapsed += turn.policy_s + turn.environment_s + turn.worker_s
        outcome = {
            "turn": turn.turn,
            "reasoning": turn.reasoning,
            "thought": turn.thought,
            "action": turn.action,
            "observation": turn.observation,
            "progress": turn.progress,
            "valid": turn.valid,
            "format_errors": list(turn.format_errors),
            "subgoals_completed": list(turn.subgoals_completed),
            "reply": turn.reply,
        }
        after = {
            "uuid": _id(episode.task_id, episode.sample, turn.turn, "outcome"),
            "timestamp": _time(episode.started + elapsed),
            "working_start": elapsed,
        }
        events += [about | call, after | {"event": "info", "source": "evalharness", "data": outcome}]
    return events


def _metadata(episode: Episode) -> dict[str, Any]:
    names = ("family", "kind", "difficulty", "labels", "perturbation", "goal", "ended_by")
    found = {name: getattr(episode, name) for name in names}
    return found | {"trims": len(episode.trims), "task_hash": episode.task_hash}


def _summary(whole: Mapping[str, Any], episode: Episode) -> dict[str, Any]:
    kept = ("id", "epoch", "target", "scores", "model_usage", "started_at", "completed_at", "total_time",
            "working_time", "uuid", "turn_count")  # fmt: skip
    return {key: whole[key] for key in kept} | {
        "input": episode.goal,
        "metadata": _metadata(episode),
        "completed": True,
        "message_count": len(whole["messages"]),
        **({"limit": "turn"} if "limit" in whole else {}),
    }


def _specification(manifest: Manifest, ids: list[str], samples: int) -> dict[str, Any]:
    config = manifest.options
    start = manifest.sessions[0]
    sampling = {
        key: config[key]
        for key in (*SAMPLING[:3], "frequency_penalty", "presence_penalty", "max_tokens", "seed")
        if config.get(key) is not None
    }
    specification = {
        "eval_id": _id(manifest.digest, "eval"),
        "run_id": _id(manifest.digest, "run"),
        "created": _time(start.started),
        "task": f"evalharness/{manifest.suite}",
        "task_id": _id(manifest.digest, "task"),
        "task_version": 0,
        "task_args": {
            "suite": manifest.suite,
            "suite_seed": config["suite_seed"],
            "perturb": config.get("perturb"),
        },
        "solver": manifest.config.agent_said,
        "dataset": {
            "name": manifest.suite,
            "samples": len(ids),
            "sample_ids": ids,
            "shuffled": False,
        },
        "model": manifest.model_name,
        "model_generate_config": sampling,
        "config": {"epochs": samples, "turn_limit": max(manifest.turn_limits.values())},
        "packages": {"evalharness": start.evalharness},
        "metadata": {
            "digest": manifest.digest,
            "max_turns": max(manifest.turn_limits.values()),
            "labels": manifest.labels,
        },
        "scorers": [{"name": name, "metrics": [{"name": "mean"}]} for name in SCORES],
    }
    if git := start.git:
        commit, changed = git.removesuffix("+changes"), git.endswith("+changes")
        specification["revision"] = {"type": "git", "origin": "", "commit": commit, "dirty": changed}
    return specification


def write(path: Path, episodes: Iterable[Episode], manifest: Manifest, *, complete: bool) -> int:
    """Write the log; returns the number of episodes. One episode is in memory at a time."""
    model = manifest.model_name
    summaries: list[dict[str, Any]] = []
    ids: dict[str, None] = {}
    sums = dict.fromkeys(SCORES, 0.0)
    usage = [0, 0]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:

        def add(name: str, value: Any) -> None:
            info = zipfile.ZipInfo(name, _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, json.dumps(value, ensure_ascii=True, separators=(",", ":")))

        started, completed = float("inf"), 0.0
        for episode in episodes:
            whole = sample(episode, model, Protocol.of(manifest))
            add(f"samples/{whole['id']}_epoch_{whole['epoch']}.json", whole)
            summaries.append(_summary(whole, episode))
            ids[episode.task_id] = None
            for name in SCORES:
                sums[name] += whole["scores"][name]["value"]
            tokens = whole["model_usage"][model]
            usage[0] += tokens["input_tokens"]
            usage[1] += tokens["output_tokens"]
            started = min(started, episode.started)
            completed = max(completed, episode.started + episode.wall_s)
        specification = _specification(manifest, list(ids), manifest.config.samples)
        plan = {
            "name": "plan",
            "steps": [{"solver": specification["solver"]}],
            "config": specification["model_generate_config"],
        }
        add("_journal/start.json", {"version": LOG_VERSION, "eval": specification, "plan": plan})
        add("summaries.json", summaries)
        count = len(summaries)
        add(
            "header.json",
            {
                "version": LOG_VERSION,
                "status": "success" if complete else "started",
                "eval": specification,
                "plan": plan,
                "results": {
                    "total_samples": count,
                    "completed_samples": count,
                    "scores": [
                        {
                            "name": name,
                            "scorer": name,
                            "scored_samples": count,
                            "metrics": {
                                "mean": {"name": "mean", "value": sums[name] / count if count else 0.0}
                            },
                        }
                        for name in SCORES
                    ],
                },
                "stats": {
                    "started_at": _time(started) if count else "",
                    "completed_at": _time(completed) if count else "",
                    "model_usage": {model: _usage(*usage)},
                },
            },
        )
    return count
