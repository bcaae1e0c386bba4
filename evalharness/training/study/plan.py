"""A study as jobs: each is one command of this package, and what several cells need is one job. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

from evalharness.base.errors import UserError
from evalharness.base.paths import folder_name
from evalharness.suites.selection import parse_seeds
from evalharness.training.study.file import PLAIN, PLAYED, RULES, Axes, Options, StudyFile

Kind = Literal["data", "training", "probe", "run"]
TRAINED = ("mode", "data_size", "mixing_ratio", "base_model", "synthesis_model", "training_seed")
_SAID = {"mixing_ratio": "general", "training_seed": "seed", "suite_seed": "suite"}
"""Axis -> what stands before its value in names; of the others the value says it."""


PROBES = "probes"
REPEATED = ("agent_option", "label", "model", "workers")
"""Options whose flag may be given several times."""


@dataclass(frozen=True)
class Job:
    name: str
    kind: Kind
    words: tuple[str, ...]
    """The command, without the program's name."""
    makes: Path
    """The file or folder that is there afterwards."""
    needs: tuple[str, ...] = ()
    """Names of the jobs before it."""
    reads: tuple[Path, ...] = ()
    """Files that the user brought."""


@dataclass(frozen=True)
class Cell:
    """One model that is trained, the runs that play it, and what it is asked."""

    name: str
    settings: Mapping[str, str]
    data: tuple[str, ...]
    """Names of its jobs."""
    training: str | None
    """None: a model that was there before."""
    runs: tuple[str, ...]
    probe: str | None = None

    @property
    def before(self) -> tuple[str, ...]:
        """What is done before its runs."""
        return self.data if self.training is None else (*self.data, self.training)


@dataclass(frozen=True)
class Plan:
    jobs: Mapping[str, Job]
    """In an order in which they can be done, cell by cell, those of the first training seed first: what a study that
    was stopped has compared by then is every mode."""
    cells: tuple[Cell, ...]

    @property
    def runs(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.kind == "run"]


def words_of(options: Options) -> list[str]:
    """As flags: `max_steps: 20` is `--max-steps 20`; true is the flag alone, a mapping the flag repeated. So is a list
    where each is a value of its own, as servers of one model are; else it is one value, with commas."""
    found = []
    for name, value in options.items():
        flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        if value is None:
            continue  # the command's own default
        if isinstance(value, bool):
            found.append(flag if value else f"--no-{flag.lstrip('-')}")
        elif isinstance(value, dict):
            found += [word for key, each in value.items() for word in (flag, f"{key}={each}")]
        else:
            several = value if isinstance(value, list) else [value]
            values = several if name in REPEATED else [",".join(map(str, several))]
            found += [word for each in values for word in (flag, f"{each}")]
    return found


class Planner:
    """The jobs of one folder; what several cells need is added once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs: dict[str, Job] = {}

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def add(
        self,
        kind: Kind,
        name: str,
        words: Iterable[str],
        makes: str,
        needs: tuple[str, ...] = (),
        reads: tuple[Path, ...] = (),
    ) -> str:
        """The job's name. `makes` goes from the folder."""
        job = Job(f"{kind} {name}", kind, tuple(words), self.folder / makes, needs, reads)
        return self.jobs.setdefault(job.name, job).name


def make_plan(study: StudyFile, folder: Path, beside: Path) -> Plan:
    """`folder`: of the study; `beside`: where paths in its file start. Raises UserError where two cells would share a
    name."""
    return _StudyPlanner(study, folder, beside).plan()


class _StudyPlanner(Planner):
    def __init__(self, study: StudyFile, folder: Path, beside: Path) -> None:
        super().__init__(folder)
        self.study, self.beside = study, beside

    def plan(self) -> Plan:
        seeds = self.study.axes.training_seed
        numbered = enumerate(_combinations(self.study.axes, TRAINED))
        by_seed = sorted(numbered, key=lambda each: seeds.index(each[1]["training_seed"]))
        made = {number: self._cell(settings) for number, settings in by_seed}
        cells = [made[number] for number in sorted(made)]
        names = Counter(cell.name for cell in cells)
        if twice := next((name for name in names if names[name] > 1), None):
            raise UserError(f"two cells of the study would be called {twice}; name their models differently")
        return Plan(self.jobs, tuple(cells))

    def _cell(self, settings: Mapping[str, Any]) -> Cell:
        axes, name = self.study.axes, _name(self.study.axes, settings, TRAINED)
        data, makes = self._data(settings), f"models/{name}"
        words = ["tune", "--model", settings["base_model"], "--data", str(self.jobs[data[-1]].makes)]
        mode = "full" if self._regenerated(settings) else settings["mode"]
        words += ["-o", self.path(makes), "--mode", mode, "--seed", str(settings["training_seed"])]
        training = self.add("training", name, [*words, *words_of(self.study.tune)], makes, data[-1:])
        labels = {key: str(value) for key, value in settings.items() if key in axes.model_fields_set}
        labels.setdefault("training_seed", str(settings["training_seed"]))
        probe = None if self.study.probe is None else self._probe(name, training, self.study.probe)
        played = () if self.study.run is None else _combinations(axes, PLAYED)
        runs = tuple(self._run(name, training, labels, each) for each in played)
        return Cell(name, labels, data, training, runs, probe)

    def _probe(self, cell: str, training: str, options: Options) -> str:
        makes = f"{PROBES}/{cell}"
        words = [
            "probe",
            "--model",
            self.path(f"models/{cell}"),
            "--model-name",
            cell,
            "-o",
            self.path(makes),
        ]
        brought = (Path(options["prefixes"]),) if "prefixes" in options else ()
        return self.add("probe", cell, [*words, *words_of(options)], makes, (training,), brought)

    def _run(self, cell: str, training: str, labels: Mapping[str, str], played: Mapping[str, Any]) -> str:
        more = _name(self.study.axes, played, PLAYED)
        name = f"{cell}-{more}" if more else cell
        words = ["run", "--model", self.path(f"models/{cell}"), "--model-name", cell]
        words += ["-o", self.path(f"runs/{name}"), *words_of({"label": dict(labels)})]
        if "suite_seed" in played:
            words += ["--suite-seed", str(played["suite_seed"])]
        if played.get("perturbation", PLAIN) != PLAIN:
            words += ["--perturb", played["perturbation"]]
        if "agent" in played:
            agent, *options = played["agent"].split("+")
            words += ["--agent", agent, *(word for o in options for word in ("--agent-option", o))]
        return self.add("run", name, [*words, *words_of(self.study.run or {})], f"runs/{name}", (training,))

    # --- data -------------------------------------------------------------------------------------------------------

    def _data(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of the jobs that make a cell's data set, the last one it."""
        ratio, size = float(settings.get("mixing_ratio", 0.0)), int(settings["data_size"])
        if ratio == 1.0:
            return (self._mixed({self._general(): ""}, size, "general", ()),)
        agent = self._agent(settings, size)
        if ratio == 0.0:
            return agent
        made = self.jobs[agent[-1]]
        parts = {made.makes: f":{1 - ratio:g}", self._general(): f":{ratio:g}"}
        name = made.name.removeprefix("data ")
        return (*agent, self._mixed(parts, size, f"{name}-general{ratio:g}", agent[-1:]))

    def _general(self) -> Path:
        assert self.study.data.general is not None
        return self.beside / self.study.data.general

    def _mixed(self, parts: Mapping[Path, str], size: int, name: str, needs: tuple[str, ...]) -> str:
        """`parts`: file -> what stands behind it, its share."""
        name = name if name.endswith(f"-{size}") or f"-{size}-" in name else f"{name}-{size}"
        makes = f"data/{name}.jsonl"
        words = ["refine", "mix", *(f"{path}{share}" for path, share in parts.items()), "-n", str(size)]
        words += ["-o", self.path(makes), *self._excluded()]
        brought = tuple(path for path in parts if not path.is_relative_to(self.folder))
        return self.add("data", name, words, makes, needs, brought)

    def _agent(self, settings: Mapping[str, Any], size: int) -> tuple[str, ...]:
        data, writer = self.study.data, settings.get("synthesis_model")
        by = f"-{folder_name(str(writer), 'model')}" if writer else ""
        name = f"agent{by}-{size}"
        if data.file is not None:
            source = data.file if isinstance(data.file, str) else data.file[str(writer)]
            return (self._mixed({self.beside / source: ""}, size, name, ()),)
        if data.corrected is not None:
            return self._corrected(settings, size)
        if data.grounded is not None:
            return (self._grounded(name, size, writer),)
        asked, scripts, played = words_of(self._writer(writer)), f"data/scripts{by}", f"data/trajectories{by}"
        words = ["refine", "scripts", *asked, *words_of(data.scripts or {}), "-o", self.path(scripts)]
        first = self.add("data", f"scripts{by}", words, scripts)
        words = ["refine", "trajectories", *asked, "--scripts", self.path(scripts)]
        words += [*words_of(data.trajectories), "-o", self.path(played)]
        second = self.add("data", f"trajectories{by}", words, played, (first,))
        return first, second, self._mixed({self.folder / played / "data.jsonl": ""}, size, name, (second,))

    def _grounded(self, name: str, size: int, writer: Any) -> str:
        makes = f"data/{name}.jsonl"
        words = ["refine", "grounded", "-n", str(size), "-o", self.path(makes)]
        words += [*words_of(self.study.data.grounded or {}), *self._excluded()]
        if writer not in (None, RULES):
            asked = {
                "thoughts" if key == "model" else key: value for key, value in self._writer(writer).items()
            }
            words += words_of(asked)
        return self.add("data", name, words, makes)

    def _regenerated(self, settings: Mapping[str, Any]) -> bool:
        """Whether `no_refine_data` is data of its own: the same tasks, played without errors."""
        return self.study.data.corrected is not None and settings["mode"] == "no_refine_data"

    def _corrected(self, settings: Mapping[str, Any], size: int) -> tuple[str, ...]:
        """A model's own errors, corrected, and as many of the same tasks without errors."""
        played = self.path("data/played")
        words = ["run", *words_of(self.study.data.played or {}), "-o", played]
        jobs = [self.add("data", "played", words, "data/played")]
        kinds = ("none",) if self._regenerated(settings) else ("none", "own")
        for errors in kinds:
            makes = f"data/errors-{errors}.jsonl"
            words = ["refine", "correct", played, *words_of(self.study.data.corrected or {})]
            words += [*self._excluded(), "--errors", errors, "-o", self.path(makes)]
            jobs.append(self.add("data", f"errors-{errors}", words, makes, (jobs[0],)))
        made = {self.jobs[name].makes: "" for name in jobs[1:]}
        mixed = self._mixed(made, size * len(kinds) // 2, f"agent-{kinds[-1]}", tuple(jobs[1:]))
        return (*jobs, mixed)

    def _writer(self, name: object) -> Options:
        return self.study.data.writers.get(str(name), {"model": str(name)})

    def _excluded(self) -> list[str]:
        """Tasks of the open suites that are played, or named, stay out of the data; those of suite 0 always do."""
        made = {**(self.study.data.grounded or {}), **(self.study.data.corrected or {})}
        said = made.get("exclude_suite_seeds") or "0"
        named = ",".join(map(str, said if isinstance(said, list) else [said]))
        played = {*self.study.axes.suite_seed, (self.study.run or {}).get("suite_seed") or 0}
        seeds = {*parse_seeds("exclude_suite_seeds", named), *played} - {0}
        return ["--exclude-suite-seeds", ",".join(map(str, sorted(seeds)))] if seeds else []


def _combinations(axes: Axes, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Every combination of the values of the axes that have some."""
    there = [name for name in names if getattr(axes, name)]
    for values in product(*(getattr(axes, name) for name in there)):
        yield dict(zip(there, values, strict=True))


def _name(axes: Axes, settings: Mapping[str, Any], names: Iterable[str]) -> str:
    """Of the values that vary, as a folder's name; the mode, where none does."""
    said = [
        f"{_SAID.get(key, '')}{folder_name(_short(settings[key]), 'x')}"
        for key in names
        if key in settings and len(getattr(axes, key)) > 1
    ]
    return "-".join(said) or str(settings.get("mode", ""))


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).rstrip("/").rpartition("/")[2]
