"""What a player without privileged information says next."""

from __future__ import annotations

from collections.abc import Sequence

from evalharness.training.teachers.teaching import Seeker


def said_by(seeker: Seeker, observation: str, valid: Sequence[str]) -> str | None:
    decision = seeker.next(observation, valid)
    return None if decision is None else decision.action
