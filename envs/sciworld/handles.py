"""Functions put together inside Java from public methods that are there: `java.lang.invoke.MethodHandles` from Python.

Nothing is compiled outside Java and no class is added. A function is called in one round trip, with one text.
"""

from __future__ import annotations

from typing import Any, NewType

from envs.sciworld.jvm import Jvm

Handle = NewType("Handle", object)
"""A `java.lang.invoke.MethodHandle` in Java."""


class Handles:
    """Makes functions in one Java process. Types are written as Java writes them: `(Ljava/lang/String;)Z`."""

    def __init__(self, process: Jvm) -> None:
        self._process = process
        self._methods = process.type("java.lang.invoke.MethodHandles")
        self._types = process.type("java.lang.invoke.MethodType")
        self._proxies = process.type("java.lang.invoke.MethodHandleProxies")
        self._lookup = self._methods.publicLookup()
        self._classes = process.type("java.lang.Class")
        self._loader = self._classes.forName("scala.Tuple2").getClassLoader()
        self._operator = self._classes.forName("java.util.function.BinaryOperator")
        self._cell = process.type("java.util.concurrent.atomic.AtomicReference")()
        self._known: dict[str, Any] = {}
        """Classes by name, types by how they are written."""
        self._made: list[Any] = []
        """Held, because Python would ask Java to forget each of them, which is a round trip."""

    def virtual(self, owner: str, name: str, kind: str) -> Handle:
        """The method `name` of `owner`; its first argument is the object."""
        return self._keep(self._lookup.findVirtual(self._class(owner), name, self._type(kind)))

    def static(self, owner: str, name: str, kind: str) -> Handle:
        return self._keep(self._lookup.findStatic(self._class(owner), name, self._type(kind)))

    def getter(self, field: Any) -> Handle:
        """What a `java.lang.reflect.Field` of an object holds; it has to be accessible."""
        return self._keep(self._lookup.unreflectGetter(field))

    def given(self, handle: Handle, position: int, value: Any) -> Handle:
        """With one argument given."""
        values = self._process.array("java.lang.Object", value)
        return self._keep(self._methods.insertArguments(handle, position, values))

    def ignoring(self, handle: Handle, position: int, *kinds: str) -> Handle:
        """With more arguments, which it does not use."""
        classes = self._process.array("java.lang.Class", *map(self._class, kinds))
        return self._keep(self._methods.dropArguments(handle, position, classes))

    def as_type(self, handle: Handle, kind: str) -> Handle:
        """With arguments and result cast."""
        return self._keep(handle.asType(self._type(kind)))  # type: ignore[attr-defined]

    def applied(self, handle: Handle, position: int, source: Handle) -> Handle:
        """With one argument taken from what `source` returns."""
        return self._keep(self._methods.collectArguments(handle, position, source))

    def then(self, handle: Handle, after: Handle) -> Handle:
        """What `after` makes of its result."""
        return self._keep(self._methods.filterReturnValue(handle, after))

    def after(self, handle: Handle, first: Handle, position: int = 0) -> Handle:
        """`first` is called before, with the arguments from `position`; its result, if any, becomes one more there."""
        return self._keep(self._methods.foldArguments(handle, position, first))

    def choice(self, test: Handle, yes: Handle, no: Handle) -> Handle:
        return self._keep(self._methods.guardWithTest(test, yes, no))

    def ending(self, handle: Handle, cleanup: Handle) -> Handle:
        """`cleanup` is called after it, with what it raised, what it returned, and its first arguments."""
        return self._keep(self._methods.tryFinally(handle, cleanup))

    def identity(self, kind: str) -> Handle:
        return self._keep(self._methods.identity(self._class(kind)))

    def function(self, handle: Handle, *first: Any) -> Any:
        """`handle` with its first arguments given, two being left, as an object that `call` can call.

        It keeps these objects in Java: forget it when it is not needed any more.
        """
        bound: Any = handle
        with self._process.borrowing() as borrow:
            for value in first:
                bound = borrow(bound.bindTo(value))
            return self._proxies.asInterfaceInstance(self._operator, bound)

    def call(self, function: Any, argument: str | None = None) -> Any:
        """The function's first argument is whatever was returned last.

        Through a class of Java's own, because the gateway may not call methods of classes made at run time.
        """
        return self._cell.accumulateAndGet(argument, function)

    def _class(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._classes.forName(name)
        return self._known[name]

    def _type(self, kind: str) -> Any:
        if kind not in self._known:
            self._known[kind] = self._types.fromMethodDescriptorString(kind, self._loader)
        return self._known[kind]

    def _keep(self, made: Any) -> Handle:
        self._made.append(made)
        return Handle(made)
