"""An environment for benchmarks of the harness: 416 tasks whose simulator takes next to nothing."""

from pathlib import Path

from evalharness.envs.base import Actions, EnvSpec, Suite, Task, TaskSuites, TextEnv, WorkerNeeds

TASKS = 416


def load_tasks(suite: Suite, data: Path | None, suite_seed: int) -> list[Task]:
    return [
        Task(
            f"ring/{suite}/{number:03d}", "ring", suite, number, f"find room {1 + number % 2}",
            "easy" if number % 2 else "hard", kind=f"ring of {5 + number % 26}", subgoals=(f"room {1 + number % 2}",),
        )
        for number in range(TASKS)
    ]  # fmt: skip


def make(data: Path | None) -> TextEnv:
    from ring.adapter import RingEnv

    return RingEnv(data=data)


SPEC = EnvSpec(
    family="ring",
    title="Ring",
    gym_id="benchmark/Ring-v0",
    make=make,
    suites=TaskSuites({"open": TASKS}, load_tasks),
    actions=Actions({"go": "go {direction}"}),
    worker=WorkerNeeds(envs_per_worker=64),
    prompt_file=Path(__file__).with_name("ring.yaml"),
)
