"""Convert an episode to the page's data: a row of the list of episodes, and the whole trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from evalharness.base.text import subgoal_words
from evalharness.protocol.react import FormatError
from evalharness.records.episode import EndedBy, Episode, Trial, Turn

TROUBLES = (*(str(kind) for kind in FormatError), "not_valid", "context_trimmed", "simulator_disagrees")
"""Problems of an episode. The i-th problem is bit i of the number in the column `troubles`."""
ENDED_BY: tuple[str, ...] = get_args(EndedBy)

TurnJudgement = tuple[str, str, str, str]
"""(judge, verdict, kind of error, explanation of the judge); the verdict is `right`, `wrong` or `no verdict`."""
Judgements = Mapping[int, Sequence[TurnJudgement]]
"""Number of a turn (counted from 1) -> judgements of this turn."""

COLUMNS = (
    "task",
    "sample",
    "success",
    "progress",
    "turns",
    "format_error_turns",
    "invalid_turns",
    "troubles",
    "ended_by",
    "tokens",
    "model_s",
    "environment_s",
    "wall_s",
    "block",
    "position",
)
"""Columns of the list of episodes. `task` and `ended_by` are positions in the lists `tasks` and `ended_by` of the page.
`troubles` has a bit per problem. The trajectory is number `position` in block `block`."""


def troubles(episode: Episode) -> set[str]:
    problems = {str(kind) for turn in episode.turns for kind in turn.format_errors}
    if any(turn.action is not None and not turn.valid for turn in episode.turns):
        problems.add("not_valid")
    if episode.trims:
        problems.add("context_trimmed")
    if episode.solved != episode.success:
        problems.add("simulator_disagrees")
    return problems


def list_row(episode: Episode, task: int, block: int, position: int) -> tuple[float, ...]:
    mine = troubles(episode)
    return (
        task,
        episode.sample,
        int(episode.success),
        round(episode.progress, 4),
        len(episode.turns),
        episode.format_error_turns,
        sum(turn.action is not None and not turn.valid for turn in episode.turns),
        sum(1 << bit for bit, trouble in enumerate(TROUBLES) if trouble in mine),
        ENDED_BY.index(episode.ended_by),
        episode.prompt_tokens + episode.completion_tokens,
        round(episode.policy_s, 2),
        round(episode.environment_s, 2),
        round(episode.wall_s, 2),
        block,
        position,
    )


def _turn(turn: Turn) -> dict[str, Any]:
    """Return the data of a turn, without the fields that have their usual value."""
    usual_reply = f"Thought: {turn.thought}\nAction: {turn.action}"
    values: dict[str, tuple[Any, ...]] = {
        "thought": (turn.thought, ""),
        "action": (turn.action, None),
        "observation": (turn.observation,),
        "progress": (round(turn.progress, 4),),
        "valid": (turn.valid, True),
        "format_errors": ([str(kind) for kind in turn.format_errors], []),
        "subgoals_completed": (list(turn.subgoals_completed), []),
        "finish_reason": (turn.finish_reason, "stop"),
        "prompt_tokens": (turn.prompt_tokens, None),
        "completion_tokens": (turn.completion_tokens, None),
        "policy_s": (round(turn.policy_s, 3), 0.0),
        "failed_tries": ([attempt.kind for attempt in turn.failed_tries], []),
        "environment_s": (round(turn.environment_s, 4), 0.0),
        "reply": (turn.reply, usual_reply),
        "reasoning": (turn.reasoning, ""),
        "reasoning_tokens": (turn.reasoning_tokens, None),
        "calls": ([f"{call.name}({call.arguments})" for call in turn.calls], []),
        "further": ([[call.purpose, call.reply] for call in turn.further], []),
    }
    return {name: value for name, (value, *usual) in values.items() if [value] != usual}


def _trial(trial: Trial) -> dict[str, Any]:
    """Return the data of an earlier trial at the same task: its actions, and the model's reflection after it."""
    return {
        "progress": round(trial.progress, 4),
        "ended_by": trial.ended_by,
        "actions": [turn.action for turn in trial.turns],
        "notes": [call.reply for call in trial.further],
    }


def trajectory(
    episode: Episode,
    prompt: int | None,
    judged: Judgements | None = None,
    sent: Sequence[Sequence[Any]] = (),
) -> dict[str, Any]:
    """Return the data of the whole episode. `prompt`: see `Prompts.of`. `sent`: see `Prompts.sent`."""
    judgements = judged or {}
    return {
        "task_id": episode.task_id,
        "sample": episode.sample,
        "labels": episode.labels,
        "goal": episode.goal,
        "first_observation": episode.first_observation,
        "subgoals": [subgoal_words(label) for label in episode.subgoals],
        "success": episode.success,
        "solved": episode.solved,
        "progress": round(episode.progress, 4),
        "ended_by": episode.ended_by,
        "trims": [list(pair) for pair in episode.dropped_before.items()],
        "prompt": prompt,
        "turns": [
            _turn(turn)
            | ({"judged": judgements[turn.turn]} if turn.turn in judgements else {})
            | ({"sent": sent[position]} if position < len(sent) else {})
            for position, turn in enumerate(episode.turns)
        ],
        **({"trials": [_trial(trial) for trial in episode.earlier]} if episode.earlier else {}),
    }
