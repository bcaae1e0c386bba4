"""What a worker's process answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from made_runs import make_task

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.envs.base import InvalidTaskError, MissingDataError
from evalharness.play.workers.child import Environments, answer_request


class OfAnotherPackageError(InvalidTaskError):
    """An environment's own kind of a known error."""


@pytest.mark.parametrize(
    ("error", "for_user"),
    [
        (MissingDataError("no files"), True),
        (OfAnotherPackageError("no such level"), True),
        (UserError("install it"), True),
        (InfrastructureError("the disk"), False),
        (KeyError("x"), False),
        (RuntimeError(""), False),
    ],
)
def test_an_error_says_whether_it_is_for_the_user(error: Exception, for_user: bool) -> None:
    def call(slot: int, op: str, request: dict[str, Any]) -> Any:
        raise error

    answer = json.loads(json.dumps(answer_request(call, {"id": 7, "slot": 0, "op": "reset"})))
    assert (answer["id"], answer["for_user"]) == (7, for_user)
    assert answer["error"]
    assert answer["kind"] == type(error).__name__


def test_a_result_is_timed() -> None:
    answer = answer_request(lambda slot, op, request: [slot, op], {"id": 1, "slot": 3, "op": "warm"})
    assert answer["result"] == [3, "warm"]
    assert answer["took"] >= 0


def test_an_info_without_a_required_key_is_an_error_for_the_author_of_the_environment() -> None:
    class Careless:
        goal = "wait"

        def reset(self, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
            return "a room", {"success": False}

    environments = Environments("babyai", None, "")
    environments.by_slot[0] = Careless()  # type: ignore[assignment]
    task = make_task("babyai", 0, suite="open").to_json()
    answer = answer_request(environments.call, {"id": 1, "slot": 0, "op": "reset", "task": task})
    assert answer["for_user"]
    assert "babyai returns a missing or wrong solved, valid, subgoals_completed, progress" in answer["error"]
