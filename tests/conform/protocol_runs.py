"""Everything about a protocol against its recordings: what its agent does, and what our environments answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.protocol.prompt import Adaptation, PromptFile, load_prompt
from evalharness.protocols.agentgym import without_arrival
from evalharness.suites.selection import family_tasks
from tests.conform.compare import FamilyResult
from tests.conform.protocol_transcripts import (
    RecordedGame,
    RecordedReading,
    Recording,
    read_recording,
)
from tests.conform.protocols import ProtocolResult, follow, read_reply
from tests.conform.replay import conform
from tests.conform.rules import installed_name, load_tolerances
from tests.conform.transcripts import Transcript

_WORKERS = 2
_SHOWN = {"agentgym": without_arrival}
"""Where the recording has what the agent shows and not what the world said."""


@dataclass(frozen=True)
class ProtocolConformance:
    agent: ProtocolResult
    worlds: Mapping[str, FamilyResult]
    """By family; empty where they were not asked for."""
    left_out: Mapping[str, int]

    @property
    def ok(self) -> bool:
        return not self.agent.mismatches and all(result.ok for result in self.worlds.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            **self.agent.to_json(),
            "worlds": {family: result.to_json() for family, result in self.worlds.items()},
            "left_out": dict(self.left_out),
        }


def conform_protocol(protocol: str, transcripts: Path, data: Path | None) -> ProtocolConformance:
    """`data`: the user's data folder; None: the environments are not asked. Raises UserError."""
    recording = read_recording(protocol, transcripts)
    if not recording.games:
        raise UserError(f"no games of {protocol} in {transcripts}")
    recording = _by_installed_names(recording)
    result = ProtocolResult()
    prompts = {
        family: load_prompt(specs()[family], adaptation=Adaptation(texts=protocol))
        for family in {game.family for game in recording.games}
    }
    recording = _with_their_texts(recording, prompts)
    for game in recording.games:
        follow(game, protocol, prompts[game.family].for_kind(game.kind), result)
    first = recording.games[0]
    some = prompts[first.family].for_kind(first.kind)  # of replies that are no family's
    for reading in recording.readings:
        read_reply(reading, protocol, prompts.get(reading.family, some), result)
    worlds = {} if data is None else _worlds(protocol, recording, data)
    return ProtocolConformance(result, worlds, recording.left_out)


def _with_their_texts(recording: Recording, prompts: Mapping[str, PromptFile]) -> Recording:
    """Without what needs texts of a format that the user's checkout did not have."""
    left_out = dict(recording.left_out)

    def has(each: RecordedGame | RecordedReading) -> bool:
        wanted = each.options.get("format", "react")
        texts = prompts[each.family].texts or {} if each.family in prompts else {}
        if wanted == "react" or wanted in texts:
            return True
        what = f"format {wanted}, whose texts were not in the checkout"
        left_out[what] = left_out.get(what, 0) + 1
        return False

    return Recording(tuple(filter(has, recording.games)), tuple(filter(has, recording.readings)), left_out)


def _worlds(protocol: str, recording: Recording, data: Path) -> dict[str, FamilyResult]:
    tolerances, found = load_tolerances(), dict[str, FamilyResult]()
    groups: dict[tuple[str, str, int], list[Transcript]] = {}
    for game in recording.games:
        if game.replay is not None:
            tasks = family_tasks(specs()[game.family], game.suite, data, game.seed)
            replay = replace(game.replay, index=_index(game, tasks)) if game.place else game.replay
            groups.setdefault((game.family, game.suite, game.seed), []).append(replay)
    for (family, suite, seed), transcripts in sorted(groups.items()):
        spec, tolerance, shown = specs()[family], tolerances[family], _SHOWN.get(protocol, str)
        replayed = asyncio.run(
            conform(
                spec,
                tolerance,
                transcripts,
                data,
                suite=suite,
                suite_seed=seed,
                shown=shown,
                workers=_WORKERS,
            )
        )
        before = found[family].checks if family in found else []
        found[family] = FamilyResult(family, [*before, *replayed.checks])
    return found


def _index(game: RecordedGame, tasks: Sequence[Task]) -> int:
    """Of the task that the recording names by its game, or by its kind as `...FindLivingThing`."""
    for task in tasks:
        if game.place in (task.payload.get("game"), task.kind):
            return task.index
        if game.place.lower().endswith(task.kind.replace("-", "")) and not task.goal:
            return task.index
    raise UserError(f"{game.source}: the suite {game.suite} of {game.family} has no task {game.place!r}")


def _by_installed_names(recording: Recording) -> Recording:
    """With families called as they are here."""
    tolerances = load_tolerances()
    games = [
        replace(game, family=installed_name(game.family, game.source, tolerances)) for game in recording.games
    ]
    return replace(recording, games=tuple(games))
