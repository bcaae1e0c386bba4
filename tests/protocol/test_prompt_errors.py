"""A prompt file that is not usable is reported in one line: the file, and the line in it or the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.base.paths import prompts_folder
from evalharness.envs import specs
from evalharness.protocol.prompt import load_prompt

OURS = (prompts_folder() / "babyai.yaml").read_text()


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (OURS.replace("system:", "sytem:", 1), "'system'?"),
        (OURS.replace("system:", "sytem:", 1), "system: is missing"),
        (OURS.replace("  - thought:", "  - thougt:", 1), "example.steps.0.thought: is missing"),
        (OURS.replace("  goal:", "  goal: [", 1), f"begins in line {line_of(OURS, '  goal:')}"),
        (OURS.replace("example:\n  goal: ", "example:\n  goal: a: ", 1), "needs quotes"),
        (OURS + "\tx: 1\n", f"line {OURS.count(chr(10)) + 1}, column 1"),
        ("just text", "the file"),
        (b"environment: \xff\xfe", "UTF-8"),
    ],
)  # fmt: skip
def test_one_line_names_the_file_and_the_line_or_key(tmp_path: Path, broken: str | bytes, said: str) -> None:
    file = tmp_path / "babyai.yaml"
    file.write_bytes(broken if isinstance(broken, bytes) else broken.encode())
    with pytest.raises(UserError) as refused:
        load_prompt(specs()["babyai"], tmp_path)
    message = str(refused.value)
    assert str(file) in message
    assert said in message
    assert "\n" not in message
