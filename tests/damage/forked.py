"""Inputs one after the other, each in a process of its own that is forked from one with everything imported.

`python -m tests.damage.forked PLACE SEED FIRST LAST`: a JSON line an input. A process that computes without end is
stopped by its limit of CPU time, one that waits for ever by a far limit of time, one that takes memory without end by
its limit of address space: none of the three depends on how fast the machine is.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from random import Random

import evalharness
from tests.damage.mutations import damage
from tests.damage.readers import READERS, make_inputs, prepare_environment

CPU_S = 40
WAIT_S = float(os.environ.get("EVALHARNESS_TEST_WAIT", "120"))
MEMORY = 3 << 30
"""Beyond what the process has when it begins."""
_APART = (
    "evalharness.training.tune.trainer",
    "evalharness.rl.clients",
    "evalharness.models.serving.demo",
    "evalharness.training.datasets.make_tokens",
    "evalharness.play.workers.child",
    "evalharness.__main__",
)
ALLOWED = (0, 1, 2, 3)


def _import_everything() -> None:
    for module in pkgutil.walk_packages(evalharness.__path__, "evalharness."):
        if not module.name.startswith(_APART):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    for name in ("rich.live", "rich.progress", "scipy.stats", "matplotlib.pyplot", "sklearn.manifold"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _matching(place: Path, patterns: tuple[str, ...]) -> list[str]:
    found = [
        sorted(str(path.relative_to(place)) for path in place.glob(pattern) if path.is_file())
        for pattern in patterns
    ]
    return [path for each in found for path in each]


def _limited() -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _child(name: str, place: Path) -> None:
    """As `python -m evalharness` would: status, and what is said on standard error."""
    os.setsid()
    os.chdir(place)
    for number, file in ((0, os.devnull), (1, place / ".out"), (2, place / ".err")):
        opened = os.open(file, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    faulthandler.enable(file=2)
    faulthandler.register(signal.SIGUSR1, file=2)
    _limited()
    from evalharness.base.errors import EvalharnessError

    status: object = 1
    try:
        status = READERS[name].run()
        sys.stdout.flush()
    except EvalharnessError as error:  # as the command line shows it
        print(f"evalharness: {error}", file=sys.stderr)
        status = 2
    except SystemExit as end:
        status = end.code
    except BaseException:
        import traceback

        traceback.print_exc()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


def _wait(pid: int) -> tuple[int | None, float]:
    """(exit status, None where it had to be ended; seconds)."""
    began = time.monotonic()
    watched = os.pidfd_open(pid)
    ended, _, _ = select.select([watched], [], [], WAIT_S)
    os.close(watched)
    if not ended:
        os.kill(pid, signal.SIGUSR1)  # the stack, into its standard error
        time.sleep(0.5)
        os.killpg(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what it started
    return (status if ended else None), time.monotonic() - began


def problem(status: int | None, said: str) -> str | None:
    """What is wrong with how a command ended; None where nothing is."""
    if status is None:
        return "hang"
    if "usage: " in said:
        return "usage"  # the reader's own arguments are wrong: nothing was read
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "endless"
    if "MemoryError" in said or "Unable to allocate" in said:
        return "memory"
    if "Traceback" in said or "Fatal Python error" in said or status not in ALLOWED:
        return "traceback"
    lines = [line for line in said.splitlines() if not line.startswith("evalharness: warning")]
    if status == 2 and not any(line.startswith("evalharness") and len(line) > 30 for line in lines):
        return "silent"
    return "long" if len(said) > 12_000 else None


def main(place: Path, seed: str, first: int, last: int) -> None:
    """Inputs `first` to `last`: each is a function of the seed and its number alone."""
    place.mkdir(parents=True, exist_ok=True)
    prepare_environment(place)
    _import_everything()
    whole, work = place / "whole", place / "work"
    whole.mkdir()
    os.chdir(whole)
    pid = os.fork()  # what it starts threads for is not in the process that forks
    if pid == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        status = 1
        try:
            make_inputs(whole)
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        os._exit(status)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
        sys.exit("the inputs could not be made")
    gc.freeze()
    names = list(READERS)
    weights = [0.1 if READERS[name].slow else 1.0 for name in names]  # those take ten times as long
    for number in range(first, last):
        draw = Random(f"{seed}/{number}")
        [name] = draw.choices(names, weights)
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(whole, work)
        done = []
        for _ in range(draw.choice((1, 1, 1, 2, 4))):
            if files := _matching(work, READERS[name].files):
                file = draw.choice(files)
                done.append(f"{file}: {damage(draw, work / file)}")
        pid = os.fork()
        if pid == 0:
            _child(name, work)
        status, seconds = _wait(pid)
        said = (work / ".err").read_text(encoding="utf-8", errors="replace")
        wrong = problem(status, said)
        line: dict[str, object] = {
            "input": number,
            "reader": name,
            "damage": done,
            "status": status,
            "problem": wrong,
        }
        print(json.dumps({**line, "seconds": round(seconds, 3), "said": said[-3000:]}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
