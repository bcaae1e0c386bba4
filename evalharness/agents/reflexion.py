"""`reflexion`: several trials at a task, with a reflection between them (after Shinn et al., 2023,
arXiv:2303.11366)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from evalharness.agents.base import AgentOptions, EpisodeStart, Request, Said, TrialEnd
from evalharness.agents.react import ReactAgent, with_text
from evalharness.protocol.react import ParsedReply, answer_in

ASK = (
    "The task was not solved. Say in at most four sentences what went wrong, and what you will do otherwise when you "
    "begin the same task again. Give no action now."
)


class ReflexionOptions(AgentOptions):
    trials: int = Field(default=3, ge=1, le=100)
    """at a task, at most; the first success ends it"""


class ReflexionAgent(ReactAgent):
    """`react`, which begins a task again when it has failed, with its own reflections at the end of the first message.
    It learns from a trial only that it failed. Its scores are by trial: no Best-of-N, whose samples know nothing of
    each other."""

    name: ClassVar[str] = "reflexion"
    Options: ClassVar[type[AgentOptions]] = ReflexionOptions
    options: ReflexionOptions

    def __init__(self, options: AgentOptions | None = None) -> None:
        super().__init__(options)
        self._notes: list[str] = []
        self._reflecting = False

    def start(self, episode: EpisodeStart) -> None:
        super().start(episode)
        if self._notes:
            said = "\n".join(f"{number}. {note}" for number, note in enumerate(self._notes, 1))
            notes = f"You have tried this task before. Your notes:\n{said}"
            self.messages[-1] = with_text(self.messages[-1], notes)

    def reflect(self, end: TrialEnd) -> Request | None:
        if end.success or end.ended_by == "policy_stopped" or len(self._notes) + 1 >= self.options.trials:
            return None
        self._reflecting = True
        *before, last = self.messages
        return Request([*before, with_text(last, ASK)], purpose="reflect")

    def read(self, said: Said) -> ParsedReply | None:
        if not self._reflecting:
            return super().read(said)
        self._reflecting = False
        self._notes.append(answer_in(said.text) or "(no notes)")
        return None
