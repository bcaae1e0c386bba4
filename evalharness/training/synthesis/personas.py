"""Read personas from a file in Persona-Hub's layout, and draw them without replacement by seed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from evalharness.base.errors import UserError, system_errors
from evalharness.base.reading import open_file
from evalharness.training.datasets.conversation import BrokenLine, UnfitError, parse_json

LONGEST = 5_000
"""Maximum number of characters of a persona. The limit keeps prompts short: the persona is part of every prompt."""


@dataclass(frozen=True)
class Persona:
    key: str
    """A hash of the text, such as `persona-1f0c9a3b27d4`; a persona has the same key in every file."""
    text: str


@dataclass(frozen=True)
class Personas:
    source: str
    personas: tuple[Persona, ...]
    broken: tuple[BrokenLine, ...]
    repeated: int
    """Number of lines whose persona was in an earlier line."""

    @property
    def sha256(self) -> str:
        """Hash of the personas, independent of the file's layout."""
        return hashlib.sha256("\n".join(p.key for p in self.personas).encode()).hexdigest()

    def complaints(self, most: int = 3) -> list[str]:
        """Return messages about lines that were left out: broken lines and repeated personas."""
        lines = []
        if self.broken:
            lines.append(f"{self.source}: {len(self.broken):,} lines without a persona left out")
            lines += [f"  {line}" for line in self.broken[:most]] + ["  ..."] * (len(self.broken) > most)
        if self.repeated:
            lines.append(f"{self.source}: {self.repeated:,} repeated personas left out")
        return lines


def find_own_file() -> Path:
    """Return the file of 200 personas that is part of this package."""
    return Path(str(files("evalharness"))) / "training" / "synthesis" / "personas.jsonl"


def _read_persona(line: bytes) -> Persona:
    value = parse_json(line)
    if not isinstance(value, dict) or not isinstance(value.get("persona"), str):
        keys = ", ".join(map(repr, list(value)[:4])) if isinstance(value, dict) else type(value).__name__
        raise UnfitError(f'not {{"persona": "..."}} (found: {keys})')
    text = value["persona"].strip()
    if not text or len(text) > LONGEST:
        raise UnfitError("the persona is empty" if not text else f"longer than {LONGEST:,} characters")
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
    return Persona(f"persona-{digest[:12]}", text)


def read_personas(path: Path | None = None) -> Personas:
    """Read the personas of `path` (None: the package's file), and list broken lines. Raises UserError without a valid
    line."""
    source = path or find_own_file()
    personas: dict[str, Persona] = {}
    broken: list[BrokenLine] = []
    repeated = 0
    with system_errors(f"cannot read --personas {source}"), open_file(source) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                persona = _read_persona(line)
            except UnfitError as error:
                broken.append(BrokenLine(number, str(error)))
                continue
            repeated += persona.key in personas
            personas.setdefault(persona.key, persona)
    if not personas:
        first = f"; {broken[0]}" if broken else ""
        raise UserError(
            f'--personas {source} has no persona; it must have JSON lines of {{"persona": "..."}}{first}'
        )
    return Personas(str(source), tuple(personas.values()), tuple(broken), repeated)


def draw(personas: Sequence[Persona], count: int, seed: int) -> list[Persona]:
    """Draw `count` personas without replacement. With the same seed, a larger count adds personas after those of a
    smaller count. Raises UserError if the file has fewer."""
    if count > len(personas):
        raise UserError(
            f"-n {count}: there are only {len(personas):,} personas; choose a larger --personas FILE"
        )
    order = list(range(len(personas)))
    random.Random(seed).shuffle(order)
    return [personas[index] for index in order[:count]]
