"""Hugging Face's evaluation results: a file for the folder `.eval_results/` of a model's repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import yaml

from evalharness.errors import UserError, nearest

_MEASURES = ("success", "progress")


def columns(summary: Mapping[str, Any]) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """`babyai_success` -> (`babyai`, its scores), of what has been played; as the leaderboard calls its columns."""
    groups = {family: found for family, found in summary["families"].items() if found["n"]}
    if summary["held_out"]:
        groups["held_out"] = summary["held_out"]
    return {f"{group}_{measure}": (group, found) for group, found in groups.items() for measure in _MEASURES}


def entries(
    manifest: Mapping[str, Any],
    summary: Mapping[str, Any],
    dataset: str,
    tasks: Sequence[str],
    source: str | None,
) -> list[dict[str, Any]]:
    """`tasks`: `TASK=COLUMN`, or `TASK` alone for the held-out success rate (of the only family where there is but
    one). Values are percent. Raises UserError."""
    if dataset.count("/") != 1 or not all(dataset.split("/")):
        raise UserError(f"--dataset {dataset}: give the id of a data set on the Hub, OWNER/NAME")
    if source is not None and not source.startswith(("https://", "http://")):
        raise UserError(f"--source-url {source}: give an address that begins with https://")
    known = columns(summary)
    return [_entry(manifest, summary, known, dataset, task, source) for task in tasks]


def _entry(
    manifest: Mapping[str, Any],
    summary: Mapping[str, Any],
    known: Mapping[str, tuple[str, Mapping[str, Any]]],
    dataset: str,
    task: str,
    source: str | None,
) -> dict[str, Any]:
    task_id, _, column = task.partition("=")
    if not column:
        families = [family for family, found in summary["families"].items() if found["n"]]
        column = f"{families[0]}_success" if len(families) == 1 else "held_out_success"
        if column not in known:
            raise UserError(
                f"--task-id {task}: the run has no held-out score ({summary['held_out_withheld']}); "
                f"say which number it is: {task}=COLUMN, of {', '.join(known)}"
            )
    if column not in known or not task_id:
        raise UserError(f"--task-id {task}: the run has no {column!r}{nearest(column, list(known))}")
    group, found = known[column]
    measure = column.rpartition("_")[2]
    ended = max(session["started"] for session in manifest["sessions"]) + float(summary.get("wall_s") or 0)
    return {
        "dataset": {"id": dataset, "task_id": task_id},
        "value": round(100 * found[f"{measure}_rate"], 2),
        "date": datetime.fromtimestamp(ended, UTC).strftime("%Y-%m-%d"),
        **({"source": {"url": source, "name": "evalharness run"}} if source else {}),
        "notes": _notes(manifest, summary, group, measure, found),
    }


def _notes(
    manifest: Mapping[str, Any],
    summary: Mapping[str, Any],
    group: str,
    measure: str,
    found: Mapping[str, Any],
) -> str:
    """What has to be known to compare the number, in one line."""
    name = "held-out score" if group == "held_out" else manifest["titles"][group]
    low, high = (100 * end for end in found[f"{measure}_rate_ci95"])
    seed = manifest["identity"]["config"].get("suite_seed")
    tasks, of = found["n"], found.get("expected", found["n"])
    parts = [
        f"{name}, {measure} rate in percent [95% CI {low:.1f} to {high:.1f}]",
        f"{tasks} tasks" if tasks == of else f"{tasks} of {of} tasks only",
        f"suite {manifest['suite']}" + (f", seed {seed}" if seed else ""),
        f"at most {summary['max_turns']} turns",
    ]
    if summary["samples"] > 1:
        parts.append(f"{summary['samples']} attempts a task")
    if summary["perturbation"]:
        parts.append(f"perturbation {summary['perturbation']}")
    parts.append(f"evalharness {manifest['sessions'][-1]['evalharness']}")
    return "; ".join(parts)


def text(found: Sequence[Mapping[str, Any]]) -> str:
    return yaml.safe_dump(list(found), sort_keys=False, allow_unicode=False, width=1000)
