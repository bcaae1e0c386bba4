"""Which vLLM is started: --vllm, $EVALHARNESS_VLLM, the private environment, then PATH."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.base.paths import server_folder
from evalharness.models.serving.find import ServerNotFound, find_server, install_command, server_candidates

from .environments import SCRIPT, make_private

MODULE = ("-m", "vllm.entrypoints.openai.api_server")


def test_the_order_is_option_variable_private_path(
    home: Path, cpu_environment: Path, gpu_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServerNotFound):
        find_server(None)
    monkeypatch.setenv("PATH", f"{gpu_environment / 'bin'}:/usr/bin:/bin")
    assert find_server(None).source == "PATH"
    make_private(cpu_environment)
    assert find_server(None).source == "private environment"
    monkeypatch.setenv("EVALHARNESS_VLLM", str(gpu_environment))
    assert find_server(None).source == "EVALHARNESS_VLLM"
    assert find_server(str(cpu_environment)).source == "--vllm"
    assert [candidate.source for candidate in server_candidates("x")] == [
        "--vllm",
        "EVALHARNESS_VLLM",
        "private environment",
        "PATH",
    ]


@pytest.mark.parametrize("inside", [".", "bin/python", "bin/vllm"])
def test_the_cpu_build_is_started_as_a_module_however_it_is_named(
    home: Path, cpu_environment: Path, inside: str
) -> None:
    command = find_server(str(cpu_environment / inside))
    assert command.kind == "cpu"
    assert command.version == "0.32.0"
    assert command.argv == (str(cpu_environment / "bin" / "python"), *MODULE)
    assert command.model_flag == ("--model",)
    assert command.env == {"VLLM_TARGET_DEVICE": "cpu"}


@pytest.mark.parametrize("inside", [".", "bin/python", "bin/vllm"])
def test_the_gpu_build_is_started_with_vllm_serve(home: Path, gpu_environment: Path, inside: str) -> None:
    command = find_server(str(gpu_environment / inside))
    assert command.kind == "gpu"
    assert command.version == "0.31.0"
    assert command.argv == (str(gpu_environment / "bin" / "vllm"), "serve")
    assert command.model_flag == ()
    assert command.env == {}


def test_a_script_elsewhere_leads_to_its_environment(
    home: Path, cpu_environment: Path, tmp_path: Path
) -> None:
    link = tmp_path / "vllm"
    link.symlink_to(cpu_environment / "bin" / "vllm")
    assert find_server(str(link)).kind == "cpu"
    copy = tmp_path / "copied"
    copy.write_text(SCRIPT.format(python=cpu_environment / "bin" / "python"))
    copy.chmod(0o755)
    assert find_server(str(copy)).version == "0.32.0"


def test_an_executable_of_unknown_make_is_taken_as_vllm_serve(home: Path, tmp_path: Path) -> None:
    wrapper = tmp_path / "vllm-in-a-container"
    wrapper.write_text("#!/bin/sh\nexec true\n")
    wrapper.chmod(0o755)
    command = find_server(str(wrapper))
    assert command.argv == (str(wrapper), "serve")
    assert command.version is None


def test_a_command_name_is_looked_up_on_path(
    home: Path, gpu_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(gpu_environment / "bin"))
    assert find_server("vllm").path == gpu_environment / "bin" / "vllm"


def test_what_was_named_is_never_passed_over(
    home: Path, cpu_environment: Path, bare_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_private(cpu_environment)
    plain = tmp_path / "plain"
    plain.write_text("")
    for named, words in [
        (tmp_path / "nowhere", "no such file"),
        (tmp_path, "not a virtual environment"),
        (plain, "not executable"),
        (bare_environment, "has no vLLM"),
    ]:
        with pytest.raises(ServerNotFound, match=f"^--vllm .*{words}"):
            find_server(str(named))
        monkeypatch.setenv("EVALHARNESS_VLLM", str(named))
        with pytest.raises(ServerNotFound, match=f"^EVALHARNESS_VLLM .*{words}"):
            find_server(None)
        monkeypatch.delenv("EVALHARNESS_VLLM")


def test_not_found_ends_in_the_command_that_installs_it(home: Path) -> None:
    with pytest.raises(ServerNotFound) as caught:
        find_server(None)
    message = str(caught.value)
    assert message.endswith(install_command())
    assert "\n" not in message
    assert isinstance(caught.value, UserError)


def test_without_a_gpu_the_cpu_build_is_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert install_command() == "evalharness server install --cpu"


def test_an_interrupted_installation_is_not_found(home: Path) -> None:
    (server_folder() / "env-half").mkdir(parents=True)
    private = server_candidates()[2]
    assert private.command is None
    assert private.problem is not None
    assert "interrupted" in private.problem
