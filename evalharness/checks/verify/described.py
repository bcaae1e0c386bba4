"""Select the tasks of a run's configuration on this machine, and compare them with the run's manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalharness.base.errors import UserError
from evalharness.checks.verify.findings import Finding, is_same
from evalharness.config import AgentConfig, SelectionConfig, is_scripted, make_config
from evalharness.config.run import rename_options
from evalharness.envs.base import MAX_TURNS, EnvSpec, Task
from evalharness.protocol.prompt import Adaptation, load_prompt
from evalharness.records.episode import Episode
from evalharness.records.identity import digest
from evalharness.records.make_manifest import make_manifest
from evalharness.records.manifest import Manifest, SessionRecord
from evalharness.records.stored import why
from evalharness.runs.selected import selected_tasks
from evalharness.suites.selection import Load

_OF_TASKS = (
    *("tasks", "suite", "suite_seed", "questions", "limit", "draw", "subset", "samples"),
    *("max_turns", "perturb", "own_perturbations"),
)
"""Options that determine the tasks and the texts of actions. Options of the model and the agent change neither."""
_RECOMPUTED = ("counts", "expected", "held_out", "titles", "labels", "scores", "draw", "subset")
_LISTED = 100
"""If a task lacks more samples than this, a single finding gives their number; otherwise each has its own finding."""
_OF_THE_TASK = ("family", "suite", "kind", "difficulty", "labels", "subgoals")


@dataclass(frozen=True)
class DescriptionCheck:
    """The tasks of a run, and the differences between these tasks and the manifest."""

    selection: SelectionConfig
    agent: AgentConfig
    tasks: Mapping[str, Task]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def check_description(
    manifest: Manifest, specs: Mapping[str, EnvSpec], data: Path | None, load: Load
) -> DescriptionCheck:
    """Select the run's tasks and compare them with the manifest. `load` reads the tasks of a suite.

    Raise UserError if the tasks are not available: missing data, or a family that is not installed.
    """
    findings: list[Finding] = []
    identity = manifest.identity
    if manifest.digest != (own := digest(identity.to_json())):
        findings.append(
            Finding("manifest", "manifest.json, digest", "not that of its identity", manifest.digest, own)
        )
    try:
        given = {name: value for name, value in rename_options(manifest.options).items() if name in _OF_TASKS}
        if str(given.get("tasks", "")).startswith("@"):
            # `@FILE` in a run's manifest would make us read a file that another person names.
            raise UserError("the manifest's configuration is invalid (tasks: it names a file)")
        if given.get("max_turns") == MAX_TURNS:  # the default; a family can have a smaller one
            del given["max_turns"]
        config = make_config({"model": "oracle", **given})
    except ValidationError as error:
        raise UserError(f"the manifest's configuration is invalid ({why(error)})") from None
    if absent := sorted(manifest.counts.keys() - specs.keys()):
        raise UserError(f"the run plays {', '.join(absent)}, which is not installed here")
    chosen, subset = selected_tasks(specs, config.selection, data, load)
    again = make_manifest(config, chosen, specs, identity.prompts_sha256, identity.model, subset=subset)
    recorded, found = manifest.to_json(), again.to_json()
    for key in _RECOMPUTED:
        findings += _differences(key, recorded.get(key, {}), found.get(key, {}))
    if not is_same(manifest.suite, config.selection.suite):
        findings.append(
            Finding("manifest", "manifest.json, suite", "another one", manifest.suite, config.selection.suite)
        )
    fewer, turns = again.identity.turn_limits, identity.turn_limits
    if turns and turns != fewer:
        findings.append(Finding("manifest", "manifest.json, turn_limits", "other ones", turns, fewer))
    findings += _differences("tasks_sha256", identity.tasks_sha256, again.identity.tasks_sha256)
    tasks, notes = {task.id: task for own in chosen.values() for task in own}, tuple(_notes(manifest, specs))
    return DescriptionCheck(config.selection, config.agent, tasks, tuple(findings), notes)


def _differences(name: str, recorded: Mapping[str, Any], found: Mapping[str, Any]) -> list[Finding]:
    return [
        Finding("manifest", f"manifest.json, {name}.{key}", "another one", recorded.get(key), found.get(key))
        for key in sorted(recorded.keys() | found.keys())
        if not is_same(recorded.get(key), found.get(key))
    ]


def _notes(manifest: Manifest, specs: Mapping[str, EnvSpec]) -> list[str]:
    notes = []
    how = Adaptation.of(manifest.options)
    for family, sha in sorted(manifest.identity.prompts_sha256.items()):
        if family not in specs:
            continue
        try:
            at_hand = load_prompt(specs[family], adaptation=how).sha256 == sha
        except UserError as error:  # the prompt texts of the run's protocol are not imported on this machine
            notes.append(f"{specs[family].title}: {error}")
            continue
        if not at_hand:
            notes.append(f"{specs[family].title}: the prompt file of the run was not found")
    if not is_scripted(str(manifest.options.get("model"))):
        notes += _explain_unread(manifest)
    return notes + version_notes(manifest.sessions)


def version_notes(starts: Sequence[SessionRecord]) -> list[str]:
    """Note each version that differs between the sessions of a run, or between the run and this machine."""
    tools: dict[str, dict[str, None]] = {}
    packages: dict[str, dict[str, None]] = {}
    for start in starts:
        vllm = getattr(start.policy, "vllm", None)
        own = {"evalharness": start.evalharness, "git": start.git, "Python": start.python, "vLLM": vllm}
        for name, then in own.items():
            if then:
                tools.setdefault(name, {})[str(then)] = None
        for name, then in (start.packages or {}).items():
            packages.setdefault(name, {})[then or "not installed"] = None
    notes = [
        f"{name} was {', then '.join(versions)}: the run's sessions used different versions"
        for name, versions in sorted((tools | packages).items())
        if len(versions) > 1
    ]
    for name, versions in sorted(packages.items()):
        try:
            now = version(name)
        except (PackageNotFoundError, ValueError):
            now = "not installed"
        if versions.keys() != {now}:
            notes.append(f"{name} is {now} here, and was {', '.join(versions)} when the run was played")
    return notes


def _explain_unread(manifest: Manifest) -> list[str]:
    """Return why the replies were not parsed again; an empty list if they were."""
    if not manifest.model_text:
        return ["replies were not read again, and no message was built: the folder has only actions"]
    if (agent := manifest.config.agent) is None or manifest.config.chosen_agent is not None:
        return []
    return [
        f"replies were not read again, and no message was built: agent {agent.name} (version {agent.version}, code "
        f"{str(agent.code_sha256)[:12]}) is not installed here as it was; thoughts, actions and format errors are as "
        "recorded"
    ]


def task_findings(episode: Episode, task: Task, manifest: Manifest) -> list[Finding]:
    """Return the values of an episode's record that contradict its task, or the run's prompt or perturbation."""
    where = f"{episode.task_id}, sample {episode.sample}"
    pairs = [(name, getattr(episode, name), getattr(task, name)) for name in _OF_THE_TASK]
    identity = manifest.identity
    pairs += [
        ("task hash", episode.task_hash, task.content_hash),
        ("prompt hash", episode.prompt_hash, identity.prompts_sha256.get(episode.family)),
        ("perturbation", episode.perturbation, identity.config.perturb),
    ]
    return [
        Finding("task", where, name, recorded, found)
        for name, recorded, found in pairs
        if not is_same(recorded, found)
    ]


def find_missing(
    keys: set[tuple[str, int]], tasks: Sequence[str], samples: int, given_up: set[tuple[str, int]]
) -> list[Finding]:
    """Return a finding for each missing episode; if a task lacks many samples, return one finding with their number."""
    gave_up = "no episode; it was given up after infrastructure failures"
    findings = []
    for task_id in tasks:
        absent = [sample for sample in range(samples) if (task_id, sample) not in keys]
        if len(absent) > _LISTED:
            findings.append(
                Finding("missing", task_id, f"no episode of {len(absent)} of its {samples} samples")
            )
            continue
        findings += [
            Finding(
                "missing",
                f"{task_id}, sample {sample}",
                gave_up if (task_id, sample) in given_up else "no episode",
            )
            for sample in absent
        ]
    return findings
