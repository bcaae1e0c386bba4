"""The document of a run: who evaluated which model with what, and a result for each family and measure."""

from __future__ import annotations

from typing import Any

from evalharness.base.version import __version__
from evalharness.protocol.tools import NAME as TOOL
from evalharness.protocol.tools import TOOL as TOOL_DEFINITION
from evalharness.records.manifest import Manifest
from evalharness.records.summary import Scores, Summary
from evalharness.results.exports.every_eval_ever.ids import MEASURES, SCHEMA, About, Ids, strings

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
            _result(group, title, found, measure, manifest, summary)
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


def _result(
    group: str,
    title: str,
    found: Scores,
    measure: str,
    manifest: Manifest,
    summary: Summary,
) -> dict[str, Any]:
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
