"""Simulate worlds of ScienceWorld; many worlds share one Java process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from evalharness.envs.base import Task
from evalharness.envs.sciworld import jvm
from evalharness.envs.sciworld.functions import REFUSED, Functions, JavaWorld, functions

_STOCK_WORDS = ("help", "objects", "task")
"""Commands that the simulator's own `PythonInterface.step` answers without a turn in the world."""
_BLANKS = "".join(map(chr, range(33)))
"""Characters that Java's `trim` removes."""
_NO_ANSWER = (
    "Unknown action.  Type 'help' for a list of actions, "
    "and 'objects' for a list of possible object referents. "
)
"""The simulator's answer to an action that it carries out without an observation."""


class SimulatorFault(Exception):  # noqa: N818  (a defect of the simulator, not an error of ours)
    """The simulator raised an exception. The Java process still runs, and the episode can continue."""


class Simulator:
    """A simulated world. Every method raises `jvm.SimulatorDiedError` if the Java process has ended."""

    def __init__(self) -> None:
        self._jvm: jvm.Jvm | None = None
        self._world: JavaWorld | None = None
        self._simplifications = ""
        self._gold_path: list[str] = []
        self._verdict: tuple[float, bool] | None = None

    def start(self) -> None:
        """Prepare a world in the current Java process. The first simulator starts this process."""
        current = jvm.acquire()
        if self._jvm is current:
            jvm.release(current)  # this simulator already counts as a user of the process
            return
        self.close()
        self._jvm = current
        with self._hold() as shared:
            self._world = JavaWorld(shared)

    def load(self, task: str, variation: int, simplifications: str, *, gold: bool = False) -> None:
        """Start an episode. `gold`: also compute the simulator's own solution (gold path), which can take seconds.

        Raise ValueError for an unknown task, variation or simplification.
        """
        self.start()
        self._simplifications = simplifications
        self._verdict = None
        with self._call(fresh=True) as shared:
            assert self._world is not None
            shared.note_simplifications(None)
            shared.clear_history()
            if gold:
                self._gold_path = self._world.load_as_stock(task, variation, simplifications, gold=True)
            else:
                self._world.load(task, variation, simplifications)
            shared.note_simplifications(simplifications)

    def begin(self, task: Task, *, gold: bool = False) -> None:
        payload = task.payload
        self.load(str(payload["task"]), int(payload["variation"]), str(payload["simplifications"]), gold=gold)

    def step(self, text: str) -> str:
        """Play an action. The observation is that of `scienceworld.ScienceWorldEnv.step`, which is slower because it
        also lists the valid actions."""
        # Replace unpaired surrogates, which cannot be sent to Java. No valid action contains them.
        text = text.encode("utf-8", "replace").decode()
        # Use the simulator's own step until the score is known, because our turn gives no score for a refused action.
        if self._verdict is None or _is_stock_word(text) or self._can_teleport():
            return self._stock_step(text)
        try:
            with self._hold() as shared:
                assert self._world is not None
                shared.simplify(self._simplifications)
                answer = self._world.turn(text)
        except SimulatorFault:
            return self._stock_step(text)  # the parser failed before the world changed
        if answer.startswith(REFUSED):
            return answer.removeprefix(REFUSED) or _NO_ANSWER
        observation, score, completed = answer[1:-1].rsplit(",", 2)
        self._verdict = float(score), completed == "true"
        return observation or _NO_ANSWER

    def inventory(self) -> str:
        with self._call() as shared:
            return str(shared.server.freeActionInventory())

    def task_description(self) -> str:
        with self._call() as shared:
            return str(shared.server.getTaskDescription())

    def verdict(self) -> tuple[float, bool]:
        """Return (score, completed). The score is 0 to 1, or -1 after a mistake that fails the task."""
        if self._verdict is not None:
            return self._verdict
        with self._hold() as shared:
            return _stock_verdict(shared)

    def templates(self) -> list[str]:
        """Return the templates of all actions, such as `go OBJ`, sorted."""
        return self._texts("getPossibleActions")

    def valid_actions(self) -> list[str]:
        """Return all actions that the simulator would carry out, in its order; an action may occur more than once.

        The simulator also lists actions on things in closed containers, but refuses these actions, so we leave them
        out. After an ambiguous request, only the numbers of its options are valid.
        """
        # The simulator chooses at random between names of objects. Use fixed random numbers, so that a state always
        # has the same list, and so that the world's own random numbers stay unchanged.
        with self._call(keep=False) as shared:
            shared.restart_random()
            actions = json.loads(shared.server.getValidActionObjectCombinationsJSON())["validActions"]
            reachable = self._reachable_objects(shared.server)
        return [
            text
            for action in actions
            if _possible(text := str(action["action"]), action["obj_ids"], reachable)
        ]

    def _reachable_objects(self, server: Any) -> set[int]:
        """Return the ids of the objects that the parser accepts in a command: those in the room and with the agent."""
        assert self._jvm is not None
        ids: set[int] = set()
        with self._jvm.borrowing() as borrow:
            interface = borrow(borrow(server.agentInterface()).get())
            parser, agent = borrow(interface.inputParser()), borrow(interface.agent())
            room = borrow(borrow(agent.getContainer()).get())
            for root in (room, agent):
                names = borrow(parser.getAllUniqueReferentsLUT(root, True, False))
                ids.update(int(uuid) for uuid in str(borrow(names.keySet()).mkString(",")).split(","))
        return ids

    def gold_path(self) -> list[str]:
        """Return the simulator's own solution. Call `load(..., gold=True)` first."""
        return self._gold_path

    def variations(self, task: str) -> int:
        self.start()
        with self._hold() as shared:
            return int(shared.server.getTaskMaxVariations(task))

    def close(self) -> None:
        """Free the world. The Java process ends when its last simulator is closed."""
        if self._jvm is None:
            return
        if self._world is not None:
            self._world.forget()
        released, self._jvm, self._world = self._jvm, None, None
        jvm.release(released)

    def _stock_step(self, text: str) -> str:
        with self._call() as shared:
            server = shared.server
            if self._verdict is not None:
                getattr(server, "score_$eq")(self._verdict[0])
                getattr(server, "isComplete_$eq")(self._verdict[1])
            answer = str(server.step(text))
            if not _is_stock_word(text):
                self._verdict = _stock_verdict(shared)
        return answer

    def _texts(self, method: str) -> list[str]:
        assert self._jvm is not None
        with self._call() as shared, self._jvm.borrowing() as borrow:
            return [str(text) for text in borrow(getattr(shared.server, method)())]

    def _can_teleport(self) -> bool:
        """Return whether the world has the action `teleport`, which works only in the simulator's own step."""
        return self._simplifications == "easy" or "teleport" in self._simplifications.lower()

    @contextmanager
    def _call(self, *, fresh: bool = False, keep: bool = True) -> Iterator[Functions]:
        """Lock the Java process, and set the simulator's globals to this world's values for the calls in the block.

        `fresh`: the calls in the block set the globals themselves. `keep`: store the globals after the block.
        """
        with self._hold() as shared:
            assert self._world is not None
            if not fresh:
                shared.simplify(self._simplifications)
                self._world.restore()
            try:
                yield shared
            finally:
                if keep:
                    self._world.keep()

    @contextmanager
    def _hold(self) -> Iterator[Functions]:
        """Lock the Java process for the calls in the block, without setting the simulator's globals before."""
        if self._jvm is None:
            raise RuntimeError("load() comes first")
        with self._jvm.lock, self._jvm.watch():
            try:
                yield functions(self._jvm)
            except Py4JJavaError as error:
                raise SimulatorFault(str(error.java_exception)) from error


def _stock_verdict(shared: Functions) -> tuple[float, bool]:
    return float(shared.server.getScore()), bool(shared.server.getCompleted())


def _is_stock_word(text: str) -> bool:
    return text.strip(_BLANKS).lower() in _STOCK_WORDS


def _possible(action: str, objects: list[int], reachable: set[int]) -> bool:
    if action.isdigit():
        return True
    pours_into_itself = action.startswith("pour ") and objects[0] == objects[1]
    return reachable.issuperset(objects) and not pours_into_itself


def first_observation(simulator: Simulator) -> str:
    """Return AgentBoard's first observation: the room and the inventory."""
    return simulator.step("look around") + "\n" + simulator.inventory()


def start_score(simulator: Simulator) -> float:
    """Return the simulator's score before the first action. Call `first_observation` first: before the first step, the
    simulator still returns the score of the previous world."""
    return max(simulator.verdict()[0], 0.0)
