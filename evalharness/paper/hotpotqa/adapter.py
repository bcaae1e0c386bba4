"""HotpotQA as a text environment: the agent gets a question, searches pages, and gives an answer."""

from __future__ import annotations

import re
from typing import Any

from evalharness.envs.base import InvalidTaskError, TextEnv, task_of
from evalharness.paper.hotpotqa.actions import INVALID, NO_MORE, Reader, parse
from evalharness.paper.hotpotqa.generator import find_plan
from evalharness.paper.hotpotqa.score import exact_match, f1
from evalharness.paper.hotpotqa.tasks import LIVE, OFFICIAL, find_store

START = "Search for a page to begin."
_CAPITALS = re.compile(r"\b[A-Z][\w'’.-]*(?: (?:(?:of|the|and|de|in) )?[A-Z0-9][\w'’-]*)*|\b\d[\d,]*\b")
_MOST_CHOICES = 30


class HotpotQAEnv(TextEnv):
    """Questions over a page store.

    Example:
        >>> env = HotpotQAEnv()
        >>> observation, info = env.reset(options={"task": task})
        >>> observation, reward, terminated, truncated, info = env.step("search[Morndale]")
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        task = task_of(options)
        answer, supporting = task.payload.get("answer"), task.payload.get("supporting")
        if not isinstance(answer, str) or not isinstance(supporting, list):
            raise InvalidTaskError(f"{task.id} is not a HotpotQA task: its payload needs an answer")
        self._reader = Reader(find_store(task, self.data))
        self._answer = answer
        self._supporting: list[str] = supporting
        self._opened: set[str] = set()
        self._said: str | None = None
        self._observation = START
        self._task = task
        return START, self._info(valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.playing(self._task)
        understood = parse(action) if self._said is None else None
        completed: tuple[int, ...] = ()
        valid, reward = understood is not None, 0.0
        match understood:
            case ("search", entity):
                observation = self._reader.search(entity)
                completed = self._newly_opened()
            case ("lookup", keyword):
                observation = self._reader.lookup(keyword)
                valid = self._reader.page is not None
            case ("finish", answer):
                self._said = answer
                reward = f1(answer, self._answer)
                observation = "The answer is taken."
            case _:
                observation = INVALID
        self._observation = observation
        return (
            observation, reward, self._said is not None, False, self._info(valid=valid, completed=completed)
        )  # fmt: skip

    @property
    def goal(self) -> str:
        return self.playing(self._task).goal

    def valid_actions(self) -> list[str]:
        """Return plausible actions only, because any text can be searched: searches for, and answers with, the names in
        the question and the last observation; and lookups of the question's words."""
        question, seen = self.playing(self._task).goal, self._observation
        names = _names(question) + ([] if seen in (START, INVALID, NO_MORE) else _names(seen))
        names = list(dict.fromkeys(names))[:_MOST_CHOICES]
        actions = {f"search[{name}]" for name in names}
        actions |= {f"finish[{answer}]" for answer in (*names, "yes", "no")}
        if self._reader.page is not None:
            actions |= {f"lookup[{word}]" for word in re.findall(r"\b[a-z]{4,}\b", question)}
        return sorted(actions)

    def oracle(self) -> list[str]:
        task = self.playing(self._task)
        if task.suite in (OFFICIAL, LIVE):
            return [*(f"search[{title}]" for title in self._supporting), f"finish[{self._answer}]"]
        return list(find_plan(task))

    def _newly_opened(self) -> tuple[int, ...]:
        """Return the indices of supporting pages that this search opened for the first time."""
        page = self._reader.page
        if page is None or page.title not in self._supporting or page.title in self._opened:
            return ()
        self._opened.add(page.title)
        return (self._supporting.index(page.title),)

    def _info(self, *, valid: bool, completed: tuple[int, ...] = ()) -> dict[str, Any]:
        success = self._said is not None and exact_match(self._said, self._answer)
        progress = 0.0 if self._said is None else f1(self._said, self._answer)
        info = self.info(progress=progress, success=success, valid=valid, completed=completed)
        if self._supporting:
            opened = len(self._opened) / len(self._supporting)
            info["figures"] = {"supporting_facts": opened, "joint": float(success and opened == 1)}
        return info


def _names(text: str) -> list[str]:
    """Return sequences of capitalised words, and numbers."""
    return [match[0].rstrip(".") for match in _CAPITALS.finditer(text)]
