"""Show the progress of a training: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evalharness.base.text import duration
from evalharness.base.watching import dim, watching
from evalharness.training.tune.process import Event


@dataclass
class TuningProgress:
    """The progress of a training, including the steps of earlier sessions."""

    step: int = 0
    steps: int = 0
    loss: float | None = None
    tokens: int = 0
    trained_tokens: int = 0
    seconds: float = 0.0
    """Seconds of training, including earlier sessions."""
    doing: str = "starting"
    first_loss: float | None = None
    checkpoints: list[str] = field(default_factory=list)
    recent: list[tuple[int, float]] = field(default_factory=list)
    """(tokens, seconds) of the latest steps."""
    facts: dict[str, Any] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        match event["event"]:
            case "step":
                self.step, self.steps = event["step"], event["steps"]
                self.loss = event["loss"]
                self.first_loss = event["loss"] if self.first_loss is None else self.first_loss
                self.tokens += event["tokens"]
                self.trained_tokens += event["trained_tokens"]
                self.seconds += event["seconds"]
                self.recent = [*self.recent[-49:], (event["tokens"], event["seconds"])]
                self.doing = "training"
            case "begin":
                self.step, self.steps, self.doing = event["step"], event["steps"], "training"
            case "ready":
                self.facts = {key: value for key, value in event.items() if key != "event"}
            case "saved":
                self.checkpoints.append(event["folder"])
            case "loading":
                self.doing = "loading the model"

    @property
    def tokens_per_s(self) -> float | None:
        seconds = sum(s for _, s in self.recent)
        return sum(t for t, _ in self.recent) / seconds if seconds else None

    @property
    def seconds_left(self) -> float | None:
        if not self.recent:
            return None
        return sum(s for _, s in self.recent) / len(self.recent) * (self.steps - self.step)


def _list_figures(training: TuningProgress) -> str:
    """Return loss, tokens per second and remaining time, as far as they are known."""
    parts = []
    if training.loss is not None:
        parts.append(f"loss {training.loss:.3f}")
    if training.tokens_per_s is not None:
        parts.append(f"{training.tokens_per_s:,.0f} tokens/s")
    if training.seconds_left is not None:
        parts.append(f"about {duration(training.seconds_left)} left")
    return ", ".join(parts)


def _describe_steps(training: TuningProgress) -> str:
    return f"step {training.step:,} of {training.steps:,}"


@contextmanager
def watch_training(training: TuningProgress, console: Console) -> Iterator[None]:
    """Show `training` until the context closes."""

    def view() -> RenderableType:
        bar = Table(box=None, padding=(0, 1), pad_edge=False, show_header=False)
        done = ProgressBar(total=max(training.steps, 1), completed=training.step, width=24)
        bar.add_row(done, Text(_describe_steps(training)))
        return Group(bar, dim(_list_figures(training) or training.doing))

    def line() -> str:
        return f"{_describe_steps(training)}, {_list_figures(training)}" if training.step else ""

    with watching(console, view, status=lambda: training.doing, line=line):
        yield
