"""The tokens of a run (`record_tokens: true`): what the model was given and what it gave, as the server numbers them.

Text cannot be turned back into them: a tokenizer may split the same text in another way than the model did. A line of
`tokens.jsonl` is an episode, written before the episode's own line; of each prompt it holds what follows the part that
is equal to the prompt and completion before; null stands for a turn whose tokens the server did not return.
`tokens.parquet`, made at the end, has a row for each turn whose tokens are known, and everything whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.reading import open_file, read_object
from evalharness.records.lines import located_lines

TOKENS = "tokens.jsonl"
TABLE = "tokens.parquet"


@dataclass(frozen=True)
class TurnTokens:
    """Token ids of one turn, and the natural logarithm of each generated token's probability."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    logprobs: tuple[float, ...]
    """One for each token of `completion`."""


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """How many token ids two prompts have in common at their beginning."""
    return sum(
        1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    )


def pack(task_id: str, sample: int, turns: Sequence[TurnTokens | None]) -> dict[str, Any]:
    """An episode's tokens as JSON data."""
    packed: list[Any] = []
    before: tuple[int, ...] = ()
    for turn in turns:
        if turn is None:
            packed.append(None)
            continue
        same = common_prefix(before, turn.prompt)
        packed.append(
            [same, turn.prompt[same:], turn.completion, [round(value, 6) for value in turn.logprobs]]
        )
        before = turn.prompt + turn.completion
    return {"task_id": task_id, "sample": sample, "turns": packed}


def unpack(line: Mapping[str, Any]) -> Iterator[TurnTokens | None]:
    """Raises ValueError, TypeError or KeyError where `line` is none of `pack`."""
    before = tuple[int, ...]()
    for packed in line["turns"]:
        if packed is None:
            yield None
            continue
        same, rest, completion, logprobs = packed
        if not 0 <= same <= len(before) or len(completion) != len(logprobs):
            raise ValueError("its parts do not fit together")
        turn = TurnTokens(
            (*before[:same], *map(int, rest)), tuple(map(int, completion)), tuple(map(float, logprobs))
        )
        yield turn
        before = turn.prompt + turn.completion


class StoredTokens:
    """The recorded tokens of a run, found by episode: of one that was begun twice the later line counts.

    Raises UserError where `tokens.jsonl` is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / TOKENS
        self.offsets: dict[tuple[str, int], int] = {}
        for _, offset, line in located_lines(self.path, "its episode stays without tokens", read_object):
            try:
                self.offsets[line["task_id"], line["sample"]] = offset
            except (KeyError, TypeError) as error:
                raise UserError(f"{self.path} holds a line of another kind: {error}") from None

    def of(self, task_id: str, sample: int) -> list[TurnTokens | None]:
        """Each turn's tokens, or None; empty where nothing of the episode was recorded."""
        offset = self.offsets.get((task_id, sample))
        if offset is None:
            return []
        with open_file(self.path) as file:
            file.seek(offset)
            try:
                return list(unpack(read_object(file.readline())))
            except (ValueError, KeyError, TypeError) as error:
                raise UserError(f"{self.path} is damaged ({error})") from None
