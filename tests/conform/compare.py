"""Compare what was recorded with what our environment gave, field by field. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.conform.rules import FieldName, Tolerance, items
from tests.conform.transcripts import Step, Transcript

FIELDS: tuple[FieldName, ...] = (
    "goal",
    "initial_observation",
    "observation",
    "progress",
    "done",
    "success",
    "valid",
)

PROGRESS_TOLERANCE = 1e-9
"""Progress is a small fraction: what two orders of the same additions can differ by."""


@dataclass(frozen=True)
class Mismatch:
    """One value that is not as recorded."""

    transcript: Transcript
    step: int | None
    """From 0; None for the reset and for the verdict at the end."""
    action: str | None
    field: str
    """A compared field, or `crash` when our environment failed to answer."""
    recorded: Any
    ours: Any
    excepted_because: str | None = None
    only_recorded: tuple[str, ...] = ()
    """Of texts compared without order: the items that only the recording has."""
    only_ours: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.transcript.source,
            "id": self.transcript.index,
            "script": self.transcript.script,
            "step": self.step,
            "action": self.action,
            "field": self.field,
            "recorded": self.recorded,
            "ours": self.ours,
            "excepted_because": self.excepted_because,
        }


@dataclass
class Tally:
    """How often a field was equal, differed, differed as an exception says, or was left out."""

    equal: int = 0
    different: int = 0
    excepted: int = 0
    not_compared: int = 0

    @property
    def compared(self) -> int:
        return self.equal + self.different + self.excepted

    def add(self, other: Tally) -> None:
        self.equal += other.equal
        self.different += other.different
        self.excepted += other.excepted
        self.not_compared += other.not_compared


@dataclass
class ReplayCheck:
    """One transcript against one episode of ours, as it unfolds."""

    transcript: Transcript
    tolerance: Tolerance
    tallies: dict[str, Tally] = field(default_factory=lambda: {name: Tally() for name in FIELDS})
    mismatches: list[Mismatch] = field(default_factory=list)
    steps_matched: int = 0
    steps_replayed: int = 0
    ended: bool = False
    """Our episode is over, by our own account."""
    _success: bool = False

    @property
    def matched(self) -> bool:
        return not any(difference.excepted_because is None for difference in self.mismatches)

    def reset(self, goal: str, observation: str) -> None:
        self._compare("goal", self.transcript.goal, goal)
        self._compare("initial_observation", self.transcript.initial_observation, observation)

    def step(self, number: int, observation: str, terminated: bool, info: Mapping[str, Any]) -> None:
        recorded = self.transcript.steps[number]
        before = len(self.failures())
        at = (number, recorded)
        self._compare("observation", recorded.observation, observation, *at)
        self._compare("progress", recorded.progress, info["progress"], *at)
        self._compare("done", recorded.done, terminated, *at)
        self._compare("valid", recorded.valid, info.get("published_valid", info["valid"]), *at)
        self.steps_replayed += 1
        self.steps_matched += len(self.failures()) == before
        self.ended = self.ended or terminated
        self._success = bool(info["success"])

    def end(self) -> None:
        self._compare("success", self.transcript.success, self._success)

    def crash(self, number: int | None, message: str) -> None:
        """Our environment did not answer. After its own end that is its right, and the rest is just not replayed."""
        if not self.ended:
            action = None if number is None else self.transcript.steps[number].action
            self.mismatches.append(Mismatch(self.transcript, number, action, "crash", None, message))

    def failures(self) -> list[Mismatch]:
        return [difference for difference in self.mismatches if difference.excepted_because is None]

    def _compare(
        self, name: FieldName, recorded: Any, ours: Any, number: int | None = None, step: Step | None = None
    ) -> None:
        tally = self.tallies[name]
        if recorded is None:
            tally.not_compared += 1
            return
        action = step.action if step else None
        fields = {**self.transcript.fields, **(step.fields if step else {})}
        rule = next(
            (rule for rule in self.tolerance.comparison if rule.applies(name, recorded, action, fields)), None
        )
        if rule is not None and rule.how == "not compared":
            tally.not_compared += 1
            return
        if rule is not None:
            equal = rule.equal(recorded, ours)
        elif name == "progress":
            equal = math.isclose(recorded, ours, rel_tol=0, abs_tol=PROGRESS_TOLERANCE)
        else:
            equal = recorded == ours
        if equal:
            tally.equal += 1
            return
        because = next(
            (
                excuse.because
                for excuse in self.tolerance.exceptions
                if excuse.applies(name, recorded, action, fields) and excuse.excuses(recorded, ours)
            ),
            None,
        )
        if because is None:
            tally.different += 1
        else:
            tally.excepted += 1
        only: list[tuple[str, ...]] = [(), ()]
        if rule is not None and rule.how == "unordered":
            theirs, found = items(rule.split, recorded), items(rule.split, ours)
            only = [tuple(sorted((theirs - found).elements())), tuple(sorted((found - theirs).elements()))]
        self.mismatches.append(
            Mismatch(self.transcript, number, action, name, recorded, ours, because, only[0], only[1])
        )


@dataclass
class FamilyResult:
    """All transcripts of one family."""

    family: str
    checks: list[ReplayCheck]

    @property
    def ok(self) -> bool:
        return all(check.matched for check in self.checks)

    @property
    def transcripts_matched(self) -> int:
        return sum(check.matched for check in self.checks)

    @property
    def steps(self) -> int:
        return sum(len(check.transcript.steps) for check in self.checks)

    @property
    def steps_replayed(self) -> int:
        return sum(check.steps_replayed for check in self.checks)

    @property
    def steps_matched(self) -> int:
        return sum(check.steps_matched for check in self.checks)

    @property
    def tallies(self) -> dict[str, Tally]:
        total: dict[str, Tally] = {name: Tally() for name in FIELDS}
        for check in self.checks:
            for name, tally in check.tallies.items():
                total[name].add(tally)
        return total

    def mismatches(self) -> list[Mismatch]:
        return [found for check in self.checks for found in check.failures()]

    def excepted(self) -> Counter[tuple[str, str]]:
        """(field, reason) -> how many differences that exception covered."""
        return Counter(
            (found.field, found.excepted_because)
            for check in self.checks
            for found in check.mismatches
            if found.excepted_because is not None
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "transcripts": {"total": len(self.checks), "matched": self.transcripts_matched},
            "steps": {"total": self.steps, "replayed": self.steps_replayed, "matched": self.steps_matched},
            "fields": {
                name: {"compared": tally.compared, **asdict(tally)} for name, tally in self.tallies.items()
            },
            "exceptions": [
                {"field": name, "because": because, "count": count}
                for (name, because), count in sorted(self.excepted().items())
            ],
            "differences": [found.to_json() for found in self.mismatches()],
        }
