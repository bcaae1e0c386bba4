"""Every Eval Ever 0.3.0: a JSON document of the run's results, and JSON lines of its samples beside it.

Both lie where the format's datastore keeps them: `data/evalharness-SUITE/DEVELOPER/MODEL/UUID.json` and
`UUID_samples.jsonl`. A sample belongs to one result there, so each episode has a line for success and one for progress.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.paths import folder_name
from evalharness.base.version import __version__
from evalharness.protocol.prompt import Message
from evalharness.protocol.tools import NAME as TOOL
from evalharness.protocol.tools import TOOL as TOOL_DEFINITION
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.records.summary import Scores, Summary
from evalharness.results.exports.conversation import Protocol, conversation

SCHEMA = "0.3.0"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
MEASURES = ("success_rate", "progress_rate")
_MODEL_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class About:
    """What a run does not know of itself."""

    model_id: str
    """`DEVELOPER/NAME`."""
    organization: str
    """Who ran the evaluation."""
    relationship: str
    """To the model's developer: one of `RELATIONSHIPS`."""

    @classmethod
    def of(cls, model_id: str | None, organization: str | None, relationship: str, name: str) -> About:
        """`name`: the model's in the run, which may be such an id. Raises UserError."""
        found = model_id or name
        if not _MODEL_ID.fullmatch(found):
            raise UserError(
                f"every-eval-ever files results by developer and model, and {found!r} does not say both; "
                "give --model-id DEVELOPER/NAME"
            )
        if relationship not in RELATIONSHIPS:
            raise UserError(f"--relationship {relationship}: it is one of {', '.join(RELATIONSHIPS)}")
        return cls(found, organization or "unknown", relationship)


def strings(values: Mapping[str, Any]) -> dict[str, str]:
    """The format's free details are strings."""
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in values.items()
        if value is not None
    }


@dataclass(frozen=True)
class Ids:
    """Names that both files use. The same run has the same."""

    suite: str
    about: About
    evaluation: str
    uuid: str

    @classmethod
    def of(cls, manifest: Manifest, about: About, ended: float) -> Ids:
        suite = f"evalharness-{folder_name(manifest.suite, 'suite')}"
        whole = f"{manifest.digest}\n{about}\n{ended!r}".encode()
        name = uuid.UUID(bytes=hashlib.sha256(whole).digest()[:16], version=4)
        return cls(suite, about, f"{suite}/{about.model_id}/{ended:.3f}", str(name))

    @property
    def folder(self) -> str:
        return f"data/{self.suite}/{self.about.model_id}"

    @property
    def samples(self) -> str:
        return f"{self.folder}/{self.uuid}_samples.jsonl"


def write(
    target: Path, episodes: Iterable[Episode], manifest: Manifest, summary: Summary, about: About
) -> int:
    """Write both files below `target`; returns the number of episodes. One episode is in memory at a time."""
    ended = max((start.started for start in manifest.sessions), default=0.0) + float(summary.wall_s or 0)
    ids = Ids.of(manifest, about, ended)
    path = target / ids.samples
    path.parent.mkdir(parents=True, exist_ok=True)
    count, rows = 0, 0
    checksum = hashlib.sha256()
    with path.open("wb") as file:
        for episode in episodes:
            count += 1
            for row in samples(episode, manifest, ids):
                line = json.dumps(row, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
                checksum.update(line)
                file.write(line)
                rows += 1
    whole = document(manifest, summary, ids, ended) | {
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": ids.samples,
            "hash_algorithm": "sha256",
            "checksum": checksum.hexdigest(),
            "total_rows": rows,
        }
    }
    (target / ids.folder / f"{ids.uuid}.json").write_text(
        json.dumps(whole, indent=2) + "\n", encoding="utf-8"
    )
    return count


_SOURCES = {"agentboard": ("AgentBoard", "https://huggingface.co/datasets/hkust-nlp/agentboard")}
"""Published suites -> where their data is from; every other suite is this harness's own."""


def document(manifest: Manifest, summary: Summary, ids: Ids, ended: float) -> dict[str, Any]:
    groups: dict[str, tuple[str, Scores]] = {
        family: (manifest.titles[family], found) for family, found in summary.families.items() if found.n
    }
    if summary.held_out:
        groups["held_out"] = ("Held-out score", summary.held_out)
    return {
        "schema_version": SCHEMA,
        "evaluation_id": ids.evaluation,
        "evaluation_timestamp": f"{manifest.sessions[0].started:.3f}",
        "retrieved_timestamp": f"{ended:.3f}",
        "source_metadata": {
            "source_name": "evalharness",
            "source_type": "evaluation_run",
            "source_organization_name": ids.about.organization,
            "evaluator_relationship": ids.about.relationship,
        },
        "eval_library": {
            "name": "evalharness",
            "version": str(manifest.sessions[-1].evalharness),
            "additional_details": strings(
                {
                    "digest": manifest.digest,
                    "git": manifest.sessions[-1].git,
                    "exported_by": __version__,
                }
            ),
        },
        "model_info": _model(manifest, ids.about),
        "evaluation_results": [
            _result(group, title, found, measure, manifest)
            for group, (title, found) in groups.items()
            for measure in MEASURES
        ],
    }


def _model(manifest: Manifest, about: About) -> dict[str, Any]:
    kind = manifest.identity.model.get("kind")
    policy = manifest.sessions[-1].policy
    engine = (
        {"inference_engine": {"name": "vllm", "version": str(getattr(policy, "vllm", "unknown"))}}
        if kind == "vllm"
        else {}
    )
    return {
        "name": manifest.model_name,
        "id": about.model_id,
        **engine,
        "additional_details": {
            "deployment_type": "self_deployed" if kind == "vllm" else "unknown",
            "model_availability": "unknown",
        },
    }


def _result(group: str, title: str, found: Scores, measure: str, manifest: Manifest) -> dict[str, Any]:
    config, suite = manifest.config, manifest.suite
    low, high = getattr(found, f"{measure}_ci95")
    what = "tasks solved" if measure == "success_rate" else "progress reached at the last turn"
    of = " over its families, weighted by their number of tasks" if group == "held_out" else ""
    name, url = _SOURCES.get(suite, (f"evalharness {suite} suite", ""))
    seed = f", seed {config.suite_seed}" if config.suite_seed else ""
    return {
        "evaluation_result_id": f"{group}/{measure}",
        "evaluation_name": f"{title} {measure.replace('_', ' ')}",
        "source_data": {
            "dataset_name": f"{name}{seed}: {title}",
            **({"source_type": "url", "url": [url]} if url else {"source_type": "other"}),
        },
        "metric_config": {
            "evaluation_description": f"share of {what}{of}, suite {suite}{seed}",
            "metric_id": f"evalharness.{measure}",
            "metric_name": measure.replace("_", " "),
            "metric_kind": measure,
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": {
            "score": getattr(found, measure),
            "details": strings(
                {
                    "tasks": found.n,
                    "tasks_of_the_family": getattr(found, "expected", None),
                    "episodes": getattr(found, "episodes", None),
                    "grounding_accuracy": getattr(found, "grounding_accuracy", None),
                    "labels": manifest.labels.get(group),
                }
            ),
            "uncertainty": {
                "confidence_interval": {
                    "lower": low,
                    "upper": high,
                    "confidence_level": 0.95,
                    "method": "score interval over tasks",
                },
                "num_samples": found.n,
            },
        },
        "generation_config": _generation(manifest, group),
    }


def _generation(manifest: Manifest, group: str) -> dict[str, Any]:
    config, limits = manifest.options, manifest.turn_limits
    turns = limits.get(group, max(limits.values()))
    tools = manifest.config.agent_name == "tools"
    given = {key: config.get(key) for key in ("temperature", "top_p", "max_tokens")}
    args: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if (config.get("top_k") or -1) > 0:
        args["top_k"] = config["top_k"]
    if manifest.identity.model.get("kind") == "scripted":
        args = {}
    if tools:
        function = TOOL_DEFINITION["function"]
        args["agentic_eval_config"] = {
            "available_tools": [{"name": TOOL, "description": function["description"]}]
        }
    # The opening is two messages, each turn a reply and an observation.
    args["eval_limits"] = {"message_limit": 2 + 2 * turns}
    details = {
        "max_turns": turns,
        "samples": config["samples"],
        "seed": config.get("seed"),
        "perturbation": config.get("perturb"),
        "agent": manifest.config.agent_said,
        "protocol": manifest.config.protocol_said,
    }
    return {"generation_args": args, "additional_details": strings(details)}


_METADATA = ("family", "kind", "difficulty", "labels", "perturbation", "ended_by", "solved", "task_hash")


def samples(episode: Episode, manifest: Manifest, ids: Ids) -> Iterator[dict[str, Any]]:
    protocol = Protocol.of(manifest)
    messages = conversation(episode, protocol)
    raw = f"Goal: {episode.goal}\nObservation: {episode.first_observation}"
    reference = list(episode.subgoals)
    last = max((i for i, message in enumerate(messages) if message["role"] == "assistant"), default=None)
    action = next((turn.action for turn in reversed(episode.turns) if turn.action is not None), "")
    calls = sum(len(turn.calls) for turn in episode.turns)
    common: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": ids.evaluation,
        "model_id": ids.about.model_id,
        "sample_id": f"{episode.task_id}#{episode.sample}",
        "sample_hash": hashlib.sha256((raw + "".join(reference)).encode(errors="surrogatepass")).hexdigest(),
        "interaction_type": "agentic" if protocol.calls_tools else "multi_turn",
        "input": {"raw": raw, "reference": reference},
        "messages": list(_messages(messages, episode)),
        "answer_attribution": []
        if last is None
        else [
            {
                "turn_idx": last,
                "source": f"messages[{last}].content",
                "extracted_value": action,
                "extraction_method": "custom",
                "is_terminal": True,
            }
        ],
        "token_usage": {
            "input_tokens": episode.prompt_tokens,
            "output_tokens": episode.completion_tokens,
            "total_tokens": episode.prompt_tokens + episode.completion_tokens,
            "input_tokens_cache_read": episode.cached_tokens,
            "reasoning_tokens": episode.reasoning_tokens,
        },
        "performance": {"latency_ms": 1000 * max(episode.wall_s, 0.0)},
        "metadata": strings({name: getattr(episode, name) for name in _METADATA}),
    }
    turns = {"num_turns": len(episode.turns)} if episode.turns else {}
    title = manifest.titles.get(episode.family, episode.family)
    for measure, score in zip(MEASURES, (float(episode.success), float(episode.progress)), strict=True):
        yield common | {
            "evaluation_name": f"{title} {measure.replace('_', ' ')}",
            "evaluation_result_id": f"{episode.family}/{measure}",
            "evaluation": {"score": score, "is_correct": episode.success, **turns, "tool_calls_count": calls},
        }


def _messages(messages: Iterable[Message], episode: Episode) -> Iterator[dict[str, Any]]:
    turns = iter(episode.turns)
    for index, message in enumerate(messages):
        shown: dict[str, Any] = {"turn_idx": index, "role": message["role"], "content": message["content"]}
        if message["role"] == "assistant" and (turn := next(turns, None)) is not None and turn.reasoning:
            shown["reasoning_trace"] = turn.reasoning
        if calls := message.get("tool_calls"):
            shown["tool_calls"] = [
                {
                    "id": call["id"],
                    "name": call["function"]["name"],
                    "arguments": strings(json.loads(call["function"]["arguments"])),
                }
                for call in calls
            ]
        if "tool_call_id" in message:
            shown["tool_call_id"] = [message["tool_call_id"]]
        yield shown
