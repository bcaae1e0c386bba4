"""Fixtures: the published data (imported by the product itself), the recorded transcripts, an empty home.

The published data is not part of the project. Tests look for it in `EVALHARNESS_TEST_DATA`, or in `shared/data`
beside the checkout: a folder that holds `agentboard/` and `golden/`. Tests that need it carry the mark `data` and
are skipped where it is absent; but on CI (`CI` set) a skipped data test fails the session if the data is there.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import surroundings
from hypothesis import HealthCheck, settings
from made_once import made_once
from tiny_model import make_tiny_checkpoint

from evalharness.base.paths import server_folder
from evalharness.cli import main
from evalharness.models.serving.private import read_install
from evalharness.training.tune.install import TuneInstall, install_tune, read_tune_install

# Images for containers often forbid Python to keep what it has compiled. Each of the thousand commands that are started
# here would compile everything anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A busy machine is slow at drawing, too, which says nothing of what is tested.
settings.register_profile(
    "ours",
    deadline=None,
    max_examples=int(os.environ.get("EVALHARNESS_TEST_EXAMPLES", "20")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ours")

# Threads that wait for their next sum keep a core busy by default: good for one server on a machine of its own, not for
# two beside other tests. Replies are the same.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# GiB of KV cache. A tiny model needs none of the four that a machine of this size gives it.
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")

for _number in (signal.SIGINT, signal.SIGHUP):
    # Under `nohup`, or in the background of a script, they arrive ignored, and what is started here would inherit
    # that. A handler is not inherited: children begin as in a terminal, and this process still does not end.
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)


def _source() -> tuple[Path, bool]:
    """(where the published data is looked for, whether it is there)"""
    named = os.environ.get("EVALHARNESS_TEST_DATA")
    source = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    return source, (source / "agentboard").is_dir()


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalharness.base.redaction._known", {})


@pytest.fixture(scope="session")
def data_source() -> Path:
    """The folder with the raw published data, as its owner keeps it."""
    source, there = _source()
    if not there:
        pytest.skip(f"no published data at {source}; name its folder in EVALHARNESS_TEST_DATA")
    return source


@pytest.fixture(scope="session")
def published_data(data_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with all of the published data, put there by `evalharness data import`."""

    def make(folder: Path) -> None:
        assert main(["data", "import", str(data_source), "--data", str(folder)]) == 0
        assert main(["data", "verify", "--data", str(folder)]) == 0

    return made_once(tmp_path_factory, "published", make)


@pytest.fixture(scope="session")
def golden_dir(data_source: Path) -> Path:
    """The transcripts recorded from the original environments."""
    golden = data_source / "golden"
    if not golden.is_dir():
        pytest.skip(f"no recorded transcripts at {golden}")
    return golden


@pytest.fixture(scope="session")
def server_python() -> Path:
    """Python of the private environment. Skips without one, but fails where CI promises it."""
    install = read_install(server_folder())
    if install is None:
        reason = "no private vLLM; install it with: evalharness server install --cpu"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return install.executable


@pytest.fixture(scope="session")
def tuning(server_python: Path) -> TuneInstall:
    """The training environment. Skips without one; on CI it is made, in the user's own place."""
    install = read_tune_install()
    if install is None or install.server != server_python:
        if not os.environ.get("CI"):
            pytest.skip("no training environment; install it with: evalharness tune install")
        install = install_tune(on_line=lambda line: None)
    return install


@pytest.fixture(scope="session")
def tiny_checkpoint(server_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with 4,096 positions."""
    return made_once(tmp_path_factory, "tiny", lambda folder: make_tiny_checkpoint(folder, server_python))


@pytest.fixture
def clean_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home for everything that the harness keeps; no variable of ours is set."""
    home = tmp_path / "home"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith(("EVALHARNESS_", "XDG_", "HF_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("EVALHARNESS_HOME", str(home / "evalharness"))
    return home


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables for a command in a process of its own: an empty home, the Compass environment installed."""
    return surroundings(tmp_path)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # pytest-xdist: files in the order of the next function


@pytest.hookimpl(tryfirst=True)  # before `-m` leaves tests out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves to `make rest`.

    A test with the variables of commands starts commands: a second or more for each. Files that take long come first,
    so that no process is left alone with the longest one.
    """
    for item in items:
        if "environment" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("property")
        if any(map(item.get_closest_marker, _ONE)) and not item.get_closest_marker("smoke"):
            item.add_marker("long")
    if "PYTEST_XDIST_WORKER" in os.environ:
        seconds = _seconds(items)
        items.sort(key=lambda item: -seconds[item.path])  # stable: the tests of a file stay in their order


def _seconds(items: list[pytest.Item]) -> Counter[Path]:
    """What each file takes on CI, roughly. A mark with a number counts once for all tests that it stands over: those
    of a file in `pytestmark`, the cases of a function. Of those without one each test has its share of `_ONE`."""
    seconds: Counter[Path] = Counter()
    counted: set[int] = set()
    for item in items:
        stated = next((mark for mark in item.iter_markers() if mark.name in _ONE and mark.args), None)
        if stated is None:
            seconds[item.path] += max(
                (each for mark, each in _ONE.items() if item.get_closest_marker(mark)), default=0
            )
        elif id(stated) not in counted:
            counted.add(id(stated))
            seconds[item.path] += stated.args[0]
    return seconds


_ONE = {"vllm": 20, "faults": 10, "slow": 3}
"""Seconds of a test with that mark and without a number."""


_skipped_data_tests: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.get_closest_marker("data"):
        report.user_properties.append(("skipped data test", True))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # On the controller under pytest-xdist too, where no item is at hand: hence the property.
    if report.skipped and ("skipped data test", True) in map(tuple, report.user_properties):
        _skipped_data_tests.append(report.nodeid)


def _data_was_ignored() -> bool:
    return bool(os.environ.get("CI")) and _source()[1] and bool(_skipped_data_tests)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _data_was_ignored() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


_FOLDERS = 2
"""Parts of a path that name a folder in the sums of seconds: tests/models."""


def _print_durations(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the seconds by folder; write those of each test into build/durations.txt."""
    seconds: Counter[str] = Counter()
    for report in (each for kind in terminalreporter.stats.values() for each in kind):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid] += report.duration
    folders: Counter[str] = Counter()
    for nodeid, each in seconds.items():
        folders["/".join(nodeid.partition("::")[0].split("/")[:_FOLDERS])] += each
    file = config.rootpath / "build" / "durations.txt"
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{each:8.2f} {nodeid}\n" for nodeid, each in seconds.most_common()))
    terminalreporter.section(f"seconds by folder (by test: {file})")
    for folder, each in folders.most_common():
        terminalreporter.line(f"{each:8.1f} {folder}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if os.environ.get("CI"):
        _print_durations(terminalreporter, config)
    if _data_was_ignored():
        terminalreporter.section("data tests were skipped", red=True)
        terminalreporter.line(
            f"The published data is there ({_source()[0]}), so on CI no data test may be skipped, but these were:"
        )
        for nodeid in _skipped_data_tests:
            terminalreporter.line(f"  {nodeid}")
