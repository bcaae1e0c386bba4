"""Rounds in which a model learns from its own play (DAgger: Ross, Gordon & Bagnell, AISTATS 2011), as a study's jobs.

Round k plays tasks of a suite of its own with the model of round k - 1, has its errors corrected (or keeps its good
episodes), trains that model on everything made so far, and plays the validation suite.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError, model_validator

from evalharness.base.errors import UserError
from evalharness.training.study.file import KnownOptions, One, Part, Sections, read_part
from evalharness.training.study.plan import Cell, Plan, Planner, words_of

_PLAYED = (("run",), ("model", "model_name", "output", "label", "dry_run", "seeds", "suite", "suite_seed"))
_MADE = ("output", "exclude_suite_seeds", "allow_eval_tasks")
SECTIONS: Sections = {
    "play": _PLAYED,
    "correct": (("refine", "correct"), (*_MADE, "errors")),
    "from_runs": (("refine", "from-runs"), _MADE),
    "tune": (("tune",), ("model", "data", "output", "prepare", "dry_run")),
    "evaluate": _PLAYED,
}


class LoopFile(Part):
    model: str = "demo"
    """Trained on from here: a checkpoint or an adapter."""
    rounds: Annotated[int, Field(ge=1)] = 3
    rejection: Annotated[int, Field(ge=2)] | None = None
    """Samples of each task of which the good ones are kept; None: errors are corrected."""
    suite_seed: Annotated[int, Field(ge=1)] = 401
    """Of the first round's tasks; each round plays the next."""
    validation_seed: Annotated[int, Field(ge=1)] = 301
    data: Annotated[tuple[str, ...], One] = ()
    """Data sets that every round trains on, too; paths go from the file."""
    play: dict[str, Any] = Field(default={})
    """Options of `run` (with `rejection` of `bon`)."""
    correct: dict[str, Any] = Field(default={})
    from_runs: dict[str, Any] = Field(default={})
    """Options of `refine from-runs`."""
    tune: dict[str, Any] = Field(default={})
    evaluate: dict[str, Any] = Field(default={})
    """Options of `run`, of the validation."""

    @model_validator(mode="after")
    def _apart(self) -> LoopFile:
        if self.suite_seed <= self.validation_seed < self.suite_seed + self.rounds:
            raise ValueError(
                f"validation_seed {self.validation_seed} is among the suites that the rounds play "
                f"({self.suite_seed} to {self.suite_seed + self.rounds - 1})"
            )
        return self


def read_loop(path: Path | None, known: KnownOptions, **given: Any) -> tuple[LoopFile, Path]:
    """(what the file says, where its paths start); `given` goes before the file where it is not None. Raises
    UserError."""
    found, beside = LoopFile(), Path()
    if path is not None:
        found, beside = read_part(path, LoopFile, SECTIONS, known)[0], path.parent
    values = {**found.model_dump(), **{key: value for key, value in given.items() if value is not None}}
    try:
        return LoopFile.model_validate(values), beside
    except ValidationError as error:
        said = [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors()]
        lines = (f"{name}: {what}" if name else what.removeprefix("Value error, ") for name, what in said)
        raise UserError("; ".join(lines)) from None


def text_of(loop: LoopFile) -> str:
    return yaml.safe_dump(loop.model_dump(mode="json"), sort_keys=False, allow_unicode=False, width=100)


def plan_loop(loop: LoopFile, folder: Path, beside: Path) -> Plan:
    """`folder`: of the loop; `beside`: where paths of data start."""
    return _LoopPlanner(loop, folder, beside).plan()


class _LoopPlanner(Planner):
    def __init__(self, loop: LoopFile, folder: Path, beside: Path) -> None:
        super().__init__(folder)
        self.loop = loop
        self.given = tuple(beside / name for name in loop.data)

    def plan(self) -> Plan:
        model = self.loop.model
        trained: tuple[str, ...] = ()
        cells = [Cell("round-0", {"round": "0"}, (), None, (self._evaluated(0, model, ()),))]
        for number in range(1, self.loop.rounds + 1):
            data, name, makes = (
                self._data(number, model, trained),
                f"round-{number}",
                f"models/round-{number}",
            )
            words = ["tune", "--model", model, "--data", self.path(f"data/all-{number}.jsonl")]
            words += [*words_of(self.loop.tune), "-o", self.path(makes)]
            training = self.add("training", name, words, makes, data[-1:])
            model, trained = self.path(makes), (training,)
            run = self._evaluated(number, model, trained)
            cells.append(Cell(name, {"round": str(number)}, data, training, (run,)))
        return Plan(self.jobs, tuple(cells))

    def _evaluated(self, number: int, model: str, needs: tuple[str, ...]) -> str:
        makes = f"runs/round-{number}"
        words = ["run", "--model", model, "--label", f"round={number}", "--suite", "open"]
        words += ["--suite-seed", str(self.loop.validation_seed), *words_of(self.loop.evaluate)]
        return self.add("run", f"round-{number}", [*words, "-o", self.path(makes)], makes, needs)

    def _data(self, number: int, model: str, trained: tuple[str, ...]) -> tuple[str, ...]:
        """Played with the model so far; what is made of that; all that was made, and what the user brings."""
        loop, excluded = self.loop, ("--exclude-suite-seeds", str(self.loop.validation_seed))
        played, new, every = f"data/played-{number}", f"data/new-{number}.jsonl", f"data/all-{number}.jsonl"
        words = ["--model", model, "--suite", "open", "--suite-seed", str(loop.suite_seed + number - 1)]
        words = [*words, *words_of(loop.play), "-o", self.path(played)]
        if loop.rejection is None:
            words, how = ["run", *words], ("correct", loop.correct)
        else:
            words, how = ["bon", *words, "-n", str(loop.rejection)], ("from-runs", loop.from_runs)
        first = self.add("data", f"played-{number}", words, played, trained)
        words = ["refine", how[0], self.path(played), *words_of(how[1]), *excluded, "-o", self.path(new)]
        second = self.add("data", f"new-{number}", words, new, (first,))
        parts = [*map(str, self.given), *(self.path(f"data/new-{n}.jsonl") for n in range(1, number + 1))]
        words = ["refine", "mix", *parts, "--all", *excluded, "-o", self.path(every)]
        return first, second, self.add("data", f"all-{number}", words, every, (second,), self.given)
