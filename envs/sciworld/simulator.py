"""ScienceWorld's simulator behind a plain Python class, many of them in one Java process.

The simulator keeps three things in JVM-wide singletons: the random stream, the counter of object ids and the
simplifications. Each call first puts this world's values back where another world was served in between, so that
worlds sharing a process behave as if each had its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JJavaError

from envs.sciworld import jvm

_LCG_MULTIPLIER = 0x5DEECE66D
"""`java.util.Random.setSeed(s)` stores `s ^ multiplier` (documented there), so this undoes it."""


class SimulatorFault(Exception):  # noqa: N818  (a defect of the world's own, not an error of ours)
    """The simulator raised an exception while it carried out a call; the Java process lives on."""


@dataclass
class _Globals:
    """One world's share of the simulator's singletons."""

    random_state: int
    next_object_id: int


class _Singletons:
    """The singletons of one Java process, and whose world they hold at the moment."""

    def __init__(self, java: Any) -> None:
        self._random = getattr(getattr(java.scala.util, "Random$"), "MODULE$").self()
        self._seed_field = self._random.getClass().getDeclaredField("seed")
        self._seed_field.setAccessible(True)
        self._ids = java.util.UniqueIdentifier
        self._simplifications = java.main.scala.scienceworld.runtime.SimplifierProcessor
        self.holder: Simulator | None = None

    def read(self) -> _Globals:
        return _Globals(self._seed_field.get(self._random), self._ids.count())

    def write(self, values: _Globals, simplifications: str) -> None:
        self._random.setSeed(values.random_state ^ _LCG_MULTIPLIER)
        getattr(self._ids, "count_$eq")(values.next_object_id)
        self._simplifications.parseSimplificationStr(simplifications)


class Simulator:
    """One world. Raises `jvm.SimulatorDiedError` from any call when the Java process is gone."""

    def __init__(self) -> None:
        self._jvm: jvm.Jvm | None = None
        self._server: Any = None
        self._simplifications = ""
        self._globals: _Globals | None = None

    def load(self, task: str, variation: int, simplifications: str, *, gold: bool = False) -> None:
        """Start `task` afresh. With `gold` the simulator also plans its gold path, which can take seconds.

        Raises ValueError for a task, variation or simplification that the simulator does not know.
        """
        self._settle()
        self._simplifications = simplifications
        with self._turn(fresh=True):
            complaint = self._server.load(task, variation, simplifications, gold)
            if complaint:
                raise ValueError(complaint)

    def step(self, text: str) -> str:
        """What the stock `ScienceWorldEnv.step` returns as observation, without its enumeration of valid actions."""
        # A lone surrogate cannot be sent to Java; no action contains one, so what stands for it is all the same.
        with self._turn():
            return str(self._server.step(text.encode("utf-8", "replace").decode()))

    def inventory(self) -> str:
        with self._turn():
            return str(self._server.freeActionInventory())

    def task_description(self) -> str:
        with self._turn():
            return str(self._server.getTaskDescription())

    def verdict(self) -> tuple[float, bool]:
        """(score, completed): score in 0..1, or -1 after a mistake that fails the task."""
        with self._turn():
            return float(self._server.getScore()), bool(self._server.getCompleted())

    def templates(self) -> list[str]:
        """The abstract actions, such as `go OBJ`, in the simulator's order (sorted)."""
        return self._texts("getPossibleActions")

    def valid_actions(self) -> list[str]:
        """Every (action, objects) combination that the simulator would carry out; its order, with repetitions.

        The simulator lists actions on the contents of closed containers too, then does not know them; those are left
        out. While an ambiguous request waits for an answer, only its option numbers are valid.
        """
        with self._turn() as singletons:
            # The enumeration draws random names for objects that share one: keep that out of the world's own stream,
            # and make the same state give the same list.
            before = singletons.read()
            singletons.write(_Globals(0, before.next_object_id), self._simplifications)
            try:
                actions = json.loads(self._server.getValidActionObjectCombinationsJSON())["validActions"]
                reachable = self._reachable_objects()
            finally:
                singletons.write(before, self._simplifications)
        return [
            text
            for action in actions
            if _possible(text := str(action["action"]), action["obj_ids"], reachable)
        ]

    def _reachable_objects(self) -> set[int]:
        """Ids of the objects that the simulator's parser looks for names among: in the room, and on the agent."""
        assert self._jvm is not None
        ids: set[int] = set()
        with self._jvm.borrowing() as borrow:
            interface = borrow(borrow(self._server.agentInterface()).get())
            parser, agent = borrow(interface.inputParser()), borrow(interface.agent())
            room = borrow(borrow(agent.getContainer()).get())
            for root in (room, agent):
                names = borrow(parser.getAllUniqueReferentsLUT(root, True, False))
                ids.update(int(uuid) for uuid in str(borrow(names.keySet()).mkString(",")).split(","))
        return ids

    def gold_path(self) -> list[str]:
        """The simulator's own solution, after `load(..., gold=True)`."""
        return self._texts("getGoldActionSequence")

    def variations(self, task: str) -> int:
        """How many variations `task` has."""
        self._settle()
        with self._turn():
            return int(self._server.getTaskMaxVariations(task))

    def close(self) -> None:
        """Release the Java process; the last simulator to close ends it."""
        if self._jvm is None:
            return
        released, server, self._jvm, self._server = self._jvm, self._server, None, None
        with released.lock:
            if (singletons := _SINGLETONS.get(released)) is not None and singletons.holder is self:
                singletons.holder = None
        released.forget(server)
        jvm.release(released)

    def _texts(self, method: str) -> list[str]:
        assert self._jvm is not None
        with self._turn(), self._jvm.borrowing() as borrow:
            return [str(text) for text in borrow(getattr(self._server, method)())]

    def _settle(self) -> None:
        """Have a server in the Java process that new episodes go to."""
        current = jvm.acquire()
        if self._jvm is current:
            jvm.release(current)  # counted already
            return
        self.close()
        self._jvm = current
        with self._turn(fresh=True):  # it makes thousands of objects, on the singletons
            self._server = current.java.scienceworld.runtime.pythonapi.PythonInterface()

    @contextmanager
    def _turn(self, *, fresh: bool = False) -> Iterator[_Singletons]:
        """Hold the Java process with this world's singletons in place; `fresh` when the call sets them anew."""
        if self._jvm is None:
            raise RuntimeError("load() comes first")
        with self._jvm.lock, self._jvm.watched():
            singletons = _singletons(self._jvm)
            if singletons.holder is not self:
                if singletons.holder is not None:
                    singletons.holder._globals = singletons.read()
                if self._globals is not None and not fresh:
                    singletons.write(self._globals, self._simplifications)
                singletons.holder = self
            try:
                yield singletons
            except Py4JJavaError as error:
                raise SimulatorFault(str(error.java_exception)) from error


def _possible(action: str, objects: list[int], reachable: set[int]) -> bool:
    if action.isdigit():
        return True
    pours_into_itself = action.startswith("pour ") and objects[0] == objects[1]
    return reachable.issuperset(objects) and not pours_into_itself


_SINGLETONS: WeakKeyDictionary[jvm.Jvm, _Singletons] = WeakKeyDictionary()


def _singletons(process: jvm.Jvm) -> _Singletons:
    if process not in _SINGLETONS:
        _SINGLETONS[process] = _Singletons(process.java)
    return _SINGLETONS[process]
