"""An episode as it is stored."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from made_runs import made_episode, make_task

from evalharness.protocol.tools import ToolCall
from evalharness.records.episode import FailedTry, FurtherCall, Trial, Trim, Turn, read_episode


def test_every_field_is_stored_as_it_is() -> None:
    episode = made_episode(make_task("babyai", 1))
    turn = replace(
        episode.turns[0],
        failed_tries=(FailedTry("busy", "HTTP 429", 0.5, 1.0),),
        calls=(ToolCall("1", "act", "{}"),),
        format_errors=("no_action",),
        subgoals_completed=(0, 1),
    )
    further = FurtherCall("summarise", "so far", stopped_by="\n", sent="ab")
    asked = replace(
        turn, further=(further,), valid_actions=("look",), sent="cd", stopped_by="</action>", prompt_cut=True
    )
    trial = Trial((asked,), 0.5, False, False, "turn_limit", (Trim(1, 1, 1),), (further,))
    whole = replace(
        episode, turns=(asked, *(replace(t, **vars_of(asked)) for t in episode.turns[1:])), trims=(Trim(3, 2, 1),),
        figures={"joint": 0.5}, further=(further,), earlier=(trial,), first_valid_actions=("look",), words="move",
    )  # fmt: skip
    stored = {
        key: value for key, value in asdict(whole).items() if key != "outside"
    }  # of agents from outside alone
    assert whole.to_json() == stored
    assert json.dumps(whole.to_json()) == json.dumps(stored)
    assert read_episode(json.dumps(whole.to_json()).encode()) == whole


def vars_of(turn: Turn) -> dict[str, Any]:
    return {name: getattr(turn, name) for name in Turn.where_set}


def test_what_few_agents_have_is_stored_where_it_is_there() -> None:
    plain = made_episode(make_task("babyai", 1)).to_json()
    assert {"further", "earlier", "first_valid_actions"}.isdisjoint(plain)
    assert all({"further", "valid_actions"}.isdisjoint(turn) for turn in plain["turns"])


def test_turns_dropped_before_one_turn_are_summed() -> None:
    episode = replace(
        made_episode(make_task("babyai", 1)), trims=(Trim(2, 1), Trim(3, 4), Trim(3, 2, call=1))
    )
    assert episode.dropped_before == {2: 1, 3: 6}


def test_figures_are_stored_where_there_are_some() -> None:
    assert "figures" not in made_episode(make_task("babyai", 1)).to_json()
