"""Evaluate each checkpoint while Hugging Face's Trainer or a TRL trainer trains.

    trainer.add_callback(EvaluateCheckpoints("--suite", "open", "--subset", "80", "--tasks", "all"))

Each save starts `evalharness checkpoints OUTPUT_DIR ...` in a separate process, one process at a time. The process
evaluates all new checkpoints in the folder. When the training ends, the callback waits until all are evaluated. If the
process fails, a warning is logged and the training goes on.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback  # type: ignore[import-not-found, unused-ignore]

LOG = "evalharness.log"
_LOG = logging.getLogger("evalharness")


class EvaluateCheckpoints(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """`options` are those of `evalharness checkpoints`. `command` starts the harness, for example another virtual
    environment's `bin/evalharness`. `env` replaces the environment variables."""

    def __init__(
        self,
        *options: str,
        command: Sequence[str] = ("evalharness",),
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.options, self.command, self.env = options, tuple(command), env
        self._process: subprocess.Popen[bytes] | None = None
        self._again = False

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Start the evaluation again if a checkpoint was saved while it ran and it has ended."""
        if self._again and self._has_ended(args):
            self._start(args)

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if not state.is_world_process_zero:
            return
        if self._has_ended(args):
            self._start(args)
        else:
            self._again = True

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if not state.is_world_process_zero:
            return
        if self._process is not None:
            self._process.wait()
        if not self._has_ended(args) or self._again:
            self._start(args)
        if self._process is not None:
            self._process.wait()
            self._has_ended(args)

    def _start(self, args: Any) -> None:
        self._again = False
        words = [*self.command, "checkpoints", str(args.output_dir), *self.options]
        try:
            with (Path(args.output_dir) / LOG).open("ab") as log:
                self._process = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env
                )
        except OSError as error:
            _LOG.warning("evalharness: cannot start the evaluation of checkpoints: %s", error)

    def _has_ended(self, args: Any) -> bool:
        """Return whether no evaluation is running. If the process has just ended with an error, log a warning."""
        if self._process is None:
            return True
        status = self._process.poll()
        if status is None:
            return False
        self._process = None
        if status:
            log = Path(args.output_dir) / LOG
            _LOG.warning(
                "evalharness: the evaluation of checkpoints failed with exit status %d; see %s", status, log
            )
        return True
