"""An environment outside this repository, whose simulator breaks when a test asks."""

from pathlib import Path

from evalharness.envs.base import Actions, EnvSpec, Suite, Task, TaskSuites, TextEnv, WorkerNeeds

GOALS = ("north", "east", "south", "west")


def load_tasks(suite: Suite, data: Path | None, suite_seed: int) -> list[Task]:
    return [
        Task(
            f"compass/{suite}/{i:03d}",
            "compass",
            suite,
            i,
            f"face {goal}",
            "easy",
            kind="face",
            subgoals=(goal,),
        )
        for i, goal in enumerate(GOALS * 5)
    ]


def make(data: Path | None) -> TextEnv:
    from compass.adapter import CompassEnv

    return CompassEnv(data=data)


SPEC = EnvSpec(
    family="compass",
    title="Compass",
    gym_id="example/Compass-v0",
    held_out=False,
    make=make,
    suites=TaskSuites({"agentboard": 20, "open": 20}, load_tasks),
    actions=Actions({"turn": "turn {direction}", "check": "check valid actions"}, help_action="check"),
    worker=WorkerNeeds(envs_per_worker=8, step_timeout=3.0),
    prompt_file=Path(__file__).with_name("compass.yaml"),
)
