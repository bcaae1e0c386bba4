"""Compose functions in Java from its public methods, with `java.lang.invoke.MethodHandles` called from Python.

No code is compiled outside Java, and no class is added. A call of such a function is one round trip with one text.
"""

from __future__ import annotations

from typing import Any, NewType

from evalharness.envs.sciworld.jvm import Jvm

Handle = NewType("Handle", object)


class Handles:
    """Makes functions in one Java process. Types are in Java's notation: `(Ljava/lang/String;)Z`."""

    def __init__(self, process: Jvm) -> None:
        self._process = process
        # Cache the static methods, because each look-up is a round trip, too.
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
        """Name of a class -> class; notation of a type -> type."""
        self._made: list[Any] = []
        """References to all objects; otherwise Python would ask Java to free each object, which is a round trip."""

    def virtual(self, owner: str, name: str, kind: str) -> Handle:
        """Return the method `name` of `owner`; its first argument is the object."""
        return self._keep(self._lookup.findVirtual(self._class(owner), name, self._type(kind)))

    def static(self, owner: str, name: str, kind: str) -> Handle:
        return self._keep(self._lookup.findStatic(self._class(owner), name, self._type(kind)))

    def getter(self, field: Any) -> Handle:
        """Return a function that reads a `java.lang.reflect.Field` of an object; the field must be accessible."""
        return self._keep(self._lookup.unreflectGetter(field))

    def fix(self, handle: Handle, position: int, value: Any) -> Handle:
        return self._keep(self._insert(handle, position, self._list(value).toArray()))

    def ignoring(self, handle: Handle, position: int, *kinds: str) -> Handle:
        """Add arguments that the function ignores."""
        return self._keep(self._drop(handle, position, self._list(*map(self._class, kinds))))

    def as_type(self, handle: Handle, kind: str) -> Handle:
        return self._keep(handle.asType(self._type(kind)))  # type: ignore[attr-defined]

    def feed(self, handle: Handle, position: int, source: Handle) -> Handle:
        """Take one argument from the result of `source`."""
        return self._keep(self._collect(handle, position, source))

    def then(self, handle: Handle, after: Handle) -> Handle:
        return self._keep(self._filter_result(handle, after))

    def after(self, handle: Handle, first: Handle, position: int = 0) -> Handle:
        """Call `first` before the function, with the arguments from `position`; insert its result there, if any."""
        return self._keep(self._fold(handle, position, first))

    def choice(self, test: Handle, yes: Handle, no: Handle) -> Handle:
        return self._keep(self._guard(test, yes, no))

    def ending(self, handle: Handle, cleanup: Handle) -> Handle:
        """Call `cleanup` after the function, with the function's exception, result, and first arguments."""
        return self._keep(self._try_finally(handle, cleanup))

    def identity(self, kind: str) -> Handle:
        return self._keep(self._identity(self._class(kind)))

    def function(self, handle: Handle, *first: Any) -> Any:
        """Fix all arguments of `handle` except the last two. Return an object that `call` can call.

        The object keeps its arguments in Java; `forget` it when it is no longer needed.
        """
        bound: Any = handle
        with self._process.borrowing() as borrow:
            for value in first:
                bound = borrow(bound.bindTo(value))
            return self._as_function(self._operator, bound)

    def call(self, function: Any, argument: str | None = None) -> Any:
        """Call a function; its first argument is the last returned value.

        It uses a class of Java, because the gateway must not call methods of classes that were made at run time.
        """
        return self._cell.accumulateAndGet(argument, function)

    def _class(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._class_named(name)
        return self._known[name]

    def _type(self, kind: str) -> Any:
        if kind not in self._known:
            self._known[kind] = self._type_written(kind, self._loader)
        return self._known[kind]

    def _keep(self, made: Any) -> Handle:
        self._made.append(made)
        return Handle(made)
