"""The third rater: what the simulator did says whether a turn was wrong. A rule, stated in docs/judges.md. Pure."""

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
    """A verdict for each turn of `episode`, in order.

    What the agent was shown last, with its progress, stands for the state: a record has no more of it. Going somewhere
    new and coming back is exploration, not an error, so `undone` needs that the turn showed nothing new.
    """
    seen = [episode.first_observation, *(turn.observation for turn in episode.turns)]
    progress = [0.0, *(turn.progress for turn in episode.turns)]
    state = list(zip(seen, progress, strict=True))
    found = []
    for i, turn in enumerate(episode.turns):
        # Some environments tell the effect; of the others the texts do.
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
        found.append(Verdict(why is not None, why, RULES[why] if why else ""))
    return found


def _undone(episode: Episode, state: list[tuple[str, float]], i: int) -> bool:
    """The next turn that the environment carried out led back to where turn `i` (from 0) had started."""
    if state[i + 1] not in state[:i]:
        return False
    following = (j for j in range(i + 1, len(episode.turns)) if episode.turns[j].valid)
    back = next(following, None)
    return back is not None and state[back + 1] == state[i] != state[i + 1]
