"""Compare a run's statements about its model and options with the rest of its folder.

A replay cannot show which model answered or which requests the model got. Several files of the folder state these
facts, and this check requires that the files agree. It finds nothing if somebody changed all files in the same way.
Tables mark facts that a replay cannot verify.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from evalharness.base.settings import escape_variables
from evalharness.base.yaml_lines import read_yaml, syntax_problem
from evalharness.checks.verify.findings import Finding, is_same
from evalharness.config import EXTERNAL, OPTIONS, SAMPLING, is_scripted
from evalharness.config.policy import display_name
from evalharness.envs.base import MAX_TURNS, EnvSpec
from evalharness.protocol.prompt import Adaptation, load_prompt
from evalharness.records.episode import Episode
from evalharness.records.files import CONFIG
from evalharness.records.manifest import Manifest

_ALWAYS = ("model_name", "max_tokens", "max_turns", "seed", "samples", "temperature", "top_p")
_OF_MODELS = ("system", "shots", *SAMPLING)


def manifest_findings(manifest: Manifest, specs: Mapping[str, EnvSpec]) -> list[Finding]:
    """Return the manifest's names, prompts and requests that contradict the run's configuration."""
    identity = manifest.identity
    config, model = manifest.options, identity.model
    wanted: dict[str, Any] = {
        "model_name": display_name(str(config.get("model")), config.get("model_name"), config.get("lora"))
    }
    stated: dict[str, Any] = {"model_name": manifest.model_name}
    if is_scripted(str(config.get("model"))):
        kind = "external" if str(config["model"]).startswith(EXTERNAL) else "scripted"
        wanted |= {"identity.model.kind": kind, "identity.model.name": str(config["model"])}
    elif config.get("model") == "endpoint":
        wanted |= {"identity.model.kind": "endpoint", "identity.model.name": config.get("model_name")}
    elif model.get("kind") in ("scripted", "endpoint"):
        wanted |= {"identity.model.kind": "vllm"}
    stated |= {key: model.get(key.rpartition(".")[2]) for key in wanted if key not in stated}
    findings = [
        Finding(
            "manifest", f"manifest.json, {key}", "not that of its configuration", stated[key], wanted[key]
        )
        for key in wanted
        if not is_same(stated[key], wanted[key])
    ]
    if Adaptation.of(config) != Adaptation():
        what = "that of the prompt without its system message and --shots"
        findings += [
            Finding("manifest", f"manifest.json, prompts_sha256.{family}", what)
            for family in _find_unchanged_prompts(manifest, specs)
        ]
    for start in manifest.sessions:
        for asked in start.requests:
            sent = sent if isinstance(sent := asked.get("sampling"), dict) else {}
            for name in SAMPLING:
                if name in sent and config.get(name) is not None and not is_same(sent[name], config[name]):
                    what = "another one than was sent to the server"
                    findings.append(
                        Finding("manifest", f"manifest.json, {name}", what, config[name], sent[name])
                    )
    return list(dict.fromkeys(findings))


def _find_unchanged_prompts(manifest: Manifest, specs: Mapping[str, EnvSpec]) -> list[str]:
    """Return the families whose recorded prompts have the hashes of evalharness's own prompt files."""
    return [
        family
        for family, sha in sorted(manifest.identity.prompts_sha256.items())
        if family in specs and sha == load_prompt(specs[family]).sha256
    ]


def _options(path: Path) -> Mapping[str, Any] | str | None:
    """Return the options of `config.yaml`, or why the file cannot be read; None if it does not exist."""
    try:
        options = read_yaml(path)
    except FileNotFoundError:
        return None
    except (OSError, yaml.YAMLError) as error:
        return f"not readable ({syntax_problem(error)[:200]})"
    return options if isinstance(options, dict) else "it contains no options"


def config_findings(folder: Path, manifest: Manifest) -> list[Finding]:
    """Compare `config.yaml`, if it exists, with the configuration in the manifest."""
    options = _options(folder / CONFIG)
    if options is None:
        return []
    if isinstance(options, str):
        return [Finding("option", CONFIG, options)]
    config = manifest.options
    findings = []
    first = options.get("model")
    first = str(first[0] if isinstance(first, list) and first else first)
    model = "endpoint" if first.startswith(("http://", "https://")) else first
    if model != escape_variables(str(config.get("model"))):
        findings.append(Finding("option", f"{CONFIG}, model", "another one", config.get("model"), model))
    for name in _ALWAYS if is_scripted(str(config.get("model"))) else dict.fromkeys((*_ALWAYS, *_OF_MODELS)):
        default = MAX_TURNS if name == "max_turns" else OPTIONS[name].default
        recorded = config.get(name, default)
        if name not in options and recorded is None:
            continue  # unset, or the model's own value
        if not is_same(escape_variables(recorded), found := options.get(name, default)):
            findings.append(Finding("option", f"{CONFIG}, {name}", "another one", recorded, found))
    return findings


def config_notes(folder: Path, manifest: Manifest, specs: Mapping[str, EnvSpec]) -> list[str]:
    """Return a note if the run's prompt files are the user's, but equal evalharness's own files."""
    options = _options(folder / CONFIG)
    ours = [specs[family].title for family in _find_unchanged_prompts(manifest, specs)]
    if isinstance(options, Mapping) and options.get("prompts") and ours:
        return [
            f"{CONFIG} names the user's own prompt files, but they have the hashes of ours: {', '.join(ours)}"
        ]
    return []


def turn_findings(episode: Episode, config: Mapping[str, Any]) -> list[Finding]:
    """Return findings about turns that contradict the run's options, and about times that differ from their sum."""
    where = f"{episode.task_id}, sample {episode.sample}"
    findings = []
    scripted, limit = is_scripted(str(config.get("model"))), config.get("max_tokens")
    for turn in episode.turns:
        if scripted and (turn.prompt_tokens or turn.completion_tokens):
            what = f"a model's reply, but {config['model']} asks no model"
            findings.append(Finding("option", f"{where}, turn {turn.turn}", what))
            break
        if limit is not None and (turn.completion_tokens or 0) > limit:
            what = "more tokens in a reply than the run allows"
            findings.append(
                Finding("option", f"{where}, turn {turn.turn}", what, turn.completion_tokens, limit)
            )
            break
    spent = sum(turn.policy_s for turn in episode.all_turns)
    if not is_same(episode.policy_s, spent):
        findings.append(
            Finding("option", where, "seconds of its turns at the policy", episode.policy_s, spent)
        )
    return findings
