"""Damage to one file: by a disk, by an editor, by an enemy. A function of the random numbers it is given."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

DEEP = 5000
HUGE = "9" * 400
"""Of digits: an integer that no float can hold."""


class _Raw(str):
    """JSON text that is written as it is."""


NUMBERS: list[Any] = [
    -1,
    0,
    -0.0,
    10**4,
    10**6,
    10**9,
    10**9 + 1,
    2**53,
    10**18,
    10**30,
    10**300,
    1e308,
    -1e308,
    5e-324,
]
"""Numbers of JSON that a computation or a loop may not survive."""


ODD: list[Any] = [
    None, True, 3, 1.5, *NUMBERS, _Raw("NaN"), _Raw("Infinity"), _Raw("-Infinity"),
    _Raw("1e999"), _Raw(HUGE), _Raw("-" + HUGE), _Raw("9" * 5000), _Raw("[" * DEEP + "]" * DEEP),
    _Raw('{"a":' * 600 + "1" + "}" * 600), _Raw("[" * 150 + "]" * 150), "NaN", "", " ", [], {}, [None], [[]],
    {"a": None}, {"": {}}, "../../x", "/dev/zero", "\x1b]0;x\x07", "\ud800", "\udfff\x00", "\u202e", "a" * 70_000,
    "=1+1", "2024-99-99", [1, "a", None, {}], ["\ud800"], {"\ud800": "\ud800"},
]  # fmt: skip

ODD_YAML = [
    b"&a [*a]", b"&a {b: *a}", b"[" * DEEP, b"[" * DEEP + b"]" * DEEP, b"{a: " * 2000, b".inf", b".nan", b"-.inf",
    b"9" * 5000, b"9" * 400, b"2024-99-99", b"2024-01-01", b"!!python/object:os.system x", b"!!binary x", b"!!set {a}",
    b"!!timestamp x", b"!!int x", b"!!float x", b"!!bool x", b"!!omap x", b"{[a]: b}", b"{{a: b}: c}", b"? [a]\n: b",
    b"null", b"~", b"1:30", b"0b2", b"0o9", b"0x", b"1e999", b"yes", b"'\\ud800'", b'"\\ud800"', b'"\\x00"', b"<<: [1]",
    b"{<<: *a}", b"*a", b"--- a\n--- b", b"%YAML 9.9\n---\na", b"\t- a", b"@a", b"=", b"{}", b"[]", b"''",
    b"&a [x,x,x,x,x,x,x,x,x]\n", b"&anchor value",
]  # fmt: skip


def _bomb(levels: int = 9, each: int = 9, merged: bool = False) -> bytes:
    """A few hundred bytes that are `each ** levels` values when the aliases are followed."""
    if merged:
        lines = ["m0: &m0 {k: v}"]
        lines += [f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * each)}]}}" for i in range(1, levels)]
    else:
        lines = ["m0: &m0 [x]"]
        lines += [f"m{i}: &m{i} [{', '.join([f'*m{i - 1}'] * each)}]" for i in range(1, levels)]
    return ("\n".join(lines) + "\n").encode()


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every value within a JSON document, its own included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [above, *(path for key, child in inner for path in places(child, (*above, key)))]


def _dumped(document: Any) -> bytes:
    raws: list[str] = []

    def mark(value: Any) -> Any:
        if isinstance(value, _Raw):
            raws.append(value)
            return f"@@{len(raws) - 1}@@"
        if isinstance(value, dict):
            return {key: mark(each) for key, each in value.items()}
        return [mark(each) for each in value] if isinstance(value, list) else value

    text = json.dumps(mark(document))
    for number, raw in enumerate(raws):
        text = text.replace(f'"@@{number}@@"', raw)
    return text.encode()


def change_value(draw: Random, document: Any) -> Any:
    """One value of a document is another, or of another name, or gone."""
    paths = places(document)
    path = draw.choice(paths)
    if not path:
        return draw.choice(ODD)
    holder = _at(document, path[:-1])
    last, how = path[-1], draw.random()
    if how < 0.2:
        del holder[last]
    elif how < 0.3 and isinstance(holder, dict):
        holder[draw.choice(["", "id", last + "x", last.upper(), "\ud800", "__class__"])] = holder.pop(last)
    elif how < 0.35:
        holder[last] = json.loads(
            json.dumps(_at(document, draw.choice(paths)))
        )  # a copy: a value within itself is no JSON
    else:
        holder[last] = draw.choice(ODD)
    return document


def change_numbers(draw: Random, document: Any) -> Any:
    """Several numbers of a document are others: each may be allowed, and what follows of them not."""
    paths = [path for path in places(document) if path and type(_at(document, path)) in (int, float)]
    for path in draw.sample(paths, min(len(paths), draw.choice([1, 2, 3, 8]))):
        _at(document, path[:-1])[path[-1]] = draw.choice(NUMBERS)
    return document


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def _of_json(draw: Random, data: bytes) -> bytes:
    change = draw.choice([change_value, change_value, change_numbers])
    return _dumped(change(draw, json.loads(data)))


def _of_a_line(draw: Random, data: bytes) -> bytes:
    lines = data.splitlines()
    number = draw.randrange(len(lines))
    lines[number] = _of_json(draw, lines[number])
    return b"\n".join([*lines, b""])


def _lines(draw: Random, data: bytes) -> bytes:
    """A line twice, gone, at another place, cut; or one that is something else."""
    lines = data.split(b"\n")
    at, other, how = draw.randrange(len(lines)), draw.randrange(len(lines)), draw.randrange(6)
    if how == 0:
        lines.insert(other, lines[at])
    elif how == 1:
        del lines[at]
    elif how == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif how == 3:
        lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
    elif how == 4:
        lines.insert(
            at, draw.choice([b"[]", b"null", b"\x00", b"{}", b"3", b'"x"', b"[" * DEEP, b"{" * 100_000])
        )
    else:
        lines = lines * 2
    return b"\n".join(lines)


def _bytes(draw: Random, data: bytes) -> bytes:
    """Cut, flipped, put in, taken out."""
    at, how = draw.randrange(len(data) + 1), draw.randrange(5)
    if how == 0:
        return data[:at]
    if how == 1:
        changed = bytearray(data or b" ")
        for _ in range(draw.choice([1, 1, 3, 30])):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        return bytes(changed)
    if how == 2:
        odd = [
            b"\x00",
            b"\xff",
            b"\xed\xa0\x80",
            b"\xef\xbb\xbf",
            b"\r",
            b"\n",
            b"\xe2\x80\xa8",
            b"[",
            b"{",
            b'"',
            b"\\ud800",
        ]
        return data[:at] + draw.choice(odd) * draw.choice([1, 1, 2, 5000]) + data[at:]
    if how == 3:
        return data[:at] + data[at + draw.randrange(1, 200) :]
    return data[draw.randrange(len(data) + 1) :]


def _whole(draw: Random, data: bytes) -> bytes:
    odd = [
        b"",
        b"\n",
        b"null",
        b"[]",
        b"{}",
        b"3",
        b"NaN",
        b"\xff\xfe",
        b"\x00" * 4096,
        b"[" * 100_000,
        b"a: b",
    ]
    odd += [
        b'{"a":' * DEEP,
        b"PAR1",
        b"PAR1" + b"\x00" * 100 + b"PAR1",
        data.decode("latin-1").encode("utf-16"),
        b"-",
    ]
    return draw.choice(odd)


def _of_yaml(draw: Random, data: bytes) -> bytes:
    how = draw.randrange(5)
    if how == 0:
        return draw.choice(ODD_YAML)
    if how == 1:
        return _bomb(merged=draw.random() < 0.5) + draw.choice([b"", data])
    lines = data.split(b"\n")
    keyed = [number for number, line in enumerate(lines) if b":" in line] or [0]
    at = draw.choice(keyed)
    key, _, value = lines[at].partition(b":")
    odd = draw.choice(ODD_YAML)
    if how == 2:
        lines[at] = odd + b":" + value
    else:
        lines[at] = key + b": " + odd
    return b"\n".join(lines)


def _no_file(draw: Random, path: Path) -> str:
    """Something else in its place."""
    others = sorted(other for other in path.parent.rglob("*") if other != path and other.is_file())
    path.unlink()
    how = draw.choice(["pipe", "zero", "folder", "nothing", "loop", "secret", "sparse", "other"])
    match how:
        case "pipe":
            os.mkfifo(path)
        case "zero":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path.name)
        case "other":
            path.symlink_to(draw.choice([*others, path.parent]))
        case "secret":
            path.write_bytes(b"{}")
            path.chmod(0)
        case "sparse":
            with path.open("wb") as file:
                file.truncate(1 << 40)
    return how


_KINDS: dict[str, tuple[tuple[float, Callable[[Random, bytes], bytes]], ...]] = {
    "lines": ((5, _of_a_line), (2, _lines), (1, _bytes), (0.4, _whole)),
    "json": ((6, _of_json), (1, _bytes), (0.6, _whole)),
    "yaml": ((4, _of_yaml), (1, _lines), (1, _bytes), (0.6, _whole)),
    "text": ((2, _lines), (2, _bytes), (1, _whole)),
    "binary": ((4, _bytes), (1, _whole)),
}
_SUFFIXES = {".jsonl": "lines", ".json": "json", ".yaml": "yaml"}
_SUFFIXES |= dict.fromkeys((".parquet", ".tar", ".zip", ".safetensors"), "binary")
NO_FILE = 0.12
"""How often a file is replaced by what is no file."""


def damage(draw: Random, path: Path) -> str:
    """Change the file at `path`; returns what was done, for whoever reads of it."""
    if path.is_symlink() or path.stat().st_size > 1 << 30:
        return "as it was"
    if draw.random() < NO_FILE:
        return _no_file(draw, path)
    if not path.stat().st_size:
        path.write_bytes(b"{}\n")
    kinds = _KINDS[_SUFFIXES.get(path.suffix, "text")]
    how = draw.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]
    data = path.read_bytes()
    try:
        path.write_bytes(how(draw, data))
    except (ValueError, IndexError, RecursionError):  # it is damaged already
        path.write_bytes(_bytes(draw, data))
    return how.__name__.strip("_")
