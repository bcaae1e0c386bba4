"""Let a person play at the terminal (`evalharness run --model human:NAME`), with the usual files in the run folder."""

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

_HELP = "type an action; 'give up' ends the task; 'quit' or Ctrl-D ends the run: the same command repeats this task"
_LISTED = "+list"
"""Suffix of a person's name; a person with this suffix sees the valid actions."""


@dataclass
class Person(Policy):
    """A policy that asks a person at the terminal for actions, one episode at a time."""

    console: Console
    lists_actions: bool
    _offered: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        complete_lines(lambda: [printable(action) for action in self._offered])

    def player(self, task: Task, sample: int, environment: Environment) -> Player:
        return _AtTheTerminal(self, task, environment)

    @contextmanager
    def watch(self, progress: Progress) -> Iterator[None]:
        """Show the person how each episode ended; `evaluate` calls it."""
        progress.on_episode = self._say_end
        yield

    def _say_end(self, episode: Episode) -> None:
        if episode.turns:
            self.console.print(Text(printable(episode.turns[-1].observation)))
        verdict = "solved" if episode.success else "not solved"
        share = f"progress {100 * episode.progress:.0f} %, {len(episode.turns)} turns"
        self.console.print(Text(f"{episode.task_id}: {verdict}, {share}", style="bold"))

    def show_opening(self, task: Task, messages: list[Message]) -> None:
        """Show the messages that a model would read first."""
        self.console.print(Text(f"\n{task.id}", style="bold"))
        self.console.print(Text(printable("\n\n".join(str(message["content"]) for message in messages))))
        self.console.print(Text(f"({_HELP})", style="dim"))

    async def ask(self, prompt: str, environment: Environment) -> str:
        """Return an action. Raises PolicyStoppedError if the person gives up, AbortedError if the person leaves."""
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
                raise PolicyStoppedError("the person gave up")
            if line:
                return line
            text = "\n".join(map(printable, self._offered)) or _HELP
            self.console.print(Text(text, style="green" if self._offered else "dim"))

    def _read(self, prompt: str) -> str:
        # `input` blocks the event loop, which then cannot handle Ctrl-C.
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


def make_person(model: str) -> Person:
    """Make the person of `human:NAME`, or of `human:NAME+list`, who sees the valid actions. Raises UserError."""
    name = model.removeprefix(HUMAN)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", name.removesuffix(_LISTED)):
        raise UserError(f"--model {model}: give a name of at most 40 letters, digits, '.', '_' and '-'")
    return Person(make_console(), name.endswith(_LISTED))
