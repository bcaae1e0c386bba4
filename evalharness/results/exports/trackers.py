"""Send a run's scores to an experiment tracker. Each tracker is an optional dependency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.records.manifest import Manifest
from evalharness.records.summary import Summary

Scores = Mapping[str, float]


def scores(summary: Summary) -> dict[str, float]:
    """Return every number of a summary by name: `babyai/success_rate`, `babyai/success_rate_ci95_low`, ..."""
    numbers: dict[str, float] = {}
    groups = {family: row.list_given_fields() for family, row in summary.families.items()}
    if summary.held_out:
        groups["held_out"] = summary.held_out.list_given_fields()
    for group, entry in groups.items():
        for name, value in entry.items():
            if name.endswith("_ci95") and value is not None:
                numbers[f"{group}/{name}_low"], numbers[f"{group}/{name}_high"] = map(float, value)
            elif name == "figures":
                numbers |= {f"{group}/{figure}": float(each.mean) for figure, each in value.items()}
            elif isinstance(value, int | float) and not isinstance(value, bool):
                numbers[f"{group}/{name}"] = float(value)
    for name in ("turns", "format_error_turns", "trimmed_episodes", "wall_s"):
        if (number := getattr(summary, name)) is not None:
            numbers[name] = float(number)
    return numbers | {
        f"tokens/{name}": float(count) for name, count in summary.tokens.list_given_fields().items()
    }


def _import(package: str, extra: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise UserError(
            f"{extra} is not installed; install it with: pip install 'evalharness[{extra}]'"
        ) from None


def _wandb(project: str, name: str, config: Mapping[str, Any], scores: Scores) -> None:
    wandb = _import("wandb", "wandb")
    # The id is the same for the same run, so a second upload replaces the first upload.
    with wandb.init(
        project=project,
        name=name,
        id=config["digest"][:16],
        resume="allow",
        config=dict(config),
        job_type="eval",
    ) as run:
        run.summary.update(dict(scores))


def _mlflow(project: str, name: str, config: Mapping[str, Any], scores: Scores) -> None:
    mlflow = _import("mlflow", "mlflow")
    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=name):
        mlflow.log_params({key: str(value)[:500] for key, value in config.items()})
        mlflow.log_metrics(dict(scores))


def _trackio(project: str, name: str, config: Mapping[str, Any], scores: Scores) -> None:
    trackio = _import("trackio", "trackio")
    trackio.init(project=project, name=name, config=dict(config))
    trackio.log(dict(scores))
    trackio.finish()


TRACKERS: Mapping[str, Callable[[str, str, Mapping[str, Any], Scores], None]] = {
    "mlflow": _mlflow,
    "trackio": _trackio,
    "wandb": _wandb,
}


def track(tracker: str, project: str, manifest: Manifest, summary: Summary) -> int:
    """Send the scores; return the number of scores. The tracker's own environment variables choose its server.

    Raise UserError if the tracker is not installed, InfrastructureError if it fails.
    """
    numbers = scores(summary)
    config = {"digest": manifest.digest, **manifest.options}
    name = f"{manifest.model_name} {manifest.suite} {manifest.digest[:8]}"
    try:
        TRACKERS[tracker](project, name, config, numbers)
    except UserError:
        raise
    except Exception as error:  # trackers raise any type of error
        raise InfrastructureError(
            f"{tracker} did not accept the run: {type(error).__name__}: {error}"
        ) from error
    return len(numbers)
