"""The report as one file: works from `file://`, loads nothing, holds its data compressed."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from evalharness.base.errors import system_errors
from evalharness.base.paths import replacing
from evalharness.results.html.document import asset, document
from evalharness.results.viewer.bundle import Bundle, compressed

_STYLE = "viewer/assets/viewer.css"
_BODY = """\
<div id="app"><header id="bar"></header><main id="main" tabindex="-1"><p class="loading">Loading …</p></main></div>
<noscript><p>This report needs JavaScript, which it brings along: it loads nothing from anywhere.</p></noscript>
"""


def script() -> str:
    """The files of `assets/`, joined in the order of their names into one function."""
    folder = files("evalharness.results.viewer") / "assets"
    parts = sorted((part for part in folder.iterdir() if part.name.endswith(".js")), key=lambda p: p.name)
    joined = "\n".join(part.read_text(encoding="utf-8") for part in parts)
    return f"(() => {{\n'use strict';\n{joined}\n}})();\n"


def _data(name: str, packed: bytes) -> str:
    # Of a type that no browser runs, in an alphabet that cannot end the element.
    return f'<script type="application/gzip" id="{name}">{base64.b64encode(packed).decode()}</script>\n'


def title(index: dict[str, Any]) -> str:
    """Models and the last day on which one was run: what a tab and a printed page are called."""
    last = datetime.fromtimestamp(max(run["started"] for run in index["runs"]), UTC)
    return " · ".join(
        [*dict.fromkeys(run["name"] for run in index["runs"]), f"{last:%Y-%m-%d}", "evalharness"]
    )


def page(bundle: Bundle) -> Iterator[str]:
    """The whole document in parts. The index stands before the script, the trajectories behind it: the overview is
    there before they have been read."""

    def blocks() -> Iterator[str]:
        yield _data("prompts", compressed(bundle.prompts.listed))
        for run, record in enumerate(bundle.records):
            for position, block in enumerate(record.blocks()):
                yield _data(f"block-{run}-{position}", block)

    body = _BODY + _data("index", compressed(bundle.index))
    return document(title(bundle.index), asset(_STYLE), script(), body, blocks())


def write_page(target: Path, bundle: Bundle) -> int:
    """Replace `target` as a whole or not at all; its size in bytes. Raises UserError when it cannot be written."""
    with system_errors(f"cannot write {target}", "; choose another with -o FILE"):
        with replacing(target) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(page(bundle))
        return target.stat().st_size
