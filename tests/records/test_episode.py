"""An episode as it is stored."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from made_runs import made_episode, make_task

from evalharness.protocol.tools import ToolCall
from evalharness.records.episode import FailedTry, Trim


def test_every_field_is_stored_as_it_is() -> None:
    episode = made_episode(make_task("babyai", 1))
    turn = replace(
        episode.turns[0],
        failed_tries=(FailedTry("busy", "HTTP 429", 0.5, 1.0),),
        calls=(ToolCall("1", "act", "{}"),),
        format_errors=("no_action",),
        subgoals_completed=(0, 1),
    )
    whole = replace(episode, turns=(turn, *episode.turns[1:]), trims=(Trim(3, 2),), figures={"joint": 0.5})
    assert whole.to_json() == asdict(whole)
    assert json.dumps(whole.to_json()) == json.dumps(asdict(whole))


def test_figures_are_stored_where_there_are_some() -> None:
    assert "figures" not in made_episode(make_task("babyai", 1)).to_json()
