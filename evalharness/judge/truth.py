"""The simulator as a rater: a rule decides whether a turn was wrong (docs/judges.md)."""

from __future__ import annotations

from evalharness.judge.verdict import Verdict
from evalharness.records.episode import Episode

RULES = {
    "no_action": "the reply had no action",
    "refused": "the environment refused the action",
    "no_effect": "the action changed nothing",
    "undone": "the next action undid it, and it had shown nothing new",
}


def truth(episode: Episode) -> list[Verdict]:
    """Return a verdict for each turn of `episode`, in order.

    Two states are equal if observation and progress are equal, because the record has no more of the state. Going to a
    new place and back is exploration, not an error: a turn is `undone` only if it led to a state seen before.
    """
    seen = [episode.first_observation, *(turn.observation for turn in episode.turns)]
    progress = [0.0, *(turn.progress for turn in episode.turns)]
    state = list(zip(seen, progress, strict=True))
    verdicts = []
    for i, turn in enumerate(episode.turns):
        # Some environments report whether an action had an effect; if not, compare the states.
        unchanged = state[i + 1] == state[i] if turn.no_effect is None else turn.no_effect
        if turn.action is None:
            why = "no_action"
        elif not turn.valid:
            why = "refused"
        elif unchanged:
            why = "no_effect"
        elif _undone(episode, state, i):
            why = "undone"
        else:
            why = None
        verdicts.append(Verdict(why is not None, why, RULES[why] if why else ""))
    return verdicts


def _undone(episode: Episode, state: list[tuple[str, float]], i: int) -> bool:
    """Return whether turn `i` (from 0) led to a state seen before, and the next valid action back to the state before
    `i`."""
    if state[i + 1] not in state[:i]:
        return False
    following = (j for j in range(i + 1, len(episode.turns)) if episode.turns[j].valid)
    back = next(following, None)
    return back is not None and state[back + 1] == state[i] != state[i + 1]
