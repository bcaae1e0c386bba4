"""The world beside the turn: drawn from the record, by playing the episode again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import evalharness

from evalharness.cli import main
from evalharness.envs.picture import place_maps, svg, text
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.records.store import read_episodes, read_manifest
from evalharness.runs.pictures import Pictures

TASKS = "alfworld:0-1,babyai:0-3,jericho:0,pddl:0,pddl:20,pddl:40,pddl:50"
HOSTILE = "</text><script>alert(1)</script>&\x00\ud800" + "x" * 500


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, list[Episode]]:
    folder = tmp_path_factory.mktemp("played") / "run"
    options = ["--model", "random", "--suite", "open", "--tasks", TASKS, "--max-turns", "6"]
    assert main(["run", *options, "-o", str(folder)]) == 0
    return read_manifest(folder), list(read_episodes(folder))


def test_every_turn_has_a_picture_and_the_same_episode_the_same_ones(
    played: tuple[Manifest, list[Episode]],
) -> None:
    manifest, episodes = played
    for episode in episodes:
        with Pictures(manifest, None) as one, Pictures(manifest, None) as other:
            drawn = one.of(episode)
            assert drawn == other.of(episode)
        assert len(drawn) == len(episode.turns) + 1, episode.task_id
        for picture in drawn:
            assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
            assert len(picture) < 30_000


def test_a_picture_changes_with_the_world(played: tuple[Manifest, list[Episode]]) -> None:
    manifest, episodes = played
    moved = [e for e in episodes if e.family == "babyai" and len({t.observation for t in e.turns}) > 2]
    with Pictures(manifest, None) as pictures:
        assert all(len(set(pictures.of(episode))) > 1 for episode in moved)
    assert moved


def test_an_episode_that_plays_otherwise_here_is_not_drawn(played: tuple[Manifest, list[Episode]]) -> None:
    manifest, episodes = played
    episode = next(e for e in episodes if e.family == "pddl")
    first = replace(episode.turns[0], observation="It was a dark and stormy night.")
    with Pictures(manifest, None) as pictures:
        assert pictures.of(replace(episode, turns=(first, *episode.turns[1:]))) == []
        assert pictures.differing == 1
        assert pictures.of(replace(episode, task_hash="another")) == []
        assert pictures.of(replace(episode, family="nobody's")) == []


def test_whatever_a_name_holds_it_is_text() -> None:
    for picture in (*place_maps([HOSTILE, "hall", HOSTILE]), svg(9, 9, [text(1, 1, HOSTILE)])):
        assert "<script" not in picture
        texts = [e.text or "" for e in ElementTree.fromstring(picture).iter() if e.tag.endswith("text")]
        assert all(len(said) <= 24 for said in texts)


def test_a_map_shows_the_whole_walk_and_marks_where_one_is() -> None:
    maps = place_maps(["", "hall", "hall", "cellar", "hall", "attic"])
    assert maps[1] == maps[2] == maps[4]
    for here, picture in zip(["start", "hall", "hall", "cellar", "hall", "attic"], maps, strict=True):
        texts = {
            e.text: e.get("font-weight")
            for e in ElementTree.fromstring(picture).iter()
            if e.tag.endswith("text")
        }
        assert set(texts) == {"start", "hall ×2", "cellar", "attic"}
        assert [text for text, weight in texts.items() if weight == "bold"] == [
            {"hall": "hall ×2"}.get(here, here)
        ]
    assert place_maps(["", ""]) == []


def test_the_report_has_them_unless_it_is_told_not_to(
    played: tuple[Manifest, list[Episode]], environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    options = ("--model", "oracle", "--suite", "open", "--tasks", "babyai:0-5", "-o", folder)
    evalharness(environment, "run", *options)
    for name, more in (("with", ()), ("without", ("--no-pictures",))):
        done = evalharness(environment, "report", folder, "-o", tmp_path / f"{name}.html", *more)
        assert done.returncode == 0, done.stderr
    sizes = [(tmp_path / f"{name}.html").stat().st_size for name in ("with", "without")]
    assert sizes[0] > sizes[1]
    assert "img-src data:" in (tmp_path / "with.html").read_text()
