"""Everything about a protocol against its recordings: what its agent does, and what our environments answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.agents.agentgym import without_arrival
from evalharness.checks.conform.compare import FamilyResult
from evalharness.checks.conform.protocol_transcripts import Recording, read_recording
from evalharness.checks.conform.protocols import ProtocolResult, follow, read_replies
from evalharness.checks.conform.replay import conform
from evalharness.checks.conform.rules import load_tolerances
from evalharness.checks.conform.transcripts import Transcript
from evalharness.envs import specs
from evalharness.protocol.prompt import Adaptation, load_prompt

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
    result = ProtocolResult()
    prompts = {
        family: load_prompt(specs()[family], adaptation=Adaptation(texts=protocol))
        for family in {game.family for game in recording.games}
    }
    for game in recording.games:
        follow(game, protocol, prompts[game.family].for_kind(game.kind), result)
    some = next(iter(prompts.values()))
    read_replies(recording.readings, protocol, some, result)
    worlds = {} if data is None else _worlds(protocol, recording, data)
    return ProtocolConformance(result, worlds, recording.left_out)


def _worlds(protocol: str, recording: Recording, data: Path) -> dict[str, FamilyResult]:
    tolerances, found = load_tolerances(), dict[str, FamilyResult]()
    by_suite: dict[tuple[str, str], list[Transcript]] = {}
    for game in recording.games:
        if game.replay is not None:
            by_suite.setdefault((game.family, game.suite), []).append(game.replay)
    for (family, suite), transcripts in sorted(by_suite.items()):
        shown = _SHOWN.get(protocol, str)
        spec, tolerance = specs()[family], tolerances[family]
        replay = conform(spec, tolerance, transcripts, data, suite=suite, shown=shown, workers=_WORKERS)
        found[family] = asyncio.run(replay)
    return found
