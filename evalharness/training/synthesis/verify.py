"""Verification of scripts and trajectories: the paper's section 3.1 and algorithm 1 (appendix J). Pure but for time
limits.

Read for verification here:

* A trajectory is judged with what was kept before it: the last kept turn may be the player's, whose action can only be
  judged together with the turn that answers it.
* Of a reply that breaks off, the whole turns before the break are kept as far as they pass.
* A trajectory that ends with the player is unfinished (the printed algorithm would let it pass).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from evalharness.training.synthesis.actions import ActionCheck, action_mistakes
from evalharness.training.synthesis.reply_json import BrokenList, NotJsonError, read_json, read_list
from evalharness.training.synthesis.script import KeysError, Script, first_mistakes, read_script
from evalharness.training.synthesis.signals import ReplyCheck, Signal
from evalharness.training.synthesis.trajectory import (
    MOST_TURNS,
    SUCCEEDED,
    MasterTurn,
    PlayerTurn,
    Turn,
    error_turns,
    read_turn,
)

Excuse = Literal["any", "parameter"]
CountErrors = Literal["all", "call"]
LastTurn = Literal["keep", "drop"]
Errors = Literal["some", "none"]


@dataclass(frozen=True)
class Readings:
    """Four places where the paper's sources differ; the defaults are what makes sense of them."""

    excuse: Excuse = "any"
    """A bad action is excused by any error flag of the next turn (algorithm 1), or by parameter_error alone
    (section 3.1)."""
    least_errors: int = 2
    """Error turns that a trajectory has at least: 2 (preprint: n <= 1 fails) or 1 (reproducibility page: n < 1)."""
    count: CountErrors = "all"
    """Error turns are counted over kept and new turns, or over those of the last call (algorithm 1 as printed)."""

    last_turn: LastTurn = "drop"
    """Whether the last turn of a game that did not end in success is dropped (algorithm 1) or kept (section 3.1)."""

    errors: Errors = "some"
    """None: the paper's `no_refine_data`, a set made anew in which no player errs."""

    def to_json(self) -> dict[str, Any]:
        """Without what earlier versions did not have, where it is as they did it: their folders go on."""
        stored = asdict(self)
        if self.errors == "some":
            del stored["errors"]
        return stored


def verify_script(text: str, *, bare_names: bool = True) -> tuple[Script | None, ReplyCheck]:
    """The script in a reply, if it passes. `bare_names`: as in `action_mistakes`."""
    try:
        script = read_script(read_json(text))
    except NotJsonError as error:
        return None, ReplyCheck(Signal.JSON, (f"the reply is not JSON: {error}",))
    except KeysError as error:
        return None, ReplyCheck(Signal.KEYS, tuple(error.mistakes))
    mistakes = script_mistakes(script, bare_names=bare_names)
    return (None, ReplyCheck(Signal.EXPRESSION, mistakes)) if mistakes else (script, ReplyCheck(Signal.OK))


def script_mistakes(script: Script, *, bare_names: bool = True) -> tuple[str, ...]:
    """What is wrong with its expressions."""
    found = [
        m
        for name, action in script.actions.items()
        for m in action_mistakes(name, action, bare_names=bare_names)
    ]
    return tuple(first_mistakes(found))


def verify_trajectory(
    script: Script, text: str, kept: Sequence[Turn] = (), readings: Readings | None = None
) -> tuple[list[Turn], ReplyCheck]:
    """Algorithm 1 over a reply that goes on after `kept`. Returns the turns to keep, and the verdict."""
    values = read_list(text, "trajectory")
    if isinstance(values, BrokenList):
        turns, verdict = _pass_turns(script, list(values.whole), kept, readings or Readings(), whole=False)
        return turns, ReplyCheck(
            Signal.JSON, (f"the reply is not a JSON list: {values.why}", *verdict.mistakes)
        )
    return _pass_turns(script, values, kept, readings or Readings(), whole=True)


def _pass_turns(
    script: Script, values: list[Any], kept: Sequence[Turn], readings: Readings, *, whole: bool
) -> tuple[list[Turn], ReplyCheck]:
    """`whole`: the last of `values` is the trajectory's last turn, so the end is judged too."""
    turns: list[Turn] = list(kept)
    bad_keys: KeysError | None = None
    for value in _without_repeats(values, kept):
        try:
            if len(turns) >= MOST_TURNS:
                raise KeysError([f"more than {MOST_TURNS} turns"])
            turns.append(read_turn(value, len(turns)))
        except KeysError as error:
            bad_keys = error
            break
    actions = ActionCheck(script)
    # The last kept turn may be the player's and has not been judged yet.
    for place in range(max(len(kept) - 1, 0), len(turns) - 1):
        turn, following = turns[place], turns[place + 1]
        if isinstance(turn, PlayerTurn) and isinstance(following, MasterTurn):
            if readings.errors == "none" and following.errors:
                why = (
                    f"turn {place}: the Player errs ({', '.join(following.errors)}), and is to make no error"
                )
                return turns[:place], ReplyCheck(Signal.ERRS, (why,))
            excused = following.parameter_error if readings.excuse == "parameter" else bool(following.errors)
            if not excused and not actions.allows(turn.action):
                return turns[:place], ReplyCheck(Signal.ACTION, (_bad_action(place, turn, script, readings),))
    if bad_keys is not None:
        return turns, ReplyCheck(Signal.KEYS, tuple(bad_keys.mistakes))
    if not whole:
        return turns, ReplyCheck(Signal.JSON)
    return _judge_end(turns, len(kept), readings)


def _judge_end(turns: list[Turn], kept: int, readings: Readings) -> tuple[list[Turn], ReplyCheck]:
    if len(turns) == kept:
        return turns, ReplyCheck(Signal.UNFINISHED, ("the reply has no new turn",))
    last = turns[-1]
    if isinstance(last, PlayerTurn):
        return turns, ReplyCheck(
            Signal.UNFINISHED, ("it ends with the Player; the DM has the last turn, which ends the task",)
        )
    counted = turns if readings.count == "all" else turns[kept:]
    errors = error_turns(counted)
    if last.errors:
        return turns[:-1], ReplyCheck(
            Signal.LAST_ERROR, (f"turn {len(turns) - 1}, the last one, says that the Player erred",)
        )
    if SUCCEEDED not in last.observation:
        return turns if readings.last_turn == "keep" else turns[:-1], ReplyCheck(
            Signal.UNFINISHED,
            (f"the last Observation (turn {len(turns) - 1}) does not contain {SUCCEEDED!r}",),
        )
    if readings.errors == "some" and errors < readings.least_errors:
        # Whole: it is shown to the model with the request for another game.
        return turns, ReplyCheck(
            Signal.TOO_FEW,
            (f"the Player erred in {errors} turns; at least {readings.least_errors} are needed",),
        )
    return turns, ReplyCheck(Signal.OK)


def _bad_action(place: int, turn: PlayerTurn, script: Script, readings: Readings) -> str:
    flags = "parameter_error" if readings.excuse == "parameter" else "an error"
    names = ", ".join(list(script.actions)[:20])
    return (
        f"turn {place}: the Action {turn.action[:200]!r} is none of the available actions with their parameters "
        f"({names}), and the DM's next turn does not flag {flags}"
    )


def _without_repeats(values: list[Any], kept: Sequence[Turn]) -> list[Any]:
    """`values` without the kept turns, where the model said them again before it went on."""
    if not kept or len(values) < len(kept):
        return values
    for place, (value, turn) in enumerate(zip(values, kept, strict=False)):
        try:
            if read_turn(value, place) != turn:
                return values
        except KeysError:
            return values
    return values[len(kept) :]
