"""Define the behaviour figures. Each figure is a sum of counts divided by a sum of counts (docs/behaviour.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evalharness.envs.base import MAX_TURNS
from evalharness.protocol.react import FormatError
from evalharness.results.behaviour.turns import TurnFacts, longest_loop, moves, plain, runs_of

if TYPE_CHECKING:
    from evalharness.records.episode import Episode

RECOVERY_TURNS = 3
"""Number of turns after an error: progress within these turns counts as recovery."""
RUN_LENGTHS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 10), (11, None))
"""Bins (shortest, longest) of the lengths of error runs. An error run is a sequence of consecutive error turns."""

Ratio = tuple[float, float]
"""The (numerator, denominator) of a figure."""


@dataclass(frozen=True)
class EpisodeFacts:
    """An episode with the behaviour measured in each of its turns."""

    episode: Episode
    turns: Sequence[TurnFacts]
    max_turns: int = MAX_TURNS
    """The run's turn limit. The figure `first_progress_turn` uses it for an episode without progress."""
    tells_stop: bool = True
    """Whether the server reports which stop sequence ended a reply. Only this report shows that the model began to
    write an observation itself. Without the report, the format error `invented_observation` has no rate."""

    @cached_property
    def error_runs(self) -> list[int]:
        return runs_of(turn.error for turn in self.turns)

    @cached_property
    def loop(self) -> int:
        return longest_loop(moves(self.episode))

    @cached_property
    def first_progress(self) -> int | None:
        """Number of the first turn with progress, counted from 1; None if no turn has progress."""
        return next((i for i, turn in enumerate(self.turns, 1) if turn.progressed), None)

    @cached_property
    def after_errors(self) -> list[int]:
        """Indices (from 0) of the turns whose previous turn is an error turn."""
        return [i for i in range(1, len(self.turns)) if self.turns[i - 1].error]

    def distinct_actions(self) -> int:
        return len({plain(turn.action) for turn in self.episode.turns if turn.action is not None})

    def distinct_observations(self) -> int:
        return len({turn.observation for turn in self.episode.turns})

    def no_effect_turns(self) -> int | None:
        """Count the turns without effect. Return None if the environment does not report them."""
        reported = [turn.no_effect for turn in self.episode.turns if turn.no_effect is not None]
        return sum(reported) if reported else None

    def distinct_places(self) -> int | None:
        """Count the places where the agent was. Return None if no turn has a place."""
        places = {turn.place for turn in self.turns} - {None}
        return len(places) or None


@dataclass(frozen=True)
class Figure:
    """A named ratio of two counts. The numerators and the denominators are summed over episodes before the division."""

    name: str
    title: str
    """At most 28 characters, so that it fits into a row of a table."""
    per: str
    """Name of the items that the denominator counts, for example `turns`."""
    count: Callable[[EpisodeFacts], Ratio]
    share: bool = True
    """Whether the figure is a fraction 0..1; otherwise it is a mean."""
    is_length: bool = False
    """Whether the figure is a mean length in turns, from 1 to the turn limit."""


def _turns(read: EpisodeFacts, counted: int) -> Ratio:
    return counted, len(read.turns)


def _format_error(kind: FormatError) -> Figure:
    return Figure(
        f"format_error_rate_{kind.value}",
        f"  {kind.value.replace('_', ' ')}",
        "turns",
        lambda read: _kind(read, kind),
    )


def _kind(read: EpisodeFacts, kind: FormatError) -> Ratio:
    if kind == FormatError.INVENTED_OBSERVATION and not read.tells_stop:
        return 0, 0
    return _turns(read, sum(kind in turn.format_errors for turn in read.episode.turns))


def _count_invalid(read: EpisodeFacts) -> Ratio:
    spoken = [turn for turn in read.episode.turns if turn.action is not None]
    return sum(not turn.valid for turn in spoken), len(spoken)


def _no_effect(read: EpisodeFacts) -> Ratio:
    reported = [turn.no_effect for turn in read.episode.turns if turn.valid and turn.no_effect is not None]
    return sum(reported), len(reported)


def _error_runs(low: int, high: int | None) -> Figure:
    name = f"{low}" if low == high else f"{low}_{high}" if high else f"{low}_up"
    title = f"{low}" if low == high else f"{low}-{high}" if high else f"{low} or more"
    title += " turn" if high == 1 else " turns"

    def count(read: EpisodeFacts) -> Ratio:
        return sum(low <= n and (high is None or n <= high) for n in read.error_runs), len(read.error_runs)

    return Figure(f"error_runs_of_{name}", f"  of {title}", "error runs", count)


def _recovery(name: str, title: str, recovered: Callable[[EpisodeFacts, int], bool]) -> Figure:
    return Figure(
        f"recovery_{name}",
        title,
        "error turns with a next turn",
        lambda read: (sum(recovered(read, i) for i in read.after_errors), len(read.after_errors)),
    )


def _is_different(read: EpisodeFacts, i: int) -> bool:
    steps = moves(read.episode)
    return steps[i][1] != steps[i - 1][1]


def _progresses(read: EpisodeFacts, i: int) -> bool:
    return any(turn.progressed for turn in read.turns[i : i + RECOVERY_TURNS])


def _per_place(read: EpisodeFacts) -> Ratio:
    places = read.distinct_places()
    return (0, 0) if places is None else (places, len(read.turns))


def _first_progress(read: EpisodeFacts) -> Ratio:
    return read.first_progress or read.max_turns, 1


def _consistency(read: EpisodeFacts) -> Ratio:
    measured = [turn.names_arguments for turn in read.turns if turn.names_arguments is not None]
    return sum(measured), len(measured)


def _novelty(read: EpisodeFacts) -> Ratio:
    return sum(t.new_word_runs for t in read.turns), sum(t.word_runs for t in read.turns)


def _length(read: EpisodeFacts) -> Ratio:
    return sum(turn.words for turn in read.turns), sum(turn.words > 0 for turn in read.turns)


FIGURES: tuple[Figure, ...] = (
    Figure(
        "format_error_rate", "turns with a format error", "turns", lambda r: _turns(r, r.episode.format_error_turns)
    ),
    *map(_format_error, FormatError),
    Figure("invalid_action_rate", "actions that are not valid", "turns with an action", _count_invalid),
    Figure("no_effect_rate", "valid actions without effect", "valid actions", _no_effect),
    Figure("error_turn_rate", "error turns", "turns", lambda r: _turns(r, sum(t.error for t in r.turns))),
    Figure(
        "error_run_length", "mean error run, turns", "error runs",
        lambda r: (sum(r.error_runs), len(r.error_runs)), share=False, is_length=True,
    ),
    *(_error_runs(low, high) for low, high in RUN_LENGTHS),
    Figure(
        "longest_error_run", "longest error run, turns", "episodes",
        lambda r: (max(r.error_runs, default=0), 1), share=False,
    ),
    Figure(
        "repetition_rate", "turns that repeat a move", "turns", lambda r: _turns(r, sum(t.repeated for t in r.turns))
    ),
    Figure("longest_loop", "longest loop, turns", "episodes", lambda r: (r.loop, 1), share=False),
    _recovery("different", "after error: another move", _is_different),
    _recovery("valid", "after error: valid action", lambda r, i: not r.turns[i].error),
    _recovery("progress", "after error: progress in 3", _progresses),
    Figure(
        "distinct_observations", "distinct observations a turn", "turns", lambda r: _turns(r, r.distinct_observations())
    ),
    Figure("distinct_actions", "distinct actions a turn", "turns", lambda r: _turns(r, r.distinct_actions())),
    Figure("distinct_places", "distinct places a turn", "turns", _per_place),
    Figure(
        "help_rate", "actions that ask for help", "turns with an action",
        lambda r: (sum(t.help for t in r.turns), sum(t.action is not None for t in r.episode.turns)),
    ),
    Figure(
        "progress_episode_rate", "episodes with any progress", "episodes", lambda r: (r.first_progress is not None, 1)
    ),
    Figure("first_progress_turn", "turn of first progress", "episodes", _first_progress, share=False),
    Figure("thought_rate", "turns with a thought", "turns", lambda r: _turns(r, sum(t.words > 0 for t in r.turns))),
    Figure("thought_words", "words of a thought", "turns with a thought", _length, share=False),
    Figure("thought_novelty", "novelty of thoughts", "runs of three words", _novelty),
    Figure("thought_action_consistency", "thought names the arguments", "measurable turns", _consistency),
)  # fmt: skip


def count_all(read: EpisodeFacts) -> list[Ratio]:
    """Return numerator and denominator of every figure, in the order of `FIGURES`."""
    return [figure.count(read) for figure in FIGURES]


def episode_columns(read: EpisodeFacts) -> dict[str, Any]:
    """Return the behaviour columns of the episode's row in `episodes.parquet`."""
    return {
        "error_turns": sum(turn.error for turn in read.turns),
        "longest_error_run": max(read.error_runs, default=0),
        "no_effect_turns": read.no_effect_turns(),
        "repeated_turns": sum(turn.repeated for turn in read.turns),
        "longest_loop": read.loop,
        "help_turns": sum(turn.help for turn in read.turns),
        "distinct_observations": read.distinct_observations(),
        "distinct_actions": read.distinct_actions(),
        "distinct_places": read.distinct_places(),
        "first_progress_turn": read.first_progress,
    }
