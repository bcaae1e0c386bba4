"""What a worker's process answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.envs.base import InvalidTaskError, MissingDataError
from evalharness.play.workers.child import carry_out


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

    answer = json.loads(json.dumps(carry_out(call, {"id": 7, "slot": 0, "op": "reset"})))
    assert (answer["id"], answer["for_user"]) == (7, for_user)
    assert answer["error"]
    assert answer["kind"] == type(error).__name__


def test_a_result_is_timed() -> None:
    answer = carry_out(lambda slot, op, request: [slot, op], {"id": 1, "slot": 3, "op": "warm"})
    assert answer["result"] == [3, "warm"]
    assert answer["took"] >= 0
