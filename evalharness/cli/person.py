"""`evalharness run --model human:NAME`: a person's episodes in a run folder, beside those of models."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from evalharness.base.errors import UserError
from evalharness.base.terminal import complete_lines
from evalharness.base.text import printable
from evalharness.cli.output import make_console
from evalharness.config import HUMAN
from evalharness.envs.base import Task
from evalharness.models.base import Environment, Player, Policy, PolicyStoppedError, Reply, RequestForm
from evalharness.models.tries import AbortedError
from evalharness.play.progress import Progress
from evalharness.protocol.prompt import Message
from evalharness.records.episode import Episode

_HELP = "type an action; 'give up' ends the task, 'quit' (or Ctrl-D) leaves: the same command begins this task anew"
_LISTED = "+list"
"""Ends the name of a person who saw the valid actions."""


@dataclass
class Person(Policy):
    """Asks at the terminal. One episode at a time."""

    console: Console
    lists_actions: bool
    _offered: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        complete_lines(lambda: [printable(action) for action in self._offered])

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        return _AtTheTerminal(self, task, environment)

    @contextmanager
    def watch(self, progress: Progress) -> Iterator[None]:
        """Of `evaluate`: tells the person how each episode ended."""
        progress.on_episode = self._say_end
        yield

    def _say_end(self, episode: Episode) -> None:
        if episode.turns:
            self.console.print(Text(printable(episode.turns[-1].observation)))
        verdict = "solved" if episode.success else "not solved"
        share = f"progress {100 * episode.progress:.0f} %, {len(episode.turns)} turns"
        self.console.print(Text(f"{episode.task_id}: {verdict}, {share}", style="bold"))

    def show_opening(self, task: Task, messages: list[Message]) -> None:
        """Show what a model reads first."""
        self.console.print(Text(f"\n{task.id}", style="bold"))
        self.console.print(Text(printable("\n\n".join(str(message["content"]) for message in messages))))
        self.console.print(Text(f"({_HELP})", style="dim"))

    async def ask(self, prompt: str, environment: Environment) -> str:
        """An action. Raises PolicyStoppedError and AbortedError where the person gives up or leaves."""
        self._offered = await environment.valid_actions() if self.lists_actions else []
        while True:
            try:
                line = self._read(prompt).strip()
            except (EOFError, KeyboardInterrupt):
                self.console.print()
                line = "quit"
            if line == "quit":
                raise AbortedError("you left")
            if line == "give up":
                raise PolicyStoppedError("given up")
            if line:
                return line
            text = "\n".join(map(printable, self._offered)) or _HELP
            self.console.print(Text(text, style="green" if self._offered else "dim"))

    def _read(self, prompt: str) -> str:
        # The event loop waits meanwhile, and with it its way to hear of Ctrl-C.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return input(prompt)
        finally:
            signal.signal(signal.SIGINT, before)


@dataclass
class _AtTheTerminal(Player):
    person: Person
    task: Task
    environment: Environment

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        if turn == 1:
            self.person.show_opening(self.task, messages)
        else:
            self.person.console.print(Text(printable(str(messages[-1]["content"]))))
        return Reply("Action: " + await self.person.ask(f"[{turn}] > ", self.environment))


def person_of(model: str) -> Person:
    """Of `human:NAME`, or `human:NAME+list`, who sees the valid actions at each turn. Raises UserError."""
    name = model.removeprefix(HUMAN)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", name.removesuffix(_LISTED)):
        raise UserError(f"--model {model}: a name of letters, digits, '.', '_' and '-', at most 40")
    return Person(make_console(), name.endswith(_LISTED))
