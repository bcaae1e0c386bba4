"""Carry out a turn of a world in one round trip to Java, and run separate worlds in one Java process.

The simulator has three JVM-wide singletons: the random stream, the counter of object ids and the simplifications. A
turn writes its world's values to the singletons, and stores the new values after it. So worlds in one process do not
affect each other.

A turn omits two parts of the stock `PythonInterface.step`: the records and output for the console (a look around, the
inventory, every visible name), and the collection of every object of the world, which only the action `teleport` needs.
Neither part affects the world; together they took 30 % of a step's time.
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
"""First character of the parser's answer to a refused text. The answer to an accepted text begins with `(`."""


class JavaWorld:
    """One world: its turns, and its values of the singletons."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        handles, process = functions.handles, functions.process
        self._values = process.type(_LONGS)(2)
        self._interface = process.type(_REFERENCE)()
        """Reference to the `AgentInterface` of the loaded task."""
        self._for_server: list[Any] = []
        """The interface and the agent, in the form of the server's fields."""
        self._restore = handles.function(functions.restore, self._values)
        self._keep = handles.function(functions.keep, self._values)
        self._turn = handles.function(functions.turn, self._values, self._interface)

    def load(self, task: str, variation: int, simplifications: str) -> None:
        """Make the world of a task. Raise ValueError if the simulator does not have the task."""
        self._set(*self._functions.make_world(task, variation, simplifications))

    def load_as_stock(self, task: str, variation: int, simplifications: str, *, gold: bool) -> list[str]:
        """Make the same world by the simulator's own `load`. `gold`: return the simulator's solution of the task."""
        server = self._functions.server
        complaint = server.load(task, variation, simplifications, gold)
        if complaint:
            getattr(server, "errorStr_$eq")(
                ""
            )  # otherwise every world would return this error as its observation
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
        """Write the world's values to the singletons, and the world to the server."""
        self._functions.handles.call(self._restore)
        for field, value in zip(("agentInterface", "agent"), self._for_server, strict=True):
            getattr(self._functions.server, f"{field}_$eq")(value)

    def keep(self) -> None:
        """Read the world's values from the singletons."""
        self._functions.handles.call(self._keep)

    def turn(self, text: str) -> str:
        """Play `text`. Return `(observation,score,completed)` in Scala's format, or `REFUSED` and a reason."""
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
        """The simulator's server; it uses the world that was restored last."""
        self._task_classes: dict[str, Any] = {}
        """Name of a task -> its class."""
        self._random = getattr(process.type("scala.util.Random$"), "MODULE$").self()
        self._simplifier = process.type("main.scala.scienceworld.runtime.SimplifierProcessor")
        self._simplifications: str | None = None
        field = self._random.getClass().getDeclaredField("seed")
        field.setAccessible(True)
        self._random_state = self.handles.fix(self.handles.getter(field), 0, self._random)
        restore, keep = self._restoring(), self._keeping()
        self.restore = self.handles.ignoring(restore, 1, _OBJECT, _OBJECT)
        self.keep = self.handles.ignoring(keep, 1, _OBJECT, _OBJECT)
        turn = self.handles.feed(self._around(self._step(), restore, keep), 1, self._get_loaded())
        self.turn = self.handles.ignoring(turn, 2, _OBJECT)

    def simplify(self, simplifications: str) -> None:
        """Set these simplifications if others are active."""
        if simplifications != self._simplifications:
            self._simplifier.parseSimplificationStr(simplifications)
            self._simplifications = simplifications

    def note_simplifications(self, simplifications: str | None) -> None:
        """Remember the simplifications that the simulator itself has set; None: unknown."""
        self._simplifications = simplifications

    def restart_random(self) -> None:
        """Set the state of the random stream to 0."""
        self._random.setSeed(LCG_MULTIPLIER)

    def make_world(self, task: str, variation: int, simplifications: str) -> tuple[Any, Any]:
        """Return a new interface and its agent, each in a `scala.Some`, as `PythonInterface.load` does.

        Raise ValueError if the simulator does not have the task."""
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
            made = borrow(maker.doTaskSetup(task, variation, universe, agent))
            goals = borrow(made._1())
            if goals.isEmpty():
                raise ValueError(str(made._2()))
            interface = process.type(_INTERFACE)(universe, agent, borrow(goals.get()), simplifications)
            return some(borrow(interface)), some(agent)

    def clear_history(self) -> None:
        """Delete the server's record of earlier stock steps."""
        history = self.process.type("scienceworld.goldagent.RunHistory")("", -1, -1, "", "", "")
        getattr(self.server, "currentHistory_$eq")(history)
        self.process.forget(history)

    def _get_loaded(self) -> Handle:
        """Function of (reference) that returns the interface to the loaded world."""
        make = self.handles
        return make.as_type(
            make.virtual(_REFERENCE, "get", "()Ljava/lang/Object;"),
            "(Ljava/util/concurrent/atomic/AtomicReference;)Lscienceworld/runtime/AgentInterface;",
        )

    def _restoring(self) -> Handle:
        """Function of (values) that writes the values to the singletons."""
        make = self.handles
        seed, count = self._values()
        set_seed = make.feed(make.virtual(_LONG, "set", "(J)V"), 0, self._random_state)
        set_count = make.static(_IDS, "count_$eq", "(J)V")
        return make.after(make.feed(set_count, 0, count), make.feed(set_seed, 0, seed))

    def _keeping(self) -> Handle:
        """Function of (values) that reads the values from the singletons."""
        make = self.handles
        store = make.virtual(_LONGS, "set", "(IJ)V")
        seed = make.feed(make.virtual(_LONG, "get", "()J"), 0, self._random_state)
        count = make.static(_IDS, "count", "()J")
        store_seed, store_count = (
            make.feed(make.fix(store, 1, place), 1, source) for place, source in enumerate((seed, count))
        )
        return make.after(store_count, store_seed)

    def _values(self) -> tuple[Handle, Handle]:
        """Functions of (values) that return the seed and the counter."""
        get = self.handles.virtual(_LONGS, "get", "(I)J")
        return self.handles.fix(get, 1, 0), self.handles.fix(get, 1, 1)

    def _around(self, step: Handle, restore: Handle, keep: Handle) -> Handle:
        """Function of (values, interface, text) that calls `step` and always stores the world's values after it."""
        make = self.handles
        answer = make.ignoring(make.identity(_STRING), 1, _LONGS)
        kept = make.after(make.ignoring(answer, 0, "java.lang.Throwable"), keep, 2)
        return make.ending(make.after(make.ignoring(step, 0, _LONGS), restore), kept)

    def _step(self) -> Handle:
        """Function of (interface, text) that returns the result of the simulator's `AgentInterface.step` as a text.

        It first calls the parser with an empty world; only `teleport` would look for objects there. Then it calls the
        simulator's own step with a text that the parser ignores (an out-of-range answer to a question without options).
        So the simulator carries out the action that the parser has put into the queue.
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
        carry_out = make.after(make.fix(stock, 1, "0"), make.feed(ask, 0, parser))
        answer = make.choice(
            understood, make.ignoring(carry_out, 0, _PAIR), make.ignoring(refusal, 1, _INTERFACE)
        )
        parsed = make.after(make.ignoring(answer, 2, _STRING), parse)
        # After an error in the simulator, every step returns that error.
        return make.choice(make.virtual(_INTERFACE, "isInErrorState", "()Z"), stock, parsed)


_FUNCTIONS: WeakKeyDictionary[Jvm, Functions] = WeakKeyDictionary()


def functions(process: Jvm) -> Functions:
    """Return the functions of a process; make them at the first use."""
    if process not in _FUNCTIONS:
        _FUNCTIONS[process] = Functions(process)
    return _FUNCTIONS[process]
