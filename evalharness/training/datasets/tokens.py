"""Convert a data set to token ids and labels with the model's chat template. `make_tokens.py` does this, run by the
Python of the model server's environment."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.stream import ToolError, run_streaming
from evalharness.models.serving.find import server_python
from evalharness.training.datasets import formats
from evalharness.training.datasets.chat_templates import find_template, read_template
from evalharness.training.datasets.conversation import Conversation, JsonCounts

IGNORED = -100
"""The label of a token that is not trained."""
_SCRIPT = Path(__file__).with_name("make_tokens.py")


@dataclass(frozen=True)
class Tokens:
    """Token ids and labels of one conversation."""

    number: int
    """Number of the conversation, from 0. Ids can repeat in joined data sets."""
    id: str
    input_ids: list[int]
    labels: list[int]
    """The token's id if the token is trained, otherwise `IGNORED`."""
    trained_turns: int

    @property
    def trained_tokens(self) -> int:
        return sum(label >= 0 for label in self.labels)


@dataclass
class TokenCounts(JsonCounts):
    conversations: int = 0
    tokens: int = 0
    trained_tokens: int = 0
    trained_turns: int = 0
    ended_turns: int = 0
    """Trained turns whose end-of-turn token is trained."""
    cut_turns: int = 0
    """Turns that the length limit cut off."""
    end_ids: set[int] = field(default_factory=set)
    """End-of-turn tokens that are trained."""
    special_texts: Counter[str] = field(default_factory=Counter)
    """Special token that occurs in a message's text (encoded as ordinary text) -> number of occurrences."""
    refused: Counter[str] = field(default_factory=Counter)

    def lines(self) -> list[str]:
        tokens = ", ".join(f"{name!r} {count:,}" for name, count in sorted(self.special_texts.items()))
        return [f"special tokens in texts, encoded as text: {tokens}"] if tokens else []


def tokenize(
    conversations: Iterable[Conversation],
    model: Path,
    counts: TokenCounts,
    *,
    max_length: int = 0,
    template: str | None = None,
    python: Path | None = None,
    on_line: Callable[[str], None] = lambda line: None,
) -> Iterator[Tokens]:
    """Yield token ids and labels of each conversation. Refused conversations are counted in `counts`.

    `model` is a checkpoint folder; `python` is an interpreter with transformers (default: the server environment's).
    `template` is the name or file of a chat template that replaces the model's own. A conversation with more than
    `max_length` tokens ends with its last complete turn that fits (0: no limit). Raises UserError.
    """
    if not (model / "tokenizer_config.json").is_file():
        raise UserError(
            f"--model {model} is not a checkpoint folder with a tokenizer: it has no tokenizer_config.json"
        )
    chosen = None if template is None else find_template(template)
    interpreter = python or server_python("tokens are made")
    with tempfile.TemporaryDirectory(prefix="evalharness-tokens-") as name:
        source, target = Path(name, "in.jsonl"), Path(name, "out.jsonl")
        with source.open("w", encoding="ascii") as file:
            for conversation in conversations:
                file.write(json.dumps(formats.messages(formats.trim(conversation))) + "\n")
        try:
            template_paths = []
            if chosen is not None:
                template_paths = [Path(name, "template.jinja")]
                template_paths[0].write_text(read_template(chosen, model), encoding="utf-8")
            run_streaming(
                [interpreter, "-I", _SCRIPT, model, source, target, str(max_length), *template_paths], on_line
            )
        except ToolError as failed:
            raise UserError(f"the tokens could not be made: {failed.reason[:500]}") from None
        with target.open(encoding="ascii") as file:
            for number, line in enumerate(file):
                tokens = _read(number, json.loads(line), counts)
                if tokens is not None:
                    yield tokens


def _read(number: int, row: dict[str, Any], counts: TokenCounts) -> Tokens | None:
    if "refused" in row:
        counts.refused[row["refused"]] += 1
        return None
    ids = row["input_ids"]
    labels = [IGNORED] * len(ids)
    for first, stop in row["spans"]:
        labels[first:stop] = ids[first:stop]
    counts.conversations += 1
    counts.tokens += len(ids)
    counts.trained_tokens += sum(stop - first for first, stop in row["spans"])
    counts.trained_turns += len(row["spans"])
    counts.ended_turns += row["ended"]
    counts.end_ids.update(row["end_ids"])
    counts.cut_turns += row["cut"]
    counts.special_texts.update(row["special_texts"])
    return Tokens(number, row["id"], ids, labels, len(row["spans"]))


def write_parquet(path: Path, rows: Iterable[Tokens]) -> None:
    """Write a row for each conversation with the columns `id`, `input_ids`, `labels`, `trained_turns`."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [
            ("id", pyarrow.string()),
            ("input_ids", pyarrow.list_(pyarrow.int32())),
            ("labels", pyarrow.list_(pyarrow.int32())),
            ("trained_turns", pyarrow.int32()),
        ]
    )
    left = iter(rows)
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        while batch := [vars(row) for row in islice(left, 512)]:
            writer.write_table(pyarrow.Table.from_pylist(batch, schema))
