"""The set of ground atoms that are true, indexed by predicate and by each argument."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Arguments = tuple[str, ...]


class FactBase:
    def __init__(self) -> None:
        # Dictionaries as ordered sets: iteration must not depend on the hash seed.
        self._all: dict[str, dict[Arguments, None]] = {}
        self._by_argument: dict[tuple[str, int, str], dict[Arguments, None]] = {}

    def copy(self) -> FactBase:
        other = FactBase()
        other._all = {key: facts.copy() for key, facts in self._all.items()}
        other._by_argument = {key: facts.copy() for key, facts in self._by_argument.items()}
        return other

    def add(self, predicate: str, arguments: Arguments) -> None:
        known = self._all.setdefault(predicate, {})
        if arguments in known:
            return
        known[arguments] = None
        for position, value in enumerate(arguments):
            self._by_argument.setdefault((predicate, position, value), {})[arguments] = None

    def discard(self, predicate: str, arguments: Arguments) -> None:
        known = self._all.get(predicate, {})
        if arguments not in known:
            return
        del known[arguments]
        for position, value in enumerate(arguments):
            del self._by_argument[predicate, position, value][arguments]

    def holds(self, predicate: str, arguments: Arguments) -> bool:
        return arguments in self._all.get(predicate, {})

    def of(self, predicate: str) -> Iterable[Arguments]:
        return self._all.get(predicate, {})

    def candidates(self, predicate: str, pattern: Sequence[str | None]) -> Iterable[Arguments]:
        """A superset of the facts that fit the pattern (None = anything): those of its rarest argument."""
        best: dict[Arguments, None] | None = None
        for position, value in enumerate(pattern):
            if value is not None:
                found = self._by_argument.get((predicate, position, value))
                if not found:
                    return ()
                if best is None or len(found) < len(best):
                    best = found
        return self._all.get(predicate, {}) if best is None else best

    def match(self, predicate: str, pattern: Sequence[str | None]) -> list[Arguments]:
        """The facts that fit the pattern."""
        return [
            arguments
            for arguments in self.candidates(predicate, pattern)
            if len(arguments) == len(pattern)
            and all(wanted in (None, value) for wanted, value in zip(pattern, arguments, strict=True))
        ]

    def count(self, predicate: str) -> int:
        return len(self._all.get(predicate, {}))

    def distinct(self, predicate: str, position: int) -> int:
        """How many different values this argument takes."""
        return len({arguments[position] for arguments in self.of(predicate) if position < len(arguments)})
