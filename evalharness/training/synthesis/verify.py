"""Verify scripts and trajectories by section 3.1 of the AgentRefine paper and algorithm 1 (appendix J).

Decisions where the paper is unclear:

* A reply is judged together with the turns kept from earlier replies, because an action of the player can only be
judged with the Dungeon Master's next turn.

* If a reply is cut off, its complete turns are kept up to the first mistake.

* A trajectory that ends with the player is unfinished (the printed algorithm would pass it).

* Where the paper's text and algorithm 1 differ, algorithm 1 is followed in two points: an action outside the script is
allowed if the next turn has any error flag, and the last turn of a trajectory without success is dropped. In a third
point it is not: error turns are counted over kept and new turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from evalharness.training.synthesis.actions import ActionCheck, find_action_mistakes
from evalharness.training.synthesis.reply_json import BrokenList, NotJsonError, read_json, read_list
from evalharness.training.synthesis.script import KeysError, Script, limit_mistakes, read_script
from evalharness.training.synthesis.signals import ReplyCheck, Signal
from evalharness.training.synthesis.trajectory import (
    MOST_TURNS,
    SUCCEEDED,
    MasterTurn,
    PlayerTurn,
    Turn,
    count_error_turns,
    read_turn,
)

Errors = Literal["some", "none"]
"""`none`: ask for trajectories without errors, as in the paper's ablation `no_refine_data`."""
LEAST_ERRORS = 2
"""Fewest error turns of a trajectory. The paper's preprint requires 2; its reproducibility page requires 1."""


def verify_script(text: str) -> tuple[Script | None, ReplyCheck]:
    """Return the script in a reply (None if it does not pass) and the result of the check."""
    try:
        script = read_script(read_json(text))
    except NotJsonError as error:
        return None, ReplyCheck(Signal.JSON, (f"the reply is not JSON: {error}",))
    except KeysError as error:
        return None, ReplyCheck(Signal.KEYS, tuple(error.mistakes))
    mistakes = find_script_mistakes(script)
    return (None, ReplyCheck(Signal.EXPRESSION, mistakes)) if mistakes else (script, ReplyCheck(Signal.OK))


def find_script_mistakes(script: Script) -> tuple[str, ...]:
    """Return the mistakes of the script's expressions."""
    mistakes = [m for name, action in script.actions.items() for m in find_action_mistakes(name, action)]
    return tuple(limit_mistakes(mistakes))


def verify_trajectory(
    script: Script, text: str, kept: Sequence[Turn] = (), errors: Errors = "some"
) -> tuple[list[Turn], ReplyCheck]:
    """Apply algorithm 1 to a reply that continues after `kept`. Return the turns to keep and the result."""
    values = read_list(text, "trajectory")
    if isinstance(values, BrokenList):
        turns, verdict = _pass_turns(script, list(values.whole), kept, errors, whole=False)
        return turns, ReplyCheck(
            Signal.JSON, (f"the reply is not a JSON list: {values.why}", *verdict.mistakes)
        )
    return _pass_turns(script, values, kept, errors, whole=True)


def _pass_turns(
    script: Script, values: list[Any], kept: Sequence[Turn], errors: Errors, *, whole: bool
) -> tuple[list[Turn], ReplyCheck]:
    """Check the turns. `whole`: the reply is complete, so the end of the trajectory is checked, too."""
    turns: list[Turn] = list(kept)
    bad_keys: KeysError | None = None
    for value in _drop_repeats(values, kept):
        try:
            if len(turns) >= MOST_TURNS:
                raise KeysError([f"more than {MOST_TURNS} turns"])
            turns.append(read_turn(value, len(turns)))
        except KeysError as error:
            bad_keys = error
            break
    actions = ActionCheck(script)
    # Start with the last kept turn: if it is the player's, it was not checked yet.
    for place in range(max(len(kept) - 1, 0), len(turns) - 1):
        turn, following = turns[place], turns[place + 1]
        if isinstance(turn, PlayerTurn) and isinstance(following, MasterTurn):
            if errors == "none" and following.errors:
                why = (
                    f"turn {place}: the Player errs ({', '.join(following.errors)}), and is to make no error"
                )
                return turns[:place], ReplyCheck(Signal.ERRS, (why,))
            if not following.errors and not actions.allows(turn.action):
                return turns[:place], ReplyCheck(Signal.ACTION, (_bad_action(place, turn, script),))
    if bad_keys is not None:
        return turns, ReplyCheck(Signal.KEYS, tuple(bad_keys.mistakes))
    if not whole:
        return turns, ReplyCheck(Signal.JSON)
    return _judge_end(turns, len(kept), errors)


def _judge_end(turns: list[Turn], kept: int, errors: Errors) -> tuple[list[Turn], ReplyCheck]:
    if len(turns) == kept:
        return turns, ReplyCheck(Signal.UNFINISHED, ("the reply has no new turn",))
    last = turns[-1]
    if isinstance(last, PlayerTurn):
        return turns, ReplyCheck(
            Signal.UNFINISHED, ("it ends with the Player; the DM has the last turn, which ends the task",)
        )
    if last.errors:
        return turns[:-1], ReplyCheck(
            Signal.LAST_ERROR, (f"turn {len(turns) - 1}, the last one, says that the Player erred",)
        )
    if SUCCEEDED not in last.observation:
        return turns[:-1], ReplyCheck(
            Signal.UNFINISHED,
            (f"the last Observation (turn {len(turns) - 1}) does not contain {SUCCEEDED!r}",),
        )
    if errors == "some" and (count := count_error_turns(turns)) < LEAST_ERRORS:
        # Keep all turns: the request for another trajectory shows them to the model.
        return turns, ReplyCheck(
            Signal.TOO_FEW,
            (f"the Player erred in {count} turns; at least {LEAST_ERRORS} are needed",),
        )
    return turns, ReplyCheck(Signal.OK)


def _bad_action(place: int, turn: PlayerTurn, script: Script) -> str:
    names = ", ".join(list(script.actions)[:20])
    return (
        f"turn {place}: the Action {turn.action[:200]!r} is none of the available actions with their parameters "
        f"({names}), and the DM's next turn does not flag an error"
    )


def _drop_repeats(values: list[Any], kept: Sequence[Turn]) -> list[Any]:
    """Return `values` without the kept turns, if the model repeated the kept turns before new ones."""
    if not kept or len(values) < len(kept):
        return values
    for place, (value, turn) in enumerate(zip(values, kept, strict=False)):
        try:
            if read_turn(value, place) != turn:
                return values
        except KeysError:
            return values
    return values[len(kept) :]
