"""Texts of other groups' protocols: read as data, kept with hash and licence, refused where they are others."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_protocols import FIRST, verl_checkout

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.protocols.importer import import_texts, importable
from evalharness.protocols.texts import all_imported, read_imported_texts


def test_texts_are_read_as_data_and_kept_with_hash_and_licence(clean_home: Path, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    checkout = verl_checkout(tmp_path / "theirs", more=f"open({str(trap)!r}, 'w').close()")
    brought = import_texts("verl-agent", checkout)
    assert not trap.exists()
    kept = all_imported("verl-agent")
    assert kept is not None
    assert read_imported_texts("verl-agent", "alfworld").texts["first"] == FIRST
    assert list(kept["sources"]) == ["agent_system/environments/prompts/alfworld.py"]
    assert (kept["licence"], (brought.path.parent / "LICENSE").read_text()) == (
        "Some License", "Some License\nAll of it."
    )  # fmt: skip
    brought.path.write_text(brought.path.read_text().replace("You are at", "Cheat at"))
    with pytest.raises(UserError, match="changed after the import"):
        read_imported_texts("verl-agent", "alfworld")


def test_without_them_an_error_names_the_command(
    clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=r"evalharness data protocols import tales PATH.*--own-words"):
        read_imported_texts("tales", "alfworld")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"ALFWORLD_TEMPLATE_NO_HIS = 3",
        b"ALFWORLD_TEMPLATE_NO_HIS = 'no slots'\nALFWORLD_TEMPLATE = 'none'",
        b"ALFWORLD_TEMPLATE_NO_HIS = f'{__import__(\"os\")}'\nALFWORLD_TEMPLATE = 'x'",
        b"ALFWORLD_TEMPLATE_NO_HIS = (" * 500,
        b"\xff\xfe\x00",
        b"x = " + b"[" * 200_000,
        b"A" * (2 << 20),
    ],
    ids=["empty", "number", "slots", "f-string", "open", "bytes", "deep", "large"],
)
def test_a_checkout_with_other_contents_is_refused(content: bytes, clean_home: Path, tmp_path: Path) -> None:
    checkout = verl_checkout(tmp_path / "theirs")
    (checkout / "agent_system" / "environments" / "prompts" / "alfworld.py").write_bytes(content)
    with pytest.raises(UserError, match="protocol import") as error:
        import_texts("verl-agent", checkout)
    assert len(str(error.value)) < 2000
    assert all_imported("verl-agent") is None


@pytest.mark.parametrize("name", sorted(importable()))
def test_a_folder_that_is_no_checkout_is_refused(
    name: str, clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "protocols", "import", name, str(tmp_path)]) == 2
    assert importable()[name].repository in capsys.readouterr().err
    assert main(["data", "protocols", "import", name, str(tmp_path / "none")]) == 2
    assert str(tmp_path / "none") in capsys.readouterr().err


def test_a_protocol_without_texts_of_others_is_not_imported(
    clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "protocols", "import", "agentrefine", "."]) == 2
    assert "agentrefine" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        "",
        "conversation_start_dict = {ActionFormat.REACT: (A(3), A(4))}",
        "conversation_start_dict = {ActionFormat.REACT: (A({'x': 1}), A({'value': 'a'}))}",
        "conversation_start_dict = {ActionFormat.REACT: (A(), A())}",
        "conversation_start_dict = {ActionFormat.REACT: (A({'value': f'{g(1)}'}), A({'value': 'a'}))}",
        "conversation_start = (A({'value': 'a'}), A({'value': open('x')}))",
        "valid_functions_args = {'go': 3}",
    ],
)
def test_a_damaged_checkout_of_agentgym_is_refused(content: str, clean_home: Path, tmp_path: Path) -> None:
    envs = tmp_path / "agentenv" / "agentenv" / "envs"
    envs.mkdir(parents=True)
    for name in ("alfworld", "babyai", "sciworld"):
        (envs / f"{name}.py").write_text(content)
    with pytest.raises(UserError, match="texts of agentgym"):
        import_texts("agentgym", tmp_path)
