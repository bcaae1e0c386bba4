"""Play a turn with one round trip to Java, and keep several simulated worlds in one Java process.

The simulator has three global variables: the state of the random numbers, the counter of object ids, and the
simplifications. Before a turn we set these globals to the values of its world, and after the turn we store the new
values. So worlds in one process do not affect each other.

A turn omits two parts of the simulator's `PythonInterface.step`, which took 30 % of its time and do not affect the
world: texts for the console, and a list of all objects, which only the action `teleport` needs.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from evalharness.envs.sciworld.handles import Handle, Handles
from evalharness.envs.sciworld.jvm import Jvm
from evalharness.envs.sciworld.registry import IDS, LCG_MULTIPLIER, before_class

_SERVER = "scienceworld.runtime.pythonapi.PythonInterface"
_INTERFACE = "scienceworld.runtime.AgentInterface"
_MAKER = "scienceworld.environments.EnvironmentMaker"
_PARSER = "scienceworld.input.InputParser"
_PAIR, _TRIPLE = "scala.Tuple2", "scala.Tuple3"
_LONG, _LONGS = "java.util.concurrent.atomic.AtomicLong", "java.util.concurrent.atomic.AtomicLongArray"
_REFERENCE = "java.util.concurrent.atomic.AtomicReference"
_OBJECT, _STRING = "java.lang.Object", "java.lang.String"
_IDS = "util.UniqueIdentifier"

REFUSED = "!"
"""First character of the answer to a text that the simulator refuses. The answer to any other text begins with `(`."""


class JavaWorld:
    """A loaded task in Java: a simulated world, and its values of the simulator's globals."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        handles, process = functions.handles, functions.process
        self._values = process.type(_LONGS)(2)
        self._interface = process.type(_REFERENCE)()
        """Java reference to the simulator's `AgentInterface` for this world."""
        self._for_server: list[Any] = []
        """The interface and the agent, each in a `scala.Some`, for two fields of the simulator's server."""
        self._restore = handles.function(functions.restore, self._values)
        self._keep = handles.function(functions.keep, self._values)
        self._turn = handles.function(functions.turn, self._values, self._interface)

    def load(self, task: str, variation: int, simplifications: str) -> None:
        """Make the world of a task, faster than the simulator's own `load`. Raise ValueError for an unknown task."""
        self._set(*self._functions.make_world(task, variation, simplifications))

    def load_as_stock(self, task: str, variation: int, simplifications: str, *, gold: bool) -> list[str]:
        """Make the same world with the simulator's own `load`. `gold`: also return the simulator's solution."""
        server = self._functions.server
        complaint = server.load(task, variation, simplifications, gold)
        if complaint:
            # Delete the error; otherwise every world would return it as its observation.
            getattr(server, "errorStr_$eq")("")
            raise ValueError(complaint)
        self._set(server.agentInterface(), server.agent())
        with self._functions.process.borrowing() as borrow:
            return [str(action) for action in borrow(server.getGoldActionSequence())]

    def _set(self, interface: Any, agent: Any) -> None:
        self._release()
        self._for_server = [interface, agent]
        with self._functions.process.borrowing() as borrow:
            self._interface.set(borrow(interface.get()))

    def restore(self) -> None:
        """Set the simulator's globals to this world's values, and make this world the server's current world."""
        self._functions.handles.call(self._restore)
        for field, value in zip(("agentInterface", "agent"), self._for_server, strict=True):
            getattr(self._functions.server, f"{field}_$eq")(value)

    def keep(self) -> None:
        """Store the current values of the simulator's globals as this world's values."""
        self._functions.handles.call(self._keep)

    def turn(self, text: str) -> str:
        """Play a turn. Return the text `(observation,score,completed)`, or `REFUSED` and the reason for the refusal."""
        return str(self._functions.handles.call(self._turn, text))

    def forget(self) -> None:
        """Let Java free the world."""
        self._release()
        for held in (self._restore, self._keep, self._turn, self._values, self._interface):
            self._functions.process.forget(held)

    def _release(self) -> None:
        for held in self._for_server:
            self._functions.process.forget(held)
        self._for_server = []


class Functions:
    def __init__(self, process: Jvm) -> None:
        self.process = process
        self.handles = Handles(process)
        self.server = process.type(_SERVER)()
        """The simulator's server object. Its methods use the world that `JavaWorld.restore` was called for last."""
        self._task_classes: dict[str, Any] = {}
        """Name of a task -> Java class of its kind of task."""
        self._random = getattr(process.type("scala.util.Random$"), "MODULE$").self()
        self._simplifier = process.type("main.scala.scienceworld.runtime.SimplifierProcessor")
        self._simplifications: str | None = None
        field = self._random.getClass().getDeclaredField("seed")
        field.setAccessible(True)
        self._random_state = self.handles.fix(self.handles.getter(field), 0, self._random)
        restore, keep = self._make_restore(), self._make_keep()
        self.restore = self.handles.add_ignored(restore, 1, _OBJECT, _OBJECT)
        self.keep = self.handles.add_ignored(keep, 1, _OBJECT, _OBJECT)
        turn = self.handles.feed(self._make_turn(self._make_step(), restore, keep), 1, self._make_getter())
        self.turn = self.handles.add_ignored(turn, 2, _OBJECT)

    def simplify(self, simplifications: str) -> None:
        """Make these simplifications active, unless they are active already."""
        if simplifications != self._simplifications:
            self._simplifier.parseSimplificationStr(simplifications)
            self._simplifications = simplifications

    def note_simplifications(self, simplifications: str | None) -> None:
        """Record which simplifications are active after the simulator's `load`, which sets them itself; None:
        unknown."""
        self._simplifications = simplifications

    def restart_random(self) -> None:
        """Set the state of the random stream to 0."""
        self._random.setSeed(LCG_MULTIPLIER)

    def make_world(self, task: str, variation: int, simplifications: str) -> tuple[Any, Any]:
        """Return the interface and the agent of a new world, each in a `scala.Some`. Raise ValueError for an unknown
        task. The world is equal to that of `PythonInterface.load`; see `registry`."""
        process, maker = self.process, self.server.taskMaker()
        ids, some = process.type(_IDS), process.type("scala.Some")
        with process.borrowing() as borrow:
            borrow(maker)
            if task not in self._task_classes:
                registered = borrow(maker.getTask(task))
                if registered.isEmpty():
                    raise ValueError(f"unknown task {task}")
                name = str(borrow(borrow(registered.get()).getClass()).getName())
                self._task_classes[task] = process.type(name)
            task_class = self._task_classes[task]
            first_id, random_state = before_class(task_class._fqn.rpartition(".")[2], variation)
            getattr(ids, "count_$eq")(first_id)
            self._random.setSeed(random_state ^ LCG_MULTIPLIER)
            task_class.registerTasks(maker)
            getattr(ids, "count_$eq")(IDS)
            self._random.setSeed(variation)
            pair = borrow(process.type(_MAKER).mkKitchenEnvironment(variation))
            universe, agent = borrow(pair._1()), borrow(pair._2())
            setup = borrow(maker.doTaskSetup(task, variation, universe, agent))
            goals = borrow(setup._1())
            if goals.isEmpty():
                raise ValueError(str(setup._2()))
            interface = process.type(_INTERFACE)(universe, agent, borrow(goals.get()), simplifications)
            return some(borrow(interface)), some(agent)

    def clear_history(self) -> None:
        """Delete the server's record of steps in earlier episodes."""
        history = self.process.type("scienceworld.goldagent.RunHistory")("", -1, -1, "", "", "")
        getattr(self.server, "currentHistory_$eq")(history)
        self.process.forget(history)

    def _make_getter(self) -> Handle:
        """Make a Java function (reference) that returns the interface of the loaded world."""
        make = self.handles
        return make.as_type(
            make.virtual(_REFERENCE, "get", "()Ljava/lang/Object;"),
            "(Ljava/util/concurrent/atomic/AtomicReference;)Lscienceworld/runtime/AgentInterface;",
        )

    def _make_restore(self) -> Handle:
        """Make a Java function (values) that sets the simulator's globals to a world's values."""
        make = self.handles
        seed, count = self._make_readers()
        set_seed = make.feed(make.virtual(_LONG, "set", "(J)V"), 0, self._random_state)
        set_count = make.static(_IDS, "count_$eq", "(J)V")
        return make.call_first(make.feed(set_count, 0, count), make.feed(set_seed, 0, seed))

    def _make_keep(self) -> Handle:
        """Make a Java function (values) that stores the simulator's globals in a world's values."""
        make = self.handles
        store = make.virtual(_LONGS, "set", "(IJ)V")
        seed = make.feed(make.virtual(_LONG, "get", "()J"), 0, self._random_state)
        count = make.static(_IDS, "count", "()J")
        store_seed, store_count = (
            make.feed(make.fix(store, 1, place), 1, source) for place, source in enumerate((seed, count))
        )
        return make.call_first(store_count, store_seed)

    def _make_readers(self) -> tuple[Handle, Handle]:
        """Make two Java functions (values) that return the random state and the id counter in a world's values."""
        get = self.handles.virtual(_LONGS, "get", "(I)J")
        return self.handles.fix(get, 1, 0), self.handles.fix(get, 1, 1)

    def _make_turn(self, step: Handle, restore: Handle, keep: Handle) -> Handle:
        """Make a Java function (values, interface, text): call `restore`, `step`, and in any case finally `keep`."""
        make = self.handles
        answer = make.add_ignored(make.identity(_STRING), 1, _LONGS)
        cleanup = make.call_first(make.add_ignored(answer, 0, "java.lang.Throwable"), keep, 2)
        return make.call_finally(make.call_first(make.add_ignored(step, 0, _LONGS), restore), cleanup)

    def _make_step(self) -> Handle:
        """Make a Java function (interface, text) that returns the result of the simulator's step as a text.

        The function first calls the parser, with an empty world, because only `teleport` looks for objects in the whole
        world. The parser puts an action into a queue. Then the function calls the simulator's own `step` with a text
        that adds no action: the answer 0 to a question without options. This step carries out the action in the queue.
        """
        make, process = self.handles, self.process
        some = "(Lscala/Option;)V"
        nowhere = process.type("scienceworld.struct.EnvObject")()
        no_options = process.type("scala.Some")(process.array("scienceworld.input.InputMatch"))
        parse_kind = "(Ljava/lang/String;Lscienceworld/struct/EnvObject;)Lscala/Tuple2;"
        parse = make.fix(make.virtual(_INTERFACE, "processUserInput", parse_kind), 2, nowhere)
        first = make.virtual(_PAIR, "_1", "()Ljava/lang/Object;")
        second = make.virtual(_PAIR, "_2", "()Ljava/lang/Object;")
        understood = make.as_type(first, "(Lscala/Tuple2;)Z")
        mark = make.fix(make.virtual(_STRING, "concat", "(Ljava/lang/String;)Ljava/lang/String;"), 0, REFUSED)
        refusal = make.then(make.as_type(second, "(Lscala/Tuple2;)Ljava/lang/String;"), mark)
        text = make.virtual(_TRIPLE, "toString", "()Ljava/lang/String;")
        stock = make.then(make.virtual(_INTERFACE, "step", "(Ljava/lang/String;)Lscala/Tuple3;"), text)
        ask = make.fix(make.virtual(_PARSER, "lastAmbiguousMatches_$eq", some), 1, no_options)
        parser = make.virtual(_INTERFACE, "inputParser", "()Lscienceworld/input/InputParser;")
        carry_out = make.call_first(make.fix(stock, 1, "0"), make.feed(ask, 0, parser))
        answer = make.choice(
            understood, make.add_ignored(carry_out, 0, _PAIR), make.add_ignored(refusal, 1, _INTERFACE)
        )
        parsed = make.call_first(make.add_ignored(answer, 2, _STRING), parse)
        # If an earlier error has stopped the simulator, call its own step, which returns this error.
        return make.choice(make.virtual(_INTERFACE, "isInErrorState", "()Z"), stock, parsed)


_FUNCTIONS: WeakKeyDictionary[Jvm, Functions] = WeakKeyDictionary()


def functions(process: Jvm) -> Functions:
    """Return the functions for a Java process. They are made once per process."""
    if process not in _FUNCTIONS:
        _FUNCTIONS[process] = Functions(process)
    return _FUNCTIONS[process]
