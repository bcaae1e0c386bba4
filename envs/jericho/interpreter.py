"""Run a story in Jericho's interpreter Frotz, and prevent its memory errors, endless loops and file access."""

from __future__ import annotations

import ctypes
import re
import warnings
from pathlib import Path
from typing import Any, Final

import jericho
from jericho.jericho import _load_frotz_lib

from evalharness.envs.jericho.actions import make_typeable

READ_LINE: Final = 228
"""Z-machine opcode with which a game waits for a line. With opcode 246 a game waits for a key, as in a menu."""

_WRITES_FILES: Final = re.compile(r"(?i)script|transcr|record|replay|playback|#|\$|\bg\b|\bagain\b")
"""Pattern of the lines that may make Frotz write a file (a transcript or recording), or may repeat such a line."""
_LONGER_THAN_A_FILE_NAME: Final = 81

_WON: Final = "*** You have won ***"
_LOST: Final = "*** You have died ***"
"""Text at the end of a lost story. Jericho itself can tell only for the games it supports whether they are lost."""


class _Setup(ctypes.Structure):
    """The first fields of `f_setup_t` in frotz/src/common/setup.h of jericho 3.3.1: 15 integers, and file names."""

    _fields_ = (
        ("numbers", ctypes.c_int * 15),
        ("story_file", ctypes.c_void_p),
        ("story_name", ctypes.c_void_p),
        ("story_base", ctypes.c_void_p),
        ("script_name", ctypes.c_void_p),
        ("command_name", ctypes.c_void_p),
        ("save_name", ctypes.c_void_p),
    )


class _Frotz(jericho.FrotzEnv):  # type: ignore[misc]
    """A FrotzEnv that parses each story's grammar only once per process, because that takes 40 to 250 ms (measured)."""

    _shared: Final[dict[str, Any]] = {}

    def __init__(self, story: str, seed: int | None) -> None:
        self._cache = self._shared
        self._bindings = None
        self.frotz_lib = _load_frotz_lib()
        self.is_fully_supported = bool(self.frotz_lib.is_supported(story.encode()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Jericho warns that our stories are "not fully supported"
            self.load(story, seed)


class Interpreter:
    """A running story. Make a new interpreter for each episode, which takes 8 ms.

    A restarted interpreter could begin with a line of the previous episode, because Frotz keeps unread input in static
    buffers. A process can have many interpreters, because jericho loads another copy of its library for each of them.
    """

    def __init__(self, story: Path, seed: int | None = None) -> None:
        """Load the story. If `seed` is None, use Jericho's seed for this game; a story of ours would use the clock."""
        self._story, self._seed = story, seed
        with story.open("rb") as file:
            self.version = file.read(1)[0]
            """Version of the Z-machine: 3 for Infocom's games, 5 or 8 for Inform's games."""
        self.frotz = _Frotz(str(story), seed)
        """Jericho's object, to read the state of the world. Send commands only with `send`."""
        self.opening: str = self.frotz.reset()[0]
        self._forbid_saving()
        self.over = False
        self.changed = False
        """Whether the last line changed the object tree or the score, or ended the game. In the games that Jericho
        supports, a change of other relevant memory counts, too. So does a change that only a clock in the game made."""
        self.victory = False
        """Whether the game says that the player has won the whole game."""

    def _forbid_saving(self) -> None:
        """Delete the name of the save file, so that SAVE and RESTORE fail with the game's own message.

        Otherwise Frotz would write `<story>.qzl` to the working directory, and another episode could restore this file.
        """
        setup = _Setup.in_dll(self.frotz.frotz_lib, "f_setup")
        name = ctypes.string_at(setup.save_name) if setup.save_name else b""
        if name != f"{self._story.stem}.qzl".encode():
            raise RuntimeError(
                "the save file's name is not found in this build of jericho; install jericho==3.3.1"
            )
        ctypes.memset(setup.save_name, 0, 1)

    def send(self, command: str) -> str:
        """Send a text to the game as one line, and return the game's output. Any text is safe."""
        line = make_typeable(command)
        if _WRITES_FILES.search(line):
            # Frotz uses the line itself as the name of a transcript's file, and refuses a name above 80 characters.
            # So make the line longer with spaces, which have no other effect.
            line = line.ljust(_LONGER_THAN_A_FILE_NAME)
        score = self.frotz.get_score()
        # A single backslash starts a command for Frotz itself. Some of these write files; an unknown one never returns.
        text, _, over, _ = self.frotz.step(line.replace("\\", "\\\\"))
        known = self.frotz.is_fully_supported
        self.victory = bool(self.frotz.victory()) if known else _WON in text
        self.over = bool(over) if known else self.victory or _LOST in text
        self.changed = self.over or bool(self.frotz._world_changed()) or self.frotz.get_score() != score
        return str(text)

    @property
    def halted(self) -> bool:
        """Whether Frotz has stopped with a runtime error before the end of the game."""
        return bool(self.frotz._emulator_halted())

    @property
    def awaits_key(self) -> bool:
        return int(self.frotz.frotz_lib.get_opcode()) != READ_LINE

    def fork(self) -> Interpreter:
        """Return a copy in the same state, to try commands. UNDO in the copy cannot go back to an earlier state."""
        twin = Interpreter(self._story, self._seed)
        twin.restore(self.snapshot())
        return twin

    def snapshot(self) -> Any:
        return self.frotz.get_state()

    def restore(self, state: Any) -> None:
        self.frotz.set_state(state)
        self.over = self.changed = self.victory = False
