"""Run a Z-machine story in Jericho's Frotz, without memory leaks, hangs and file access."""

from __future__ import annotations

import ctypes
import re
import warnings
from pathlib import Path
from typing import Any, Final

import jericho
from jericho.jericho import _load_frotz_lib

from evalharness.envs.jericho.actions import typeable

READ_LINE: Final = 228
"""Z-machine opcode that waits for a line; opcode 246 waits for a key (menus, "press any key")."""

_WRITES_FILES: Final = re.compile(r"(?i)script|transcr|record|replay|playback|#|\$|\bg\b|\bagain\b")
"""Lines that may start a transcript or a recording, or repeat such a line."""
_LONGER_THAN_A_FILE_NAME: Final = 81

_WON: Final = "*** You have won ***"
_LOST: Final = "*** You have died ***"
"""Text at the end of a lost story that Jericho does not know. Jericho checks its own games in the same way."""


class _Setup(ctypes.Structure):
    """The first fields of `f_setup_t` in frotz/src/common/setup.h of jericho 3.3.1: 15 ints, then the file names."""

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
    """A FrotzEnv that parses each story's grammar only once per process (40 to 250 ms, measured)."""

    _shared: Final[dict[str, Any]] = {}

    def __init__(self, story: str, seed: int | None) -> None:
        self._cache = self._shared
        self._bindings = None
        self.frotz_lib = _load_frotz_lib()
        self.is_fully_supported = bool(self.frotz_lib.is_supported(story.encode()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns "not fully supported" for every unknown story
            self.load(story, seed)


class Interpreter:
    """A story at its start. Make a new interpreter for each episode.

    Frotz keeps unread input in static buffers, so a restarted interpreter could begin with the rest of an earlier
    episode's line. Each interpreter has its own copy of the library (jericho loads it from a temporary file that it
    deletes at once), so a process can have many interpreters. Making one takes 8 ms.
    """

    def __init__(self, story: Path, seed: int | None = None) -> None:
        """Load the story. `seed` None: use Jericho's own seed for the game, or the clock for an unknown story."""
        self._story, self._seed = story, seed
        with story.open("rb") as file:
            self.version = file.read(1)[0]
            """Version of the Z-machine: 3 for Infocom's games, 5 or 8 for Inform's games."""
        self.frotz = _Frotz(str(story), seed)
        """The library's own object, for reading the world; only `send` may send commands to it."""
        self.opening: str = self.frotz.reset()[0]
        self._forbid_saving()
        self.over = False
        self.changed = False
        """Whether the last line moved a thing, changed a thing's state or the score, or ended the game, by the object
        tree and, in Jericho's own games, by the relevant memory. Changes by a clock in the game count, too."""
        self.victory = False
        """Whether the game says that the player has won the whole game."""

    def _forbid_saving(self) -> None:
        """Delete the save file's name, so that SAVE and RESTORE fail with the game's own message.

        Frotz would write `<story>.qzl` to the working directory, and another episode could restore it.
        """
        setup = _Setup.in_dll(self.frotz.frotz_lib, "f_setup")
        name = ctypes.string_at(setup.save_name) if setup.save_name else b""
        if name != f"{self._story.stem}.qzl".encode():
            raise RuntimeError(
                "the save file's name is not found in this build of jericho; install jericho==3.3.1"
            )
        ctypes.memset(setup.save_name, 0, 1)

    def send(self, command: str) -> str:
        """Type a line and return the game's output. Any text is allowed."""
        line = typeable(command)
        if _WRITES_FILES.search(line):
            # Frotz writes a transcript to a file with the name of the requesting line, but refuses a name above 80
            # characters. So append spaces, which have no other effect.
            line = line.ljust(_LONGER_THAN_A_FILE_NAME)
        score = self.frotz.get_score()
        # A single backslash starts an interpreter command: some write files, an unknown command never returns.
        text, _, over, _ = self.frotz.step(line.replace("\\", "\\\\"))
        known = self.frotz.is_fully_supported
        self.victory = bool(self.frotz.victory()) if known else _WON in text
        self.over = bool(over) if known else self.victory or _LOST in text
        self.changed = self.over or bool(self.frotz._world_changed()) or self.frotz.get_score() != score
        return str(text)

    @property
    def halted(self) -> bool:
        """Whether the last line ended the interpreter with a runtime error, although the game is not over."""
        return bool(self.frotz._emulator_halted())

    @property
    def awaits_key(self) -> bool:
        return int(self.frotz.frotz_lib.get_opcode()) != READ_LINE

    def fork(self) -> Interpreter:
        """Return a second interpreter in the same state, for trying commands. Its undo ends at this state."""
        twin = Interpreter(self._story, self._seed)
        twin.restore(self.snapshot())
        return twin

    def snapshot(self) -> Any:
        return self.frotz.get_state()

    def restore(self, state: Any) -> None:
        self.frotz.set_state(state)
        self.over = self.changed = self.victory = False
