"""Episodes side by side on one connection that outlive the failure of their simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalharness.clients.session import Session, SessionError, StepResult


class Group:
    """An episode whose simulator failed is begun again and its replies are given again: the same replies lead to the
    same state. A second failure raises SessionError."""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        self._session = Session(url, token=token)
        self._episodes: list[Mapping[str, Any]] = []
        self._replies: list[list[Mapping[str, Any]]] = []

    def reset(self, episodes: Sequence[Mapping[str, Any]]) -> list[StepResult]:
        """Each as `Session.reset` takes it. With `--perturb random` each needs an `episode_id`, by which its words are
        drawn; those of one name have the same words."""
        self._episodes, self._replies = [*episodes], [[] for _ in episodes]
        return self._sure(range(len(episodes)), self._session.reset_many(episodes))

    def step(self, replies: Sequence[Mapping[str, Any]], places: Sequence[int]) -> list[StepResult]:
        """`{"text": ...}` for each of `places`."""
        for place, reply in zip(places, replies, strict=True):
            self._replies[place].append(reply)
        return self._sure(places, self._session.step_many(replies, places))

    def close(self) -> None:
        self._session.close()

    def _sure(self, places: Sequence[int], answers: Sequence[StepResult | SessionError]) -> list[StepResult]:
        return [
            self._again(place, answer) if isinstance(answer, SessionError) else answer
            for place, answer in zip(places, answers, strict=True)
        ]

    def _again(self, place: int, error: SessionError) -> StepResult:
        (answer,) = self._session.reset_many([self._episodes[place]], [place])
        for reply in self._replies[place]:
            if isinstance(answer, StepResult):
                (answer,) = self._session.step_many([reply], [place])
        if isinstance(answer, SessionError):
            raise answer from error
        return answer
