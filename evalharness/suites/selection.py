"""Select a run's tasks by suite, family and range."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from evalharness.base.errors import UserError, nearest
from evalharness.envs.base import EnvSpec, MissingDataError, Suite, Task
from evalharness.suites.draws import draw_tasks, find_draw, spread_sample
from evalharness.suites.open import FROZEN_SEED, load_open, read_family_proofs, read_frozen, suite_command


def suites_of(specs: Mapping[str, EnvSpec]) -> list[Suite]:
    """Return the names of all suites of these families, sorted."""
    return sorted({suite for spec in specs.values() for suite in spec.suites.expected})


def require_suite(specs: Mapping[str, EnvSpec], suite: str) -> None:
    """Raise UserError if no family has the suite, or if the suite is only for training."""
    if suite not in (known := suites_of(specs)):
        raise UserError(f"--suite {suite}: no such suite{nearest(suite, known)}")
    if any(suite in spec.suites.training for spec in specs.values()):
        raise UserError(
            f"--suite {suite}: its tasks are for training and are not scored; serve them with: "
            f"evalharness env serve FAMILY --suite {suite}"
        )


def families_of_all(specs: Mapping[str, EnvSpec], suite: Suite) -> list[str]:
    """Return the families that `--tasks all` selects: those that have the suite and `in_all`. If there is no such
    family, return all families that have the suite."""
    having = [family for family, spec in specs.items() if suite in spec.suites.expected]
    return [family for family in having if specs[family].own.in_all] or having


_LOG = logging.getLogger("evalharness")
"""Logger whose messages the command line prints on standard error."""


def _positions(family: str, text: str, size: int) -> list[int]:
    """Return the positions in a text like `7`, `0-9` or `50-`."""
    match = re.fullmatch(r"(\d{1,9})(-?)(\d{0,9})", text)
    if match is None or (match[3] and not match[2]):
        raise UserError(
            f"{family}:{text} is not a range of tasks; write {family}:7, {family}:0-9 or {family}:50-"
        )
    low = int(match[1])
    high = int(match[3]) if match[3] else (size - 1 if match[2] else low)
    if low > high or high >= size:
        raise UserError(f"{family}:{text}: the tasks of {family} are 0-{size - 1}")
    return list(range(low, high + 1))


_FIELDS = ("kind", "difficulty")


def _filter_positions(family: str, conditions: str, tasks: Sequence[Task]) -> list[int]:
    """Return the positions of the tasks that fulfil all conditions. Colons separate conditions. A condition is
    `kind=KIND` or `difficulty=LEVEL`, in which `*` matches any text."""
    positions = list(range(len(tasks)))
    for condition in conditions.split(":"):
        name, _, wanted = condition.partition("=")
        if name not in _FIELDS or not wanted:
            raise UserError(f"{family}:{condition}: write {family}:kind=KIND or {family}:difficulty=hard")
        known = sorted({getattr(task, name) for task in tasks})
        if not any(fnmatchcase(value, wanted) for value in known):
            if family == "all":
                return []
            raise UserError(f"{family} has no task of {name} {wanted!r}{nearest(wanted, known)}")
        positions = [
            position for position in positions if fnmatchcase(getattr(tasks[position], name), wanted)
        ]
    return positions


_MOST_SEEDS = 10_000


def parse_seeds(option: str, text: str) -> list[int]:
    """Parse a text like `1-4,9` to 1, 2, 3, 4, 9. Raise UserError if it has another form."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        if match is None:
            raise UserError(f"{option} {text!r}: give seeds as in 1-4,9")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= _MOST_SEEDS:
            raise UserError(f"{option} {text!r}: {part.strip()} is not a range of seeds")
        seeds += range(first, last + 1)
    return sorted(set(seeds))


def family_tasks(spec: EnvSpec, suite: Suite, data: Path | None, suite_seed: int) -> list[Task]:
    """Return all tasks of a family. If data is missing, raise UserError with the command that gets the data.

    If the open suite of the seed does not exist on this machine, build it; a message says so, as it can take minutes.
    """
    if suite not in spec.suites.expected:
        raise UserError(
            f"{spec.title} has no suite {suite!r}; give --suite {' or --suite '.join(sorted(spec.suites.expected))}"
        )
    try:
        if suite == "open":
            tasks = load_open(spec, suite_seed, _LOG.info)
        else:
            tasks = spec.suites.load_tasks(suite, data, suite_seed)
    except MissingDataError as error:
        raise UserError(str(error)) from None
    except PermissionError as error:
        raise UserError(f"{spec.title}: cannot read {error.filename}: {error.strerror}") from None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        if suite == "open":
            raise
        # Environments do not check their data files, because `data import` does. So a changed file causes any error.
        raise UserError(
            f"{spec.title}: the data in {data} is not as it was imported ({type(error).__name__}: {error}); see: "
            "evalharness data verify"
        ) from error
    if len({task.id for task in tasks}) < len(tasks):
        raise UserError(f"{spec.title}: two tasks of the suite {suite!r} have the same id")
    for task in tasks:
        if task.family != spec.family or not task.id.startswith(f"{spec.family}/{suite}/"):
            raise UserError(f"{spec.title}: the task id {task.id!r} must be {spec.family}/{suite}/INDEX")
    return tasks


class NotMadeError(UserError):
    """An open suite does not exist on this machine, and the caller does not want to wait until it is built."""


def load_existing_tasks(spec: EnvSpec, suite: Suite, data: Path | None, suite_seed: int) -> list[Task]:
    """Return all tasks of a family. Raise NotMadeError if this would build an open suite."""
    is_made = suite != "open" or suite_seed == FROZEN_SEED or spec.suites.generate is None
    if not is_made and read_frozen(spec, suite_seed) is None:
        raise NotMadeError(
            f"its tasks are of the open suite of seed {suite_seed}, which is not on this machine; build it with: "
            f"{suite_command(suite_seed)}"
        )
    return family_tasks(spec, suite, data, suite_seed)


Load = Callable[[EnvSpec, Suite, Path | None, int], list[Task]]
"""Function with the first four arguments of `family_tasks` that returns all tasks of a family."""


def count_tasks(spec: EnvSpec, suite: Suite, data: Path | None, suite_seed: int) -> int:
    """Return how many tasks `family_tasks` returns. For suite seed 0, count the stored proofs, which is faster.

    Raise UserError as `family_tasks` does.
    """
    frozen = len(read_family_proofs(spec.family)) if suite == "open" and suite_seed == FROZEN_SEED else 0
    return frozen or len(family_tasks(spec, suite, data, suite_seed))


def select(
    specs: Mapping[str, EnvSpec],
    selection: str,
    suite: Suite,
    *,
    data: Path | None,
    suite_seed: int = 0,
    limit: int | None = None,
    questions: str | None = None,
    draw: int | None = None,
    load: Load = family_tasks,
) -> dict[str, list[Task]]:
    """Map each selected family, sorted by name, to its selected tasks, in the suite's order and without repetitions.

    `selection` has parts separated by commas: `all`, a family, `family:range`, `family:kind=...`, `all:difficulty=...`,
    or a task id. `limit`: keep only the first N tasks of each family. `draw`: sample N tasks of each family
    (`spread_sample`) with `suite_seed`. If a run samples a family's tasks (`find_draw`), a range counts only the
    sampled tasks, but a task id can be that of any task. `load`: function that loads a family's tasks.
    """
    require_suite(specs, suite)
    if questions is not None and not any(suite in spec.own.draw for spec in specs.values()):
        raise UserError(f"--questions: no family draws its tasks from the {suite!r} suite; use --limit")
    if limit is not None and limit <= 0:
        raise UserError(f"--limit {limit} leaves no task; give a number above 0")
    if limit is not None and draw is not None:
        raise UserError("--limit takes the first tasks, --draw takes a random sample; give one of the two")
    chosen: dict[str, set[int]] = {}
    tables: dict[str, list[Task]] = {}
    drawn: dict[str, list[int]] = {}

    def table(family: str) -> list[Task]:
        if family not in specs:
            name = family if len(family) <= 80 else f"{family[:77]}..."
            raise UserError(f"unknown family {name!r}{nearest(name, sorted(specs))}")
        if family not in tables:
            tables[family] = whole = load(specs[family], suite, data, suite_seed)
            positions = {task.id: position for position, task in enumerate(whole)}
            draw = find_draw(specs[family], suite, suite_seed, questions)
            drawn[family] = [positions[task.id] for task in draw_tasks(whole, draw)]
        return tables[family]

    for part in selection.split(","):
        item = part.strip()
        if not item:
            raise UserError(f"--tasks {selection!r} has an empty part")
        if item == "all":
            for family in families_of_all(specs, suite):
                table(family)
                chosen.setdefault(family, set()).update(drawn[family])
        elif "=" in item:
            family, _, conditions = item.partition(":")
            several = families_of_all(specs, suite) if family == "all" else [family]
            for each in several:
                whole = table(each)
                own = [whole[position] for position in drawn[each]]
                matching = _filter_positions(family, conditions, own)
                if matching:
                    chosen.setdefault(each, set()).update(drawn[each][position] for position in matching)
        elif "/" in item:
            family = item.split("/")[0]
            matching = [i for i, task in enumerate(table(family)) if item in (task.id, task.name)]
            if not matching:
                known = [task.id for task in table(family)[:500]]
                raise UserError(f"unknown task {item!r}{nearest(item, known)}")
            chosen.setdefault(family, set()).update(matching)
        else:
            family, _, span = item.partition(":")
            if family == "all":
                raise UserError(
                    f"--tasks {item}: a range needs one family; for the first tasks of each: --limit N"
                )
            table(family)
            size = len(drawn[family])
            wanted = _positions(family, span, size) if ":" in item else range(size)
            chosen.setdefault(family, set()).update(drawn[family][position] for position in wanted)
    tasks: dict[str, list[Task]] = {}
    for family in sorted(chosen):
        own = [tables[family][position] for position in sorted(chosen[family])]
        tasks[family] = own[:limit] if draw is None else spread_sample(own, draw, suite_seed)
    if not any(tasks.values()):
        raise UserError(f"--tasks {selection!r} names no task of the {suite!r} suite")
    return {family: own for family, own in tasks.items() if own}
