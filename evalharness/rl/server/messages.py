"""Requests and responses in the format of OpenEnv's protocol (openenv 0.10).

The package openenv is not a dependency: its server takes 14 s to import (measured), its pinned versions conflict with
those of verifiers, and it has no token and no limit on waiting clients. Tests use its clients.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_CHARACTERS = 400_000
"""Largest number of characters in a reply: 3 to 4 times what a model writes with 32,768 tokens."""
MOST_EPISODES = 8192
"""Largest number of episodes on one connection; the server's number of sessions also limits it."""
Index = Annotated[int, Field(ge=0, strict=True)]
Metadata = Annotated[dict[str, Any], Field(default_factory=dict)]


class _StrictMessage(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TextAction(_StrictMessage):
    """A model's whole reply. Only `text` is required: clients with one plain text put it in the only required field."""

    text: str = Field(max_length=MOST_CHARACTERS, description="The model's whole reply, thought and action")
    reasoning: str = Field(
        default="",
        max_length=MOST_CHARACTERS,
        description="The model's reasoning, if the engine returns it separately from the reply",
    )
    finish_reason: Literal["stop", "length"] = Field(
        default="stop", description="`length`: the token limit cut the reply off"
    )
    stopped_by: str | None = Field(
        default=None,
        max_length=100,
        description="The stop sequence that ended the reply; `text` does not contain it",
    )
    metadata: Metadata


class TextObservation(_StrictMessage):
    """What the agent may see. Scores are only in EpisodeState."""

    text: str = Field(description="Content of the last of `messages`: the task, or the observation")
    messages: list[dict[str, str]] = Field(
        description="Chat messages to append to the conversation, as an evaluation sends them"
    )
    kept: str | None = Field(
        default=None, description="The last reply as an evaluation keeps it in the conversation"
    )
    admissible: list[str] | None = Field(
        default=None,
        description="The valid actions, only with the option `bare`; empty at the end of the episode",
    )
    done: bool = False
    reward: float | None = None
    metadata: Metadata


class EpisodeState(_StrictMessage):
    """Facts about the episode, scores included. They are for the trainer; the agent must not see them."""

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
    solved: bool = Field(default=False, description="Whether the simulator reports the goal as reached")
    progress: float = Field(default=0.0, description="Progress rate, 0..1")
    progress_gain: float = Field(default=0.0, description="Increase of the progress rate since the reset")
    valid_actions: int = Field(default=0, description="Number of turns so far with a valid action")
    format_errors: dict[str, int] = Field(default_factory=dict, description="Kind -> turns")
    max_turns: int = 0
    perturbation: str | None = Field(default=None, description="Name of the rewording of actions (--perturb)")
    words: dict[str, Any] | None = Field(
        default=None, description="The random names of actions in this episode (--perturb random)"
    )
    evaluation_tasks: bool = Field(
        default=False, description="Whether the server's tasks include evaluation tasks (--allow-eval-tasks)"
    )


class ResetRequest(_StrictMessage):
    """Chooses a task: by `index` or `task_id`, or at random by `seed`, or else the next in a shuffled list."""

    seed: int | None = Field(default=None, ge=0)
    episode_id: str | None = Field(default=None, max_length=255)
    split: str = Field(default="train", max_length=40)
    index: int | None = None
    task_id: str | None = Field(default=None, max_length=200)
    family: str | None = Field(default=None, max_length=40)
    kind: str | None = Field(
        default=None,
        max_length=80,
        description="Only tasks of this kind; used if neither index nor task_id is given",
    )
    reward: Literal["success", "progress_gain"] | None = None
    bare: bool = Field(
        default=False,
        description="No prompt, and ALFWorld's original wording: the whole reply is the command. Only for ALFWorld",
    )


class ResetManyRequest(_StrictMessage):
    """Begins a group of episodes on one connection. With `places`, only the group's episodes with these indices
    restart."""

    episodes: list[ResetRequest] = Field(min_length=1, max_length=MOST_EPISODES, fail_fast=True)
    places: list[Index] | None = Field(default=None, max_length=MOST_EPISODES, fail_fast=True)


class StepManyRequest(_StrictMessage):
    """Replies to the episodes with the indices `places`. Without `places`, a reply to each episode of the group."""

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
    response = {"responses": {"200": {"description": "JSON"}}}
    paths: dict[str, Any] = {
        path: {"get": response}
        for path in (
            *("/health", "/status", "/metadata", "/schema", "/state", "/list_environments"),
            "/{env_name}/splits",
        )
    }
    for path in ("/reset", "/step", "/mcp", *(f"/{{env_name}}/{call}" for call in TASK_CALLS)):
        paths[path] = {"post": response}
    description = f"evalharness {version} speaking OpenEnv; episodes are played over the WebSocket /ws"
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1.0.0", "description": description},
        "paths": paths,
    }


TASK_CALLS = ("tasks", "num_tasks", "task", "task_range")
