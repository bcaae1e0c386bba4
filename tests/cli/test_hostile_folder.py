"""A current folder that holds `envs/`, `random.py`, `numpy.py` and the like, and a PYTHONPATH with another repository's
`envs/`, `prompts/`, `tests/`, `results/`: everything works, nothing of it is run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession
from command_line import EXAMPLE, run_compass
from empty_checkpoint import make_empty_checkpoint
from env_server import COMPASS, connect, serving
from fake_vllm import make_fake_vllm, set_skill
from hostile_folder import HostileFolder, before, make_foreign_repository, make_hostile_folder
from refine_conversations import clean_conversation, erring_conversation

from evalharness.training.datasets.conversation import write_data

pytestmark = pytest.mark.slow


@pytest.fixture
def here(tmp_path: Path) -> Iterator[HostileFolder]:
    folder = make_hostile_folder(tmp_path / "here")
    yield folder
    assert folder.executed() == {}


@pytest.fixture
def environment(environment: dict[str, str], here: HostileFolder, tmp_path: Path) -> dict[str, str]:
    return before(make_foreign_repository(tmp_path / "repository", here.marks), environment)


def test_a_run_plays_the_installed_families_and_one_on_the_users_own_path(
    here: HostileFolder, environment: dict[str, str]
) -> None:
    """Compass, a third party's package, is found through PYTHONPATH. The run goes into the foreign `results/`."""
    done = here.command(
        environment, "run", "--model", "oracle", "--suite", "open", "--tasks", "compass:0,pddl:0"
    )
    assert done.returncode == 0, done.stderr
    (run,) = (path.parent for path in here.path.glob("results/*/summary.json"))
    shown = here.command(environment, "show", run, "--json", "-")
    assert shown.returncode == 0, shown.stderr
    families = json.loads(shown.stdout)["families"]
    assert {family: found["success_rate"] for family, found in families.items()} == {"compass": 1, "pddl": 1}
    listed = here.command(environment, "show", "--json", "-")
    assert [Path(found["folder"]).name for found in json.loads(listed.stdout)["runs"]] == [run.name]


def test_python_m_is_as_good_as_the_command(tmp_path: Path, environment: dict[str, str]) -> None:
    """But for what Python itself imports before any package of ours is asked."""
    here = make_hostile_folder(tmp_path, without=("evalharness", "sitecustomize", "types", "usercustomize"))
    done = subprocess.run(
        [sys.executable, "-m", "evalharness", "run", "--model", "oracle", "--suite", "open", "--tasks", "compass:0",
         "-o", "run"],
        cwd=here.path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert here.executed() == {}


def test_the_doctor_plays_every_family(here: HostileFolder, environment: dict[str, str]) -> None:
    """ScienceWorld starts a process of Python, too: the one that rehearses for its archive."""
    done = here.command(environment, "doctor", "--json", "found.json")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_server_is_started_for_a_run(
    here: HostileFolder, environment: dict[str, str], tmp_path: Path
) -> None:
    program = make_fake_vllm(tmp_path / "bin")
    own = {**environment, "FAKE_VLLM_LOG": str(tmp_path / "starts"), "EVALHARNESS_VLLM": str(program)}
    model = set_skill(make_empty_checkpoint(tmp_path / "model"), "north east")
    words = ("--suite", "open", "--tasks", "compass:0", "--max-turns", 2, "-o", "run")
    done = here.command(own, "run", "--model", model, *words)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "starts").read_text() == "start model\n"


def test_a_suite_is_built_and_a_family_teaches(here: HostileFolder, environment: dict[str, str]) -> None:
    """What `refine grounded` is to teach from lies in a suite that it has built in a process of its own."""
    built = here.command(environment, "data", "suite", "build", "--suite-seed", 3, "--tasks", "jericho")
    assert built.returncode == 0, built.stderr
    taught = here.command(
        environment,
        "refine",
        "grounded",
        "--tasks",
        "jericho",
        "-n",
        1,
        "--suite-seed",
        4,
        "-o",
        "data.jsonl",
    )
    assert taught.returncode == 0, taught.stderr
    assert (here.path / "data.jsonl").read_text()


async def test_environments_are_served(here: HostileFolder, environment: dict[str, str]) -> None:
    with serving(environment, *COMPASS, folder=here.path) as server:
        async with ClientSession() as client:
            talk = await connect(client, server.url)
            opening = await talk.reset(index=0)
            assert "You face" in json.dumps(opening)
            await talk.socket.close()


@pytest.mark.vllm
def test_a_training_comes_as_far_as_its_libraries(
    here: HostileFolder,
    environment: dict[str, str],
    tmp_path: Path,
    server_python: Path,
    tiny_checkpoint: Path,
) -> None:
    """The server's Python stands for that of a training environment; it has no trl, and the folder's is not taken."""
    data = tmp_path / "data.jsonl"
    write_data(data, [erring_conversation("a"), clean_conversation("b")], {})
    home = Path(environment["EVALHARNESS_HOME"])
    programs = home / "tune" / "env-1" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(server_python)
    (programs.parent / "pyvenv.cfg").write_text((server_python.parents[1] / "pyvenv.cfg").read_text())
    versions = {
        "trl": "1",
        "peft": "1",
        "datasets": "1",
        "transformers": "1",
        "accelerate": "1",
        "torch": "1",
    }
    record = {
        "environment": "env-1",
        "server": str(server_python),
        "versions": versions,
        "installed_at": "",
        "seconds": 1,
    }
    (home / "tune" / "tune.json").write_text(json.dumps(record))
    own = {**environment, "EVALHARNESS_VLLM": str(server_python)}
    done = here.command(
        own, "tune", "--model", tiny_checkpoint, "--data", data, "-o", "tuned", "--cpu", "--max-steps", 1
    )
    assert done.returncode == 3, done.stderr
    assert "No module named" in (here.path / "tuned" / "tune.log").read_text(), done.stderr


def broken_compass(folder: Path, line: str) -> str:
    """PYTHONPATH with a Compass that begins with this line in a worker."""
    for name in ("compass", "compass-1.0.dist-info"):
        (folder / name).mkdir(parents=True)
        for file in (EXAMPLE / name).iterdir():
            if file.is_file():
                (folder / name / file.name).write_bytes(file.read_bytes())
    own = folder / "compass" / "__init__.py"
    here = f'import sys\nif "evalharness.play.workers.child" in sys.orig_argv:\n    {line}\n'
    own.write_text(own.read_text().replace("from pathlib", here + "from pathlib", 1))
    return str(folder)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import a_library_that_is_not_here", "a_library_that_is_not_here"),
        ("sys.exit('the licence has run out')", "the licence has run out"),
        ("sys.modules['compass.adapter'] = None", "import of compass.adapter halted"),
    ],
    ids=["imports", "exits", "is not made"],
)
def test_workers_that_cannot_start_end_the_run_at_once_with_the_reason(
    environment: dict[str, str], tmp_path: Path, line: str, said: str
) -> None:
    own = {**environment, "PYTHONPATH": broken_compass(tmp_path / "broken", line)}
    done = run_compass(
        own, tmp_path / "run", "--model", "random", "--workers", "compass=1", "--concurrency", 1
    )
    assert done.returncode == 3
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len((tmp_path / "run" / "errors.jsonl").read_text().splitlines()) == 1, "no other episode is tried"
    again = run_compass(
        environment, tmp_path / "run", "--model", "random", "--workers", "compass=1", "--concurrency", 1
    )
    assert again.returncode == 0, again.stderr
