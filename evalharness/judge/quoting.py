"""Somebody else's text inside a prompt: quoted so that it cannot end its quotation. Pure."""

from __future__ import annotations

import json
import re

_MARKUP = re.compile(r"<|\[(?=/?[A-Za-z]*[A-Z_]{2,}\])")
"""What begins a control token of a chat template: `<|im_end|>`, `</s>`, `[INST]`, `[gMASK]`. Servers turn such text
into the token itself, which no quotation mark could hold."""


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def quoted(text: str) -> str:
    """`text` as a JSON string on one line. Quotation marks, line breaks, invisible characters and the beginnings of
    control tokens are escaped; `json.loads` gives `text` back."""
    plain = json.dumps(text, ensure_ascii=False)
    plain = "".join(c if c.isprintable() else _escaped(c) for c in plain)
    return _MARKUP.sub(lambda found: _escaped(found[0]), plain)


def clipped(text: str, longest: int) -> str:
    """At most `longest` characters: the beginning and the end of a longer one, and how much is left out between."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} ... [{len(text) - 2 * half} characters left out] ... {text[-half:]}"
