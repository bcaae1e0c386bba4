"""Replay one episode's actions, and compare the results with the record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalharness.agents.guard import AgentFaultError
from evalharness.agents.registry import ChosenAgent
from evalharness.checks.verify.findings import Finding, Kind, is_same
from evalharness.envs.base import Task
from evalharness.models.base import Environment
from evalharness.protocol import react
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import PromptFile
from evalharness.protocol.react import FormatError, ParsedReply
from evalharness.records.episode import EndedBy, Episode, Trial, Turn, read_environment_end
from evalharness.records.rebuilt import NotRebuiltError, episode_start, rebuild


@dataclass(frozen=True)
class ReplayRules:
    """What the replay of an episode must know about the run."""

    max_turns: int
    agent: ChosenAgent | None
    """None: the run's agent is not installed, so the replies are not parsed again."""
    prompt: PromptFile | None
    """Prompt for the episode's kind and perturbation; None if no installed prompt file has the recorded hash."""
    keep_thinking: bool
    has_text: bool
    """Whether the folder contains the texts of the model's replies. If not, it contains only the actions."""
    scripted: bool
    """Whether a script chose the actions. A script may end an episode at any turn."""


class _Notes:
    """Collects the findings of one episode. It omits turns after the first turn that differs: they differ, too."""

    def __init__(self, episode: Episode) -> None:
        self.where = f"{episode.task_id}, sample {episode.sample}"
        self.findings: list[Finding] = []
        self._differing_turn: int | None = None

    def differ(self, kind: Kind, what: str, recorded: Any, found: Any) -> None:
        if not is_same(recorded, found):
            self.findings.append(Finding(kind, self.where, what, recorded, found))

    def turn(self, number: int, kind: Kind, what: str, recorded: Any = None, found: Any = None) -> None:
        if (recorded is None and found is None) or not is_same(recorded, found):
            if self._differing_turn not in (None, number):
                return
            self._differing_turn = number
            self.findings.append(Finding(kind, f"{self.where}, turn {number}", what, recorded, found))


_NO_PROMPT = PromptFile(environment="", system="", instruction="", format_rules="")


def _read_again(
    episode: Episode, surface: PlayedSurface, how: ReplayRules
) -> Iterator[tuple[ParsedReply, str, bool]]:
    """Parse the replies again, and yield for each turn the parsed reply, the correction message (if the reply has no
    action), and whether the agent's messages differ from the recorded messages. Raise ValueError if no reply can give
    the record, AgentFaultError if the agent fails."""
    if how.agent is not None and how.has_text:
        start = episode_start(
            episode,
            how.prompt or _NO_PROMPT,
            surface.perturbed,
            how.max_turns,
            keep_thinking=how.keep_thinking,
        )
        for made in rebuild(how.agent.make(), start, episode, compare=how.prompt is not None):
            yield made.parsed, made.correction, how.prompt is not None and made.has_other_messages
        return
    for turn in episode.turns:
        errors = tuple(map(FormatError, turn.format_errors))
        parsed = ParsedReply(turn.thought, turn.action, "", errors)
        # Without the agent its corrections cannot be computed again, so use the recorded observation.
        yield parsed, turn.observation if how.has_text else react.correction(parsed), False


async def _replay_trial(
    number: int, trial: Trial, task: Task, environment: Environment, surface: PlayedSurface, notes: _Notes
) -> None:
    """Replay an earlier trial of the same task, and compare its observations and score."""
    _, _, info = await environment.reset(task)
    for turn in trial.turns:
        if turn.action is not None:
            answer, _, info = await environment.step(surface.to_world(turn.action))
            observation = surface.observation(answer, turn.action)
            notes.differ(
                "replay", f"trial {number}, turn {turn.turn}: observation", turn.observation, observation
            )
    for name in ("success", "solved", "progress"):
        notes.differ("score", f"trial {number}: {name}", getattr(trial, name), info[name])


async def replay(
    recorded: Episode, task: Task, environment: Environment, surface: PlayedSurface, how: ReplayRules
) -> tuple[Episode, Sequence[Finding]]:
    """Return the replayed episode, and a finding for each difference from the record. Infrastructure errors are raised,
    so that the caller can replay the episode again."""
    notes, surface = _Notes(recorded), surface.for_game(task.words)
    for number, trial in enumerate(recorded.earlier, 1):
        await _replay_trial(number, trial, task, environment, surface, notes)
    goal, first, info = await environment.reset(task)
    goal, first = surface.names(goal), surface.observation(first)
    notes.differ("task", "goal", recorded.goal, goal)
    notes.differ("task", "first observation", recorded.first_observation, first)
    turns: list[Turn] = []
    reading = _read_again(recorded, surface, how)
    terminated = False
    for position, turn in enumerate(recorded.turns, start=1):
        if terminated or position > how.max_turns:
            why = "the episode was over" if terminated else f"the limit is {how.max_turns} turns"
            more = len(recorded.turns) - len(turns)
            notes.turn(position, "replay", f"{more} turn{'s' if more > 1 else ''} too many: {why}")
            break
        notes.turn(position, "replay", "its number", turn.turn, position)
        try:
            parsed, correction, has_other_messages = next(reading)
        except (ValueError, LookupError, StopIteration, AgentFaultError) as error:
            why = str(error) if isinstance(error, NotRebuiltError | AgentFaultError) else ""
            found = why or f"no reply has the format errors {', '.join(turn.format_errors)}"
            notes.turn(position, "reply", found)
            break
        if has_other_messages:
            notes.turn(position, "reply", "the recorded messages differ from those of the agent")
        notes.turn(position, "reply", "the reply's action", [turn.action], [parsed.action])
        notes.turn(position, "reply", "the reply's thought", [turn.thought], [parsed.thought])
        notes.turn(
            position, "reply", "format errors", list(turn.format_errors), list(map(str, parsed.errors))
        )
        valid, completed, no_effect = False, tuple[int, ...](), None
        if parsed.action is None:
            observation = correction
        else:
            answer, terminated, info = await environment.step(surface.to_world(parsed.action))
            observation = surface.observation(answer, parsed.action)
            valid, completed = info["valid"], tuple(info["subgoals_completed"])
            no_effect = info.get("no_effect")
        notes.turn(position, "replay", "observation", turn.observation, observation)
        notes.turn(position, "replay", "valid", turn.valid, valid)
        notes.turn(position, "replay", "progress", turn.progress, info["progress"])
        notes.turn(position, "replay", "subgoals completed", list(turn.subgoals_completed), list(completed))
        if turn.no_effect is not None and no_effect is not None:
            notes.turn(position, "replay", "changed nothing", turn.no_effect, no_effect)
        again: dict[str, Any] = {
            "turn": position,
            "thought": parsed.thought,
            "action": parsed.action,
            "observation": observation,
            "progress": info["progress"],
            "valid": valid,
            "format_errors": tuple(map(str, parsed.errors)),
            "subgoals_completed": completed,
            "no_effect": no_effect,
        }
        turns.append(replace(turn, **again))
    else:
        try:
            for _ in reading:  # parse the replies after the last turn
                pass
        except (ValueError, AgentFaultError) as error:
            notes.turn(len(turns), "reply", str(error))
    played = replace(
        recorded, goal=goal, first_observation=first, turns=tuple(turns), progress=info["progress"],
        success=info["success"], solved=info["solved"], figures=dict(info.get("figures", {})),
        ended_by=_find_end(recorded, turns, terminated, info, how),
    )  # fmt: skip
    for name in ("success", "solved", "progress"):
        notes.differ("score", name, getattr(recorded, name), getattr(played, name))
    notes.differ("score", "ended by", recorded.ended_by, played.ended_by)
    for name in sorted({*recorded.figures, *played.figures}):
        notes.differ("score", name, recorded.figures.get(name), played.figures.get(name))
    if played.ended_by == "policy_stopped" and not how.scripted:
        what = f"it stops at turn {len(turns)} of {how.max_turns} without a reason"
        notes.findings.append(Finding("replay", notes.where, what))
    return played, notes.findings


def _find_end(
    recorded: Episode, turns: Sequence[Turn], terminated: bool, info: dict[str, Any], how: ReplayRules
) -> EndedBy:
    """Return how the episode ended. Actions cannot show a full context or a content filter: take it from the record."""
    if terminated:
        return read_environment_end(info)
    if len(turns) >= how.max_turns:
        return "turn_limit"
    only_recorded = ("context_full", "content_filter")
    return recorded.ended_by if recorded.ended_by in only_recorded else "policy_stopped"
