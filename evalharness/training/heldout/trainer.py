"""Where a training is: what `evalharness env serve` says of its episodes, and the step in the trainer's own log."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.reading import open_file, parse_json, read_json, read_object
from evalharness.records.lines import LineFile
from evalharness.results.training_log import TRAINING_LOG, Logged, Look, read_training_log

TOKEN = "EVALHARNESS_ENV_TOKEN"
"""Variable with the server's token, where it asks for one."""
_ANSWER_S = 60.0
_MOST_BYTES = 256 << 20
"""Of an answer: a list of all tasks with their forms."""
_TAIL_BYTES = 1 << 20
"""Of a trainer's log, which grows by a line a step."""


class EnvServer:
    """A running `evalharness env serve`."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def look(self, step: int | None) -> Look:
        """`step`: the trainer's, now. Raises UserError."""
        status = self._ask("/status")
        try:
            return Look.of(
                {
                    "time": time.time(),
                    "started": status["started"],
                    **({} if step is None else {"step": step}),
                    "counts": status["splits"]["train"],
                }
            )
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"--env {self.url}: its /status is none of `evalharness env serve` ({error})"
            ) from None

    def train_tasks(self) -> list[dict[str, Any]]:
        """The split `train`, each with `id`, `family`, `suite_seed`, `task_hash`, `task_forms`. Raises UserError."""
        try:
            (name,) = self._ask("/list_environments")
            path = f"/{urllib.parse.quote(name, safe='')}/tasks"
            found: list[dict[str, Any]] = list(self._ask(path, {"split": "train"})["tasks"])
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"--env {self.url}: its list of tasks is none of `evalharness env serve` ({error})"
            ) from None
        return found

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Content-Type": "application/json"}
        if token := os.environ.get(TOKEN):
            headers["Authorization"] = f"Bearer {token}"
        # A proxy for the web does not lead to a server of one's own.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(self.url + path, data, headers)
            with direct.open(request, timeout=_ANSWER_S) as response:
                return parse_json(response.read(_MOST_BYTES))
        except urllib.error.HTTPError as error:
            said = error.read(200).decode(errors="replace")
            raise UserError(f"--env {self.url}: {path}: status {error.code}: {said}") from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            why = getattr(error, "reason", error)
            raise UserError(f"--env {self.url}: no `evalharness env serve` answers there ({why})") from None


def step_of(log: Path) -> int | None:
    """The last step in a `trainer_state.json`, or in a file of JSON lines with `step` (verl's file logger, or the
    callback's). None while it does not exist or has no step yet. Raises UserError."""
    try:
        if log.suffix == ".json":
            return _step(read_json(log)["global_step"])
        with open_file(log) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read(_TAIL_BYTES).splitlines()
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"--log {log}: no step can be read from it ({error})") from None
    for line in reversed(lines):
        try:
            return _step(read_object(line)["step"])
        except (ValueError, KeyError):
            continue  # a line that is being written, or one of something else
    return None


def _step(value: object) -> int:
    """Raises ValueError. Trainers log 50.0, too."""
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return Logged.of({"step": whole, "reward": 0.0}).step


def logged_rewards(state: Path) -> list[Logged]:
    """What a `trainer_state.json` says of the reward at each step; none where it says nothing."""
    try:
        history = read_json(state)["log_history"]
        return [
            Logged.of({"step": entry["step"], "reward": entry["reward"]})
            for entry in history
            if "reward" in entry and "step" in entry
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def keep_rewards(folder: Path, checkpoints: Iterable[Path]) -> None:
    """Add to a study's `training.jsonl` the rewards that the last of its checkpoints has logged. Raises StoreError."""
    states = [path / "trainer_state.json" for path in checkpoints]
    known = {window.x for window in read_training_log(folder).windows}
    new = [each for each in logged_rewards(states[-1]) if each.step not in known] if states else []
    if new:
        with contextlib.closing(LineFile(folder / TRAINING_LOG)) as file:
            file.drop_torn_line()
            for each in new:
                file.append(each.to_json())
