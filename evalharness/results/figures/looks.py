"""Set the style of figures and save them. Needs matplotlib (the extra `plots`)."""

from __future__ import annotations

import logging
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evalharness.base.errors import UserError, system_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours that colour-blind readers can distinguish: Okabe & Ito, "Color Universal Design" (2008)."""
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "svg.hashsalt": "evalharness",  # fixed ids: equal figures give equal files
    "svg.fonttype": "none",
    "text.parse_math": False,  # dollar signs in a model's name do not begin a formula
}


PAPER: dict[Any, Any] = {
    "font.family": "serif",
    "font.size": 8,
    "axes.titleweight": "normal",
    "axes.titlesize": 8,
    "pdf.fonttype": 42,  # TrueType: text can be copied, and conferences accept it
    "figure.titlesize": 0,
}
"""Settings that replace those of `_STYLE` for a paper. A size of 0 removes the title, because a paper has a caption."""
Style = Literal["screen", "paper"]


def style(look: Style = "screen") -> AbstractContextManager[None]:
    """Return a context that sets the style of all figures drawn in it. Raise UserError if matplotlib is missing."""
    try:
        from matplotlib import rc_context
    except ImportError:
        command = f"{shlex.quote(sys.executable)} -m pip install 'matplotlib>=3.8'"
        raise UserError(f"plots need matplotlib; install it with: {command}") from None

    @contextmanager
    def drawing() -> Iterator[None]:
        log = logging.getLogger("matplotlib")
        level = log.level
        with rc_context({**_STYLE, **(PAPER if look == "paper" else {})}), warnings.catch_warnings():
            # Suppress matplotlib's warnings about characters that the font lacks: the user sees a box in the figure.
            warnings.simplefilter("ignore")
            log.setLevel(logging.ERROR)
            try:
                yield
            finally:
                log.setLevel(level)

    return drawing()


def save_figure(figure: Figure, stem: Path, look: Style = "screen") -> list[Path]:
    """Save the figure as SVG, and as PNG or (for a paper) PDF. Raise UserError if a file cannot be written."""
    paths = [stem.with_suffix(".pdf" if look == "paper" else ".png"), stem.with_suffix(".svg")]
    for path in paths:
        save_as(figure, path)
    return paths


def save_as(figure: Figure, target: Path) -> None:
    """Save the figure as PDF, SVG or PNG, by the ending of `target`. Raise UserError if the file cannot be written."""
    metadata: dict[str, dict[str, None]] = {
        ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
        ".svg": {"Date": None, "Creator": None},
        ".png": {"Software": None},
    }
    with system_errors(f"cannot write {target}", "; choose another with -o FILE"):
        figure.savefig(target, dpi=200, metadata=metadata[target.suffix])
