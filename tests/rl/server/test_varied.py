"""`env serve --perturb random` over a real socket, in a real family."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from command_line import evalharness, surroundings
from env_server import connect, serving

from evalharness.envs import specs
from evalharness.protocol.drawn import find_surface, words_of
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import load_prompt

pytestmark = pytest.mark.slow
SPEC = specs()["alfworld"]
OPTIONS = ("alfworld", "--train-seeds", "1", "--validation-seeds", "1001", "--perturb", "random")
EPISODES = ("first", "second", "third")


async def openings(url: str, split: str = "train") -> list[tuple[str, dict[str, Any]]]:
    """(first user message, state) of the same task, once for each of `EPISODES`."""
    found = []
    async with ClientSession() as client:
        talk = await connect(client, url)
        for episode in EPISODES:
            opening = await talk.reset(index=3, split=split, episode_id=episode)
            found.append((opening["observation"]["text"], await talk.state()))
        await talk.socket.close()
    return found


async def said_in_both_words(url: str, drawn: list[tuple[str, dict[str, Any]]]) -> set[str]:
    """Each episode's first step in its own words, which is carried out, and again in the plain ones: what these are
    answered where they are others."""
    answers = set()
    async with ClientSession() as client:
        talk = await connect(client, url)
        for episode, (text, state) in zip(EPISODES, drawn, strict=True):
            surface = find_surface(SPEC, state["perturbation"])
            kind, number = re.findall(r"an? ([a-z]+) ?(\d+)", text.rpartition("Observation: ")[2])[0]
            old = f"go to {kind} {number}"
            await talk.reset(index=3, episode_id=episode)
            await talk.step(f"Thought: there\nAction: {surface.from_world(old)}")
            assert (await talk.state())["valid_actions"] == 1
            if surface.from_world(old) != old:
                answer = await talk.step(f"Thought: there\nAction: {old}")
                answers.add(answer["observation"]["text"])
                assert (await talk.state())["valid_actions"] == 1
        await talk.socket.close()
    return answers


async def test_episodes_differ_in_their_words_and_the_same_seed_gives_the_same(tmp_path: Path) -> None:
    environment = surroundings(tmp_path)
    with serving(environment, *OPTIONS) as server:
        drawn = await openings(server.url)
        plain = await openings(server.url, "validation")
        refused = await said_in_both_words(server.url, drawn)
    assert refused == {"Observation: Nothing happens."}
    assert len({text for text, _ in drawn}) == len(EPISODES)
    for text, state in drawn:
        surface = find_surface(SPEC, state["perturbation"])
        assert state["words"] == words_of(surface)
        listed = "\n".join(f"- {surface.perturbed.templates[name]}" for name in state["words"]["listed"])
        assert listed in text
    usual = load_prompt(SPEC).instruction_text(PlayedSurface(SPEC).perturbed)
    assert len({text for text, _ in plain}) == 1
    assert usual in plain[0][0]
    assert [(s["perturbation"], s["words"]) for _, s in plain] == [(None, None)] * 3
    with serving(environment, *OPTIONS) as server:
        assert await openings(server.url) == drawn
    with serving(environment, *OPTIONS, "--seed", 5) as server:
        other = await openings(server.url)
    assert all(one != two for (one, _), (two, _) in zip(drawn, other, strict=True))


def test_tasks_of_evaluations_are_served_in_no_drawn_words(tmp_path: Path) -> None:
    served = ("env", "serve", "pddl", "--train-seeds", 0, "--allow-eval-tasks", "--perturb", "random")
    done = evalharness(surroundings(tmp_path, again=True), *served)
    assert done.returncode == 2
    assert "--allow-eval-tasks" in done.stderr
