"""A study's file: which axes it has, how data is made, how models are tuned and played."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from evalharness.base.errors import UserError, nearest
from evalharness.base.yaml_lines import line_of, load_model
from evalharness.results.paper.exhibits import find_exhibit
from evalharness.training.datasets.modes import Mode

SHIPPED = Path(__file__).parent / "files"
Options = Mapping[str, Any]
"""Option of a command -> its value, as its flag has it: `max_steps: 20`."""
PLAIN = "plain"
"""The perturbation that is none."""
RULES = "rules"
"""The synthesis model that is none: `refine grounded` words thoughts by rule."""
PLAYED = ("suite_seed", "perturbation", "agent")
"""Axes in which runs of one model differ."""


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


P = TypeVar("P", bound=Part)


One = BeforeValidator(_listed)
_Names = Annotated[tuple[str, ...], One, Field(min_length=1)]
_Seeds = Annotated[tuple[Annotated[int, Field(ge=0)], ...], One, Field(min_length=1)]


class Axes(Part):
    """One value or a list of each. A cell is a combination; its runs differ in `PLAYED`."""

    mode: Annotated[tuple[Mode, ...], One, Field(min_length=1)] = ("full",)
    data_size: Annotated[tuple[Annotated[int, Field(ge=1)], ...], One, Field(min_length=1)]
    """Conversations, those of `mixing_ratio` included."""
    mixing_ratio: Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], One] = ()
    """Share of general conversations."""
    base_model: _Names
    synthesis_model: Annotated[tuple[str, ...], One] = ()
    training_seed: _Seeds = (0,)
    suite_seed: Annotated[tuple[Annotated[int, Field(ge=0)], ...], One] = ()
    perturbation: Annotated[tuple[str, ...], One] = ()
    agent: Annotated[tuple[str, ...], One] = ()
    """`react`, or `window+history=4`."""

    @model_validator(mode="after")
    def _each_once(self) -> Axes:
        for name in type(self).model_fields:
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name} has a value twice")
        return self


class Data(Part):
    """Where conversations come from: one of `grounded`, `corrected`, `scripts`, `file`."""

    grounded: dict[str, Any] | None = None
    """Options of `refine grounded`."""
    corrected: dict[str, Any] | None = None
    """Options of `refine correct`, which corrects `played`. Half of the conversations are corrections; half are the
    same tasks without errors, and these alone are the data of `no_refine_data`."""
    played: dict[str, Any] | None = None
    """Options of `run`, model among them."""
    scripts: dict[str, Any] | None = None
    """Options of `refine scripts`, n among them."""
    trajectories: dict[str, Any] = {}
    """Options of `refine trajectories`, which plays the scripts."""
    file: str | dict[str, str] | None = None
    """A data set that is there, or synthesis model -> data set; its path goes from the study's file."""
    writers: dict[str, dict[str, Any]] = {}
    """Synthesis model -> how it is asked: `model`, `model_name`, `api_key_env`. One without is asked by its name."""
    general: str | None = None
    """General conversations for `mixing_ratio`."""

    @model_validator(mode="after")
    def _one_source(self) -> Data:
        sources = ("grounded", "corrected", "scripts", "file")
        given = [name for name in sources if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(sources)}; given: {', '.join(given) or 'none'}")
        if (self.corrected is None) != (self.played is None):
            raise ValueError("corrected and played go together: whose errors are corrected")
        return self


_Asked = Annotated[dict[str, Any] | None, BeforeValidator(lambda given: {} if given is None else given)]
"""Options of what is done with every trained model; nothing behind the name means the command's defaults. None, where
the file has no such section: it is not done."""


class StudyFile(Part):
    exhibit: str | None = None
    """What is shown at the end: `table2`."""
    axes: Axes
    data: Data
    tune: dict[str, Any] = {}
    """Options of `evalharness tune`."""
    run: _Asked = None
    """Options of `evalharness run`, which plays every model."""
    probe: _Asked = None
    """Options of `evalharness probe`, which asks every model."""

    @model_validator(mode="after")
    def _fit(self) -> StudyFile:
        if any(self.axes.mixing_ratio) and self.data.general is None:
            raise ValueError("mixing_ratio wants data.general, a file of general conversations")
        if self.run is None and (named := [name for name in PLAYED if getattr(self.axes, name)]):
            raise ValueError(f"axes.{named[0]} wants run, which plays the models")
        if not isinstance((self.run or {}).get("suite_seed"), int | None):
            raise ValueError("run.suite_seed is one number; several are an axis: axes.suite_seed")
        if self.data.scripts is not None and not self.axes.synthesis_model:
            raise ValueError("data.scripts wants axes.synthesis_model: who writes them")
        if isinstance(self.data.file, dict):
            missing = [name for name in self.axes.synthesis_model or ("",) if name not in self.data.file]
            if missing:
                raise ValueError(f"data.file has no data set of the synthesis model {missing[0]!r}")
        return self


Sections = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
"""Part of the file -> the command whose options it holds, and those of them that the study sets itself."""
SECTIONS: Sections = {
    "tune": (("tune",), ("model", "data", "output", "mode", "seed", "prepare", "dry_run")),
    "run": (("run",), ("model", "output", "label", "dry_run")),
    "probe": (("probe",), ("model", "model_name", "output")),
    "data.grounded": (("refine", "grounded"), ("conversations", "n", "output", "thoughts", "force")),
    "data.played": (("run",), ("output", "label", "dry_run", "seeds")),
    "data.corrected": (("refine", "correct"), ("output", "errors")),
    "data.scripts": (("refine", "scripts"), ("output", "model", "model_name", "api_key_env")),
    "data.trajectories": (
        ("refine", "trajectories"),
        ("output", "model", "model_name", "api_key_env", "scripts"),
    ),
}


def find_study(name: Path) -> Path:
    """A file, or the shipped one of that name. Raises UserError."""
    if name.is_file():
        return name
    if (SHIPPED / f"{name}.yaml").is_file():
        return SHIPPED / f"{name}.yaml"
    raise UserError(f"no study file {name}{nearest(str(name), shipped())}")


def shipped() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


KnownOptions = Mapping[tuple[str, ...], Mapping[str, str]]
"""Command -> every name of an option -> its long name, as a file has it: `max_steps`."""
_NEVER = ("help", "help_all", "json")
"""What ends a command or writes one file for all of them."""


def read_study_file(path: Path, known: KnownOptions) -> StudyFile:
    """Raises UserError with file and line for everything that is wrong."""
    study, raw = read_part(path, StudyFile, SECTIONS, known)
    if study.exhibit is not None:
        try:
            find_exhibit(study.exhibit)
        except UserError as error:
            raise UserError(f"{path}: line {line_of(raw, ['exhibit'])}, exhibit: {error}") from None
    return study


def read_part(path: Path, kind: type[P], sections: Sections, known: KnownOptions) -> tuple[P, bytes]:
    """(what the file says, its bytes). Raises UserError with file and line for everything that is wrong."""
    found, raw = load_model(path, kind, str(path))
    for section, (command, ours) in sections.items():
        place = section.split(".")
        options: Any = found
        for part in place:
            options = getattr(options, part)
        for name in options or {}:
            if why := _refusal(name, known[command], ours):
                raise UserError(f"{path}: line {line_of(raw, [*place, name])}, {section}.{name}: {why}")
    return found, raw


def _refusal(name: str, known: Mapping[str, str], ours: tuple[str, ...]) -> str | None:
    """Why an option cannot stand in a file; None where it can."""
    option = known.get(name)
    if name in ours or option in ours:
        return "the study sets it"
    if option is None or option in _NEVER:
        return f"no such option{nearest(name, sorted({*known.values()} - {*ours, *_NEVER}))}"
    return None
