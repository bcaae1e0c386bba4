"""Jericho with the official label file: goals and openings come from the constants of AgentBoard's source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalharness.envs import specs

pytestmark = pytest.mark.data


def test_official_labels_and_source_texts_make_the_same_tasks_as_our_label_file(
    published_data: Path, tmp_path: Path
) -> None:
    ours = published_data / "agentboard" / "jericho"
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in (ours / "partial_labels.jsonl").read_text().splitlines()
    ]
    folder = tmp_path / "agentboard" / "jericho"
    folder.mkdir(parents=True)
    (folder / "roms").symlink_to(ours / "roms")
    # What an import of the official archive and a checkout leaves: the archive knows neither opening nor game name.
    known = ("id", "task", "difficulty", "subgoals", "goal")
    (folder / "test.jsonl").write_text(
        "".join(json.dumps({name: row[name] for name in known if name in row}) + "\n" for row in rows)
    )
    keys = {row["game"]: "darkhunt" if row["game"] == "huntdark" else row["game"] for row in rows}
    texts = {
        "game_goals": {keys[row["game"]]: row["goal"] for row in rows},
        "game_init_obs": {keys[row["game"]]: row["init_obs"] for row in rows},
    }
    load = specs()["jericho"].suites.load_tasks
    without = load("agentboard", tmp_path, 0)
    (folder / "game_texts.json").write_text(json.dumps(texts))
    assert load("agentboard", tmp_path, 0) == load("agentboard", published_data, 0)
    assert without != load("agentboard", published_data, 0)
