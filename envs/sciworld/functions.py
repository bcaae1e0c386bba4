"""One turn of a world in one round trip to Java, and separate worlds in one Java process.

The simulator keeps three things in JVM-wide singletons: the random stream, the counter of object ids and the
simplifications. A turn restores its world's own values before and stores them after, so worlds in one process behave
as if each had its own.

A turn omits what the stock `PythonInterface.step` does for its own records and for the console (a look around, the
inventory, every name in sight), and what the parser does only for the action `teleport`: it collects every object of
the world. Neither affects the world; together they took 30 % of a step's time.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from evalharness.envs.sciworld.handles import Handle, Handles
from evalharness.envs.sciworld.jvm import Jvm

_SERVER = "scienceworld.runtime.pythonapi.PythonInterface"
_INTERFACE = "scienceworld.runtime.AgentInterface"
_PARSER = "scienceworld.input.InputParser"
_PAIR, _TRIPLE = "scala.Tuple2", "scala.Tuple3"
_LONG, _LONGS = "java.util.concurrent.atomic.AtomicLong", "java.util.concurrent.atomic.AtomicLongArray"
_OBJECT, _STRING = "java.lang.Object", "java.lang.String"
_IDS = "util.UniqueIdentifier"

_LCG_MULTIPLIER = 0x5DEECE66D
"""`java.util.Random.setSeed(s)` stores `s ^ multiplier` (documented there)."""

REFUSED = "!"
"""Marks the parser's answer to a refused text. The answer to an accepted text is a tuple, which begins with `(`."""


class JavaWorld:
    """The world loaded in a server (a `PythonInterface`): its turns, and its values of the singletons."""

    def __init__(self, functions: Functions, server: Any) -> None:
        self._functions = functions
        handles, process = functions.handles, functions.process
        values = process.type(_LONGS)(2)
        self._restore = handles.function(functions.restore, values)
        self._keep = handles.function(functions.keep, values)
        self._turn = handles.function(functions.turn, values, server)
        process.forget(values)

    def restore(self) -> None:
        """Write the world's values into the singletons."""
        self._functions.handles.call(self._restore)

    def keep(self) -> None:
        """Read the world's values from the singletons."""
        self._functions.handles.call(self._keep)

    def turn(self, text: str) -> str:
        """Return the answer to `text`: `(observation,score,completed)` in Scala's format, or `REFUSED` and a reason."""
        return str(self._functions.handles.call(self._turn, text))

    def forget(self) -> None:
        """Let Java free the world."""
        for function in (self._restore, self._keep, self._turn):
            self._functions.process.forget(function)


class Functions:
    def __init__(self, process: Jvm) -> None:
        self.process = process
        self.handles = Handles(process)
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
        """Note the simplifications that the simulator has set itself; None: unknown."""
        self._simplifications = simplifications

    def restart_random(self) -> None:
        """Set the random stream to the state 0."""
        self._random.setSeed(_LCG_MULTIPLIER)

    def _get_loaded(self) -> Handle:
        """(server): the interface to the loaded world."""
        make = self.handles
        option = make.virtual(_SERVER, "agentInterface", "()Lscala/Option;")
        get = make.virtual("scala.Option", "get", "()Ljava/lang/Object;")
        return make.as_type(
            make.then(option, get),
            "(Lscienceworld/runtime/pythonapi/PythonInterface;)Lscienceworld/runtime/AgentInterface;",
        )

    def _restoring(self) -> Handle:
        """(values): write them into the singletons."""
        make = self.handles
        seed, count = self._values()
        set_seed = make.feed(make.virtual(_LONG, "set", "(J)V"), 0, self._random_state)
        set_count = make.static(_IDS, "count_$eq", "(J)V")
        return make.after(make.feed(set_count, 0, count), make.feed(set_seed, 0, seed))

    def _keeping(self) -> Handle:
        """(values): read them from the singletons."""
        make = self.handles
        store = make.virtual(_LONGS, "set", "(IJ)V")
        seed = make.feed(make.virtual(_LONG, "get", "()J"), 0, self._random_state)
        count = make.static(_IDS, "count", "()J")
        store_seed, store_count = (
            make.feed(make.fix(store, 1, place), 1, source) for place, source in enumerate((seed, count))
        )
        return make.after(store_count, store_seed)

    def _values(self) -> tuple[Handle, Handle]:
        """(values): the seed, the counter."""
        get = self.handles.virtual(_LONGS, "get", "(I)J")
        return self.handles.fix(get, 1, 0), self.handles.fix(get, 1, 1)

    def _around(self, step: Handle, restore: Handle, keep: Handle) -> Handle:
        """(values, interface, text): `step` on the world's own values, which are stored also if it fails."""
        make = self.handles
        answer = make.ignoring(make.identity(_STRING), 1, _LONGS)
        kept = make.after(make.ignoring(answer, 0, "java.lang.Throwable"), keep, 2)
        return make.ending(make.after(make.ignoring(step, 0, _LONGS), restore), kept)

    def _step(self) -> Handle:
        """(interface, text): the result of the simulator's `AgentInterface.step`, as a text.

        The parser is called first, with an empty place for the world in which only `teleport` looks for objects. Then
        comes the simulator's own step, with a text that is not parsed: it is an out-of-range answer to a question
        without options, and leaves the action in the queue where the parser has put it.
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
        # After an error inside the simulator every step answers with that error.
        return make.choice(make.virtual(_INTERFACE, "isInErrorState", "()Z"), stock, parsed)


_FUNCTIONS: WeakKeyDictionary[Jvm, Functions] = WeakKeyDictionary()


def functions(process: Jvm) -> Functions:
    """Return the functions of a process, made on first use."""
    if process not in _FUNCTIONS:
        _FUNCTIONS[process] = Functions(process)
    return _FUNCTIONS[process]
