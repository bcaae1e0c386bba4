"""The messages of OpenEnv's clients and the responses: the shapes of openenv 0.10's protocol, one required text in an
action.

The package itself is not used: its server imports a web interface (14 s, measured), its pins exclude those of
verifiers, and it has neither a token nor a limit on waiting clients. The tests use its clients against this server.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_CHARACTERS = 400_000
"""Characters of a reply: four times what a model with 32,768 tokens of output writes."""
MOST_EPISODES = 8192
"""Episodes that one connection may have, if the server has as many sessions."""
Index = Annotated[int, Field(ge=0, strict=True)]
Metadata = Annotated[dict[str, Any], Field(default_factory=dict)]


class _StrictMessage(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TextAction(_StrictMessage):
    """A model's whole reply. Only `text` is required, so that clients that pass plain text find where it goes."""

    text: str = Field(max_length=MOST_CHARACTERS, description="The model's whole reply, thought and action")
    reasoning: str = Field(
        default="",
        max_length=MOST_CHARACTERS,
        description="What the model reasoned, where the engine gives that apart from the reply",
    )
    finish_reason: Literal["stop", "length"] = Field(
        default="stop", description="`length`: the token limit cut the reply off"
    )
    stopped_by: str | None = Field(
        default=None, max_length=100, description="The stop sequence that ended the reply, which is not in it"
    )
    metadata: Metadata


class TextObservation(_StrictMessage):
    """What the agent may see, and nothing else: scores are in the state."""

    text: str = Field(description="The last of `messages`: the task, or the answer to the last action")
    messages: list[dict[str, str]] = Field(
        description="Chat messages to append to the conversation, as an evaluation sends them"
    )
    kept: str | None = Field(
        default=None, description="The last reply as an evaluation's conversation goes on with it"
    )
    admissible: list[str] | None = Field(
        default=None, description="In a bare episode: what can be done now; empty at its end"
    )
    done: bool = False
    reward: float | None = None
    metadata: Metadata


class EpisodeState(_StrictMessage):
    """All facts about the episode. The agent must not see it."""

    episode_id: str | None = None
    step_count: int = Field(default=0, ge=0)
    task_id: str | None = None
    family: str | None = None
    split: str | None = None
    done: bool = False
    ended_by: str | None = Field(
        default=None, description="success, environment or turn_limit, as in an evaluation's records"
    )
    success: bool = False
    solved: bool = Field(default=False, description="The simulator's own verdict")
    progress: float = Field(default=0.0, description="Progress rate, 0..1")
    progress_gain: float = Field(default=0.0, description="Progress since the reset")
    valid_actions: int = Field(
        default=0, description="Turns so far whose action the world took (not how many are valid now)"
    )
    format_errors: dict[str, int] = Field(default_factory=dict, description="Kind -> turns")
    max_turns: int = 0
    perturbation: str | None = Field(default=None, description="The episode's words (--perturb)")
    words: dict[str, Any] | None = Field(
        default=None, description="What was drawn for this episode, where its words were (--perturb random)"
    )
    evaluation_tasks: bool = Field(
        default=False, description="Tasks of evaluations are served (--allow-eval-tasks)"
    )


class ResetRequest(_StrictMessage):
    """The task: by `index` or `task_id`; else drawn by `seed`; else the next one of a shuffled order."""

    seed: int | None = Field(default=None, ge=0)
    episode_id: str | None = Field(default=None, max_length=255)
    split: str = Field(default="train", max_length=40)
    index: int | None = None
    task_id: str | None = Field(default=None, max_length=200)
    family: str | None = Field(default=None, max_length=40)
    kind: str | None = Field(
        default=None,
        max_length=80,
        description="Only tasks of this kind; with `seed`, or in the shuffled order",
    )
    reward: Literal["success", "progress_gain"] | None = None
    bare: bool = Field(
        default=False,
        description="The engine's own words, no prompt: a reply is a command, carried out as it is. Only ALFWorld's",
    )


class ResetManyRequest(_StrictMessage):
    """A group of episodes on one connection. `places` are indices in the group: only these episodes begin again.
    Without `places` the group is new."""

    episodes: list[ResetRequest] = Field(min_length=1, max_length=MOST_EPISODES, fail_fast=True)
    places: list[Index] | None = Field(default=None, max_length=MOST_EPISODES, fail_fast=True)


class StepManyRequest(_StrictMessage):
    """Replies to the episodes with the indices `places`; without them, one for each of the group."""

    replies: list[TextAction] = Field(min_length=1, max_length=MOST_EPISODES, fail_fast=True)
    places: list[Index] | None = Field(default=None, max_length=MOST_EPISODES, fail_fast=True)


class SplitRequest(_StrictMessage):
    split: str = Field(max_length=40)


class TaskRequest(SplitRequest):
    index: int


class TaskRangeRequest(SplitRequest):
    start: int | None = None
    stop: int | None = None


def schemas() -> dict[str, Any]:
    return {
        "action": TextAction.model_json_schema(),
        "observation": TextObservation.model_json_schema(),
        "reset_observation": TextObservation.model_json_schema(),
        "state": EpisodeState.model_json_schema(),
    }


def openapi(title: str, version: str) -> dict[str, Any]:
    """Return the parts of OpenAPI that tools read: `openenv validate --url` reads version and paths."""
    said = {"responses": {"200": {"description": "JSON"}}}
    paths: dict[str, Any] = {
        path: {"get": said}
        for path in (
            *("/health", "/status", "/metadata", "/schema", "/state", "/list_environments"),
            "/{env_name}/splits",
        )
    }
    for path in ("/reset", "/step", "/mcp", *(f"/{{env_name}}/{call}" for call in TASK_CALLS)):
        paths[path] = {"post": said}
    description = f"evalharness {version} speaking OpenEnv; episodes are played over the WebSocket /ws"
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1.0.0", "description": description},
        "paths": paths,
    }


TASK_CALLS = ("tasks", "num_tasks", "task", "task_range")
