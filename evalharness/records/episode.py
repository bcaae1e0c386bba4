"""What is kept of a played task: an episode and its turns."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

EndedBy = Literal["success", "environment", "turn_limit", "policy_stopped"]


@dataclass(frozen=True)
class FailedTry:
    """One request that got no usable answer and was made again."""

    kind: str
    """`connect`, `timeout`, `truncated`, `busy`, `server_error`, `invalid`, `too_long`."""
    error: str
    seconds: float
    """From sending the request to knowing that it had failed."""
    waited: float
    """Seconds of pause before the next try."""


@dataclass(frozen=True)
class Turn:
    """One thought and action of the policy, one observation by the environment. Times in seconds."""

    turn: int
    reply: str
    """The raw reply, whole."""
    thought: str
    action: str | None
    """As the model worded it; None when the reply had no action (the observation is then the correction)."""
    observation: str
    progress: float
    valid: bool
    format_errors: tuple[str, ...] = ()
    subgoals_completed: tuple[int, ...] = ()
    finish_reason: str = "stop"
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    policy_s: float = 0.0
    """Waiting for the policy: queueing, failed tries and their pauses included."""
    latency_s: float = 0.0
    """Of the one request that was answered."""
    failed_tries: tuple[FailedTry, ...] = ()
    environment_s: float = 0.0


@dataclass(frozen=True)
class Trim:
    """The context was full before `turn`: the `dropped` oldest turns still in the conversation went."""

    turn: int
    dropped: int


@dataclass(frozen=True)
class Episode:
    """A played sample of a task."""

    task_id: str
    family: str
    suite: str
    kind: str
    difficulty: str
    labels: str
    sample: int
    perturbation: str | None
    goal: str
    first_observation: str
    turns: tuple[Turn, ...]
    progress: float
    success: bool
    solved: bool
    ended_by: EndedBy
    trims: tuple[Trim, ...]
    subgoals: tuple[str, ...]
    task_hash: str
    prompt_hash: str
    policy_s: float
    environment_s: float
    started: float
    """Unix time."""
    wall_s: float
    figures: Mapping[str, float] = field(default_factory=dict)
    """Further numbers about the whole episode, of a family that has some (`EnvSpec.scores`)."""

    @property
    def valid_turns(self) -> int:
        return sum(turn.valid for turn in self.turns)

    @property
    def outcome(self) -> dict[str, Any]:
        """Which episode it is and how it ended, as tables and exports tell it. Progress 0..1."""
        return {
            "task_id": self.task_id,
            "family": self.family,
            "suite": self.suite,
            "kind": self.kind,
            "difficulty": self.difficulty,
            "labels": self.labels,
            "sample": self.sample,
            "perturbation": self.perturbation,
            "success": self.success,
            "solved": self.solved,
            "progress": float(self.progress),
        }

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        if not self.figures:
            del data["figures"]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Episode:
        """Raises KeyError or TypeError when a field is missing or foreign."""
        turns = tuple(
            Turn(
                **{
                    **turn,
                    "format_errors": tuple(turn["format_errors"]),
                    "subgoals_completed": tuple(turn["subgoals_completed"]),
                    "failed_tries": tuple(FailedTry(**failed) for failed in turn.get("failed_tries", ())),
                }
            )
            for turn in data["turns"]
        )
        trims = tuple(Trim(**trim) for trim in data["trims"])
        return cls(**{**data, "turns": turns, "trims": trims, "subgoals": tuple(data["subgoals"])})
