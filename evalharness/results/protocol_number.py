"""A protocol's own number, from games that count once each; and what its draw with repetition would make of it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from evalharness import stats
from evalharness.records.manifest import ProtocolIdentity
from evalharness.records.summary import ProtocolNumber
from evalharness.results.score import EpisodeScore
from evalharness.stats.repeated_draw import repeated_draw


def protocol_number(protocol: ProtocolIdentity, scores: Sequence[EpisodeScore]) -> ProtocolNumber | None:
    """None before the first episode. Samples of a game are averaged first."""
    games: dict[str, list[float]] = {}
    for score in scores:
        games.setdefault(score.task_id, []).append(float(getattr(score, protocol.score)))
    if not games:
        return None
    values = [fmean(tries) for tries in games.values()]
    rate = fmean(values)
    number = {
        "score": protocol.score,
        "rate": rate,
        "ci95": stats.rate_interval(values, binary=protocol.score == "success"),
        "games": len(values),
    }
    if protocol.draw is not None:
        number |= {"drawn": protocol.draw, "drawn95": repeated_draw(rate, protocol.draw)}
    return ProtocolNumber.of(number)
