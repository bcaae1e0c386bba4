"""Write a data set in the format of a training library, with a configuration file for this library and counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError, system_errors
from evalharness.base.paths import replacing
from evalharness.base.reading import sha256_of
from evalharness.base.version import __version__
from evalharness.training.datasets import formats
from evalharness.training.datasets.conversation import BrokenLine, Conversation, describe_empty, read_data
from evalharness.training.datasets.modes import Mode
from evalharness.training.datasets.tokens import TokenCounts, tokenize, write_parquet

TOKENS = "tokens"
MANIFEST = "export.json"


@dataclass
class ExportResult:
    files: list[Path] = field(default_factory=list)
    conversations: int = 0
    """Number of conversations that were read."""
    records: int = 0
    """Number of records that were written."""
    trained_turns: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    broken_lines: int = 0
    tokens: TokenCounts | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "files": [path.name for path in self.files],
            "left_out": dict(sorted(self.left_out.items())),
            "tokens": None if self.tokens is None else self.tokens.to_json(),
        }


def export(
    sources: Sequence[Path],
    name: str,
    mode: Mode,
    folder: Path,
    *,
    model: Path | None = None,
    template: str | None = None,
    max_length: int = 0,
    python: Path | None = None,
    broken: dict[Path, list[BrokenLine]] | None = None,
    on_line: Callable[[str], None] = lambda line: None,
) -> ExportResult:
    """Write `sources` in the format `name` into `folder`. Broken lines are left out and go to `broken`. Raises
    UserError."""
    if name == TOKENS and model is None:
        raise UserError("--format tokens needs --model DIR, a checkpoint folder with a chat template")
    result = ExportResult()
    lines: dict[Path, list[BrokenLine]] = {} if broken is None else broken
    chosen = formats.select_trainable(_read_sources(sources, result, lines), mode, result.left_out)
    path = folder / ("train.parquet" if name == TOKENS else "train.jsonl")
    with system_errors(f"cannot write to {folder}", "; choose another with -o DIR"):
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as part:
            if name != TOKENS:
                _write_lines(part, chosen, name, result)
            else:
                assert model is not None
                counts = result.tokens = TokenCounts()
                rows = tokenize(
                    chosen, model, counts,
                    max_length=max_length, template=template, python=python, on_line=on_line,
                )  # fmt: skip
                write_parquet(part, rows)
                result.records, result.trained_turns = counts.conversations, counts.trained_turns
            if not result.conversations:
                raise describe_empty(sources[0], lines.get(sources[0], []))
        result.files.append(path)
        if name in formats.BESIDE:
            file, text = formats.BESIDE[name]
            (folder / file).write_text(text, encoding="ascii")
            result.files.append(folder / file)
        result.broken_lines = sum(map(len, lines.values()))
        _write_manifest(folder, sources, name, mode, result)
    return result


def _read_sources(
    sources: Iterable[Path], result: ExportResult, broken: dict[Path, list[BrokenLine]]
) -> Iterator[Conversation]:
    for path in sources:
        for conversation in read_data(path, broken.setdefault(path, [])):
            result.conversations += 1
            yield conversation


def _write_lines(path: Path, conversations: Iterable[Conversation], name: str, result: ExportResult) -> None:
    with path.open("w", encoding="ascii") as file:
        for conversation in conversations:
            result.trained_turns += sum(message.trained for message in conversation.messages)
            result.records += 1
            file.write(json.dumps(formats.FORMATS[name](conversation), ensure_ascii=True) + "\n")


def _write_manifest(
    folder: Path, sources: Sequence[Path], name: str, mode: Mode, result: ExportResult
) -> None:
    digests = {f"{number}/{path.name}": sha256_of(path) for number, path in enumerate(sources, 1)}
    written = sha256_of(result.files[0])
    text = json.dumps(
        {
            "format": name,
            "mode": mode,
            "sources_sha256": digests,
            "sha256": written,
            "evalharness": __version__,
            "counts": result.to_json(),
        },
        indent=2,
        sort_keys=True,
    )
    (folder / MANIFEST).write_text(text + "\n", encoding="ascii")
