"""Compose functions inside Java from Java's public methods, by calls of `java.lang.invoke.MethodHandles` from Python.

A composed function runs many methods in one round trip between Python and Java. So we need no Java code of our own.
"""

from __future__ import annotations

from typing import Any, NewType

from evalharness.envs.sciworld.jvm import Jvm

Handle = NewType("Handle", object)


class Handles:
    """Makes functions in one Java process. Types are in Java's notation: `(Ljava/lang/String;)Z`."""

    def __init__(self, process: Jvm) -> None:
        self._process = process
        # Look up each static method only once, because a look-up is a round trip, too.
        methods = process.type("java.lang.invoke.MethodHandles")
        self._insert, self._drop, self._collect = (
            methods.insertArguments,
            methods.dropArguments,
            methods.collectArguments,
        )
        self._fold, self._filter_result = methods.foldArguments, methods.filterReturnValue
        self._guard, self._try_finally, self._identity = (
            methods.guardWithTest,
            methods.tryFinally,
            methods.identity,
        )
        self._lookup = methods.publicLookup()
        self._as_function = process.type("java.lang.invoke.MethodHandleProxies").asInterfaceInstance
        self._list = process.type("java.util.List").of
        self._class_named = process.type("java.lang.Class").forName
        self._type_written = process.type("java.lang.invoke.MethodType").fromMethodDescriptorString
        self._loader = self._class_named("scala.Tuple2").getClassLoader()
        self._operator = self._class_named("java.util.function.BinaryOperator")
        self._cell = process.type("java.util.concurrent.atomic.AtomicReference")()
        self._known: dict[str, Any] = {}
        """Name of a Java class -> class, and Java's notation of a function type -> type."""
        self._made: list[Any] = []
        """All composed functions. They are kept, because freeing one of them in Java would be another round trip."""

    def virtual(self, owner: str, name: str, kind: str) -> Handle:
        """Return the method `name` of the class `owner` as a function, whose first argument is the object."""
        return self._keep(self._lookup.findVirtual(self._class(owner), name, self._type(kind)))

    def static(self, owner: str, name: str, kind: str) -> Handle:
        return self._keep(self._lookup.findStatic(self._class(owner), name, self._type(kind)))

    def getter(self, field: Any) -> Handle:
        """Return a function (object) that reads a `java.lang.reflect.Field`. The field must be accessible."""
        return self._keep(self._lookup.unreflectGetter(field))

    def fix(self, handle: Handle, position: int, value: Any) -> Handle:
        return self._keep(self._insert(handle, position, self._list(value).toArray()))

    def add_ignored(self, handle: Handle, position: int, *kinds: str) -> Handle:
        """Return the function with additional arguments of the types `kinds` at `position`, which it ignores."""
        return self._keep(self._drop(handle, position, self._list(*map(self._class, kinds))))

    def as_type(self, handle: Handle, kind: str) -> Handle:
        return self._keep(handle.asType(self._type(kind)))  # type: ignore[attr-defined]

    def feed(self, handle: Handle, position: int, source: Handle) -> Handle:
        """Return the function with one argument replaced: the result of `source` takes its place."""
        return self._keep(self._collect(handle, position, source))

    def then(self, handle: Handle, after: Handle) -> Handle:
        return self._keep(self._filter_result(handle, after))

    def call_first(self, handle: Handle, first: Handle, position: int = 0) -> Handle:
        """Return a function that first calls `first` with the arguments from `position`, and inserts its result
        there."""
        return self._keep(self._fold(handle, position, first))

    def choice(self, test: Handle, yes: Handle, no: Handle) -> Handle:
        return self._keep(self._guard(test, yes, no))

    def call_finally(self, handle: Handle, cleanup: Handle) -> Handle:
        """Return a function that calls `cleanup` at its end (try-finally) with its exception, result and arguments."""
        return self._keep(self._try_finally(handle, cleanup))

    def identity(self, kind: str) -> Handle:
        return self._keep(self._identity(self._class(kind)))

    def function(self, handle: Handle, *first: Any) -> Any:
        """Return a Java object for `call`: the function with all arguments fixed except the last two.

        Call `Jvm.forget` for the object when it is not needed any more, so that Java frees the fixed arguments.
        """
        bound: Any = handle
        with self._process.borrowing() as borrow:
            for value in first:
                bound = borrow(bound.bindTo(value))
            return self._as_function(self._operator, bound)

    def call(self, function: Any, argument: str | None = None) -> Any:
        """Call an object of `function` with two arguments: the previous result, which our functions ignore, and
        `argument`. Java's `accumulateAndGet` makes the call, because py4j cannot call classes made at run time."""
        return self._cell.accumulateAndGet(argument, function)

    def _class(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._class_named(name)
        return self._known[name]

    def _type(self, kind: str) -> Any:
        if kind not in self._known:
            self._known[kind] = self._type_written(kind, self._loader)
        return self._known[kind]

    def _keep(self, handle: Any) -> Handle:
        self._made.append(handle)
        return Handle(handle)
