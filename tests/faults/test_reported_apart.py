"""What infrastructure broke is no result of the model: the held-out score is withheld, never made of what is left."""

from __future__ import annotations

from pathlib import Path

from made_runs import make_run

from evalharness.base.errors import InfrastructureError
from evalharness.envs import specs
from evalharness.records.store import EPISODES, RunStore, read_episodes, read_manifest
from evalharness.results.score import EpisodeScore
from evalharness.results.summarize import summarize


def test_one_given_up_episode_of_282_withholds_the_held_out_score(tmp_path: Path) -> None:
    held_out = {
        family: spec.suites.expected["agentboard"] for family, spec in specs().items() if spec.held_out
    }
    assert sum(held_out.values()) == 282
    outcomes = {family: [(i % 3 == 0, 0.5) for i in range(count)] for family, count in held_out.items()}
    run = make_run(tmp_path / "run", outcomes)
    complete = summarize(run)
    assert complete.held_out is not None
    assert complete.is_complete

    lost = [EpisodeScore.of(episode) for episode in read_episodes(run)][-1]
    lines = (run / EPISODES).read_bytes().splitlines(keepends=True)
    (run / EPISODES).write_bytes(b"".join(lines[:-1]))
    with RunStore(run) as store:
        store.load_or_refuse(read_manifest(run).to_json())
        about = {"task_id": lost.task_id, "sample": lost.sample}
        store.append_failure(about, 3, InfrastructureError("the simulator died"), True)
    summary = summarize(run)
    assert summary.held_out is None
    assert summary.held_out_withheld
    assert not summary.is_complete
    family = summary.families[lost.family]
    assert family.infrastructure_failures == 1
    assert family.n == held_out[lost.family] - 1
