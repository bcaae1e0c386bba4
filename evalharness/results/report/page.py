"""Write the report as one HTML file with compressed data. It works from `file://`, because it loads no other file."""

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
from evalharness.results.report.bundle import Bundle, compress_json

_STYLE = "report/assets/viewer.css"
_BODY = """\
<div id="app"><header id="bar"></header><main id="main" tabindex="-1"><p class="loading">Loading …</p></main></div>
<noscript><p>This report needs JavaScript, which it brings along: it loads nothing from anywhere.</p></noscript>
"""


def script() -> str:
    """Join the files of `assets/`, in the order of their names, into one function."""
    folder = files("evalharness.results.report") / "assets"
    parts = sorted((part for part in folder.iterdir() if part.name.endswith(".js")), key=lambda p: p.name)
    code = "\n".join(part.read_text(encoding="utf-8") for part in parts)
    return f"(() => {{\n'use strict';\n{code}\n}})();\n"


def _data(name: str, packed: bytes) -> str:
    # Browsers do not execute a script of this type. Base64 cannot contain `</script>`.
    return f'<script type="application/gzip" id="{name}">{base64.b64encode(packed).decode()}</script>\n'


def title(index: dict[str, Any]) -> str:
    """Return the page's title: the names of the runs, and the day on which the last run started."""
    last = datetime.fromtimestamp(max(run["started"] for run in index["runs"]), UTC)
    return " · ".join(
        [*dict.fromkeys(run["name"] for run in index["runs"]), f"{last:%Y-%m-%d}", "evalharness"]
    )


def page(bundle: Bundle) -> Iterator[str]:
    """Yield the HTML document in parts. The trajectories come last, so that the browser shows the overview early."""

    def blocks() -> Iterator[str]:
        yield _data("prompts", compress_json(bundle.prompts.listed))
        for run, record in enumerate(bundle.records):
            for position, block in enumerate(record.blocks()):
                yield _data(f"block-{run}-{position}", block)

    body = _BODY + _data("index", compress_json(bundle.index))
    return document(title(bundle.index), asset(_STYLE), script(), body, blocks())


def write_page(target: Path, bundle: Bundle) -> int:
    """Write the page and return its size in bytes. If writing fails, keep the old `target` and raise UserError."""
    with system_errors(f"cannot write {target}", "; choose another with -o FILE"):
        with replacing(target) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(page(bundle))
        return target.stat().st_size
