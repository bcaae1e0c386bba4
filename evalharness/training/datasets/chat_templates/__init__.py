"""Chat templates for base models, written from the documented formats. Choose the template that fits a model."""

from __future__ import annotations

from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.reading import read_known
from evalharness.models.serving.checkpoint import CheckpointInfo

NAMES = ("llama3", "mistral", "chatml")
_NEEDED = {"llama3": "<|eot_id|>", "mistral": "[INST]", "chatml": "<|im_end|>"}
"""Template -> a token that is in every vocabulary made for this template."""


def find_template(name: str) -> Path:
    """Return the file of the template with this name; `name` may also be a file. Raises UserError."""
    if name in NAMES:
        return Path(__file__).with_name(f"{name}.jinja")
    path = Path(name).expanduser()
    if not path.is_file():
        raise UserError(f"--chat-template {name}: choose one of {', '.join(NAMES)}, or a file")
    return path.absolute()


def read_template(file: Path, model: Path) -> str:
    """Return the template's text. The text of Mistral's template depends on the version of the model's vocabulary."""
    text = file.read_text(encoding="utf-8")
    if file != find_template("mistral"):
        return text
    version, blank = _read_mistral_version(model)
    return text.replace("version, blank = 'v3', ' '", f"version, blank = '{version}', '{blank}'")


def _read_mistral_version(folder: Path) -> tuple[str, str]:
    """Return Mistral's template version and the text between a control token and the message: a blank or nothing."""
    data, tokens = read_known(folder / "tokenizer.json"), _read_added_tokens(folder)
    if "ByteLevel" in str(data.get("decoder")):  # a tekken vocabulary has the tokens of all template versions
        config = read_known(folder / "tekken.json").get("config")
        stated = str(config.get("version", "")) if isinstance(config, dict) else ""
        return "v3" if stated in ("", "v3") else "v7", ""
    blank = "" if "Prepend" in str(data.get("normalizer")) else " "
    return "v1" if "[INST]" not in tokens else "v7" if "[SYSTEM_PROMPT]" in tokens else "v3", blank


def choose_template(base: CheckpointInfo) -> str:
    """Return the name of the template for which the base model's vocabulary was made. Raises UserError if there is
    none."""
    tokens = _read_added_tokens(base.path)
    for name in NAMES:
        if _NEEDED[name] in tokens:
            return name
    if base.architecture.startswith("Mistral"):
        return "mistral"
    raise UserError(
        f"{base.path} has no chat template, and its vocabulary fits none of ours; choose one with --chat-template "
        f"{'|'.join(NAMES)}|FILE"
    )


def _read_added_tokens(folder: Path) -> set[str]:
    contents: set[str] = set()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        data = read_known(folder / name)
        for entries in (data.get("added_tokens"), data.get("added_tokens_decoder")):
            rows = entries.values() if isinstance(entries, dict) else entries or ()
            contents.update(row["content"] for row in rows if isinstance(row, dict) and "content" in row)
    return contents
