"""Simulate a household: a game's PDDL determines the state, and its grammar determines the texts.

The rules are those of TextWorld's PDDL environment (`stock.py`): the tests play games in both and compare the texts.
TextWorld needs 0.8 s to start a game and 30 to 50 ms for a step, mostly because it instantiates every action for a
planner and parses texts again. Our simulator needs no planner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from evalharness.envs.alfworld.grammar import (
    ActionText,
    Entity,
    Evaluated,
    Grammar,
    Part,
    Symbol,
    parse_grammar,
)
from evalharness.envs.alfworld.narration import Filled, Scene, derive
from evalharness.envs.alfworld.pddl import (
    Atom,
    Domain,
    Literal,
    Problem,
    Schema,
    parse_domain,
    parse_problem,
)
from evalharness.envs.alfworld.query import Arguments, FactBase, Query
from evalharness.envs.base import InvalidTaskError
from evalharness.envs.pddl_text import ROOT_TYPE

NOTHING_HAPPENS = "Nothing happens."
_BAR = "_bar_"
"""Text between kind and coordinates in an object's identifier; ALFRED's scenes have `|` there."""


class _Household:
    """A compiled game. It is shared by all episodes of the game, because a trainer plays many of them at a time."""

    def __init__(self, domain: str, grammar: str, problem: str) -> None:
        self.domain: Domain = parse_domain(domain)
        self.grammar: Grammar = parse_grammar(grammar)
        self.problem: Problem = parse_problem(problem, self.domain)
        self.entities = _entities(self.problem)
        members, schemas = _members(self.problem), self.domain.schemas
        self.initial = initial = FactBase()
        for atom in self.problem.init:
            initial.add(atom.predicate, atom.terms)
        self.applicable = [
            (schema, Query(schema.precondition, free=schema.parameters, members=members, facts=initial))
            for schema in schemas
        ]
        self.conditions = {
            effect.when: Query(effect.when, bound=schema.parameters, members=members, facts=initial)
            for schema in schemas
            for effect in schema.effects
            if effect.when is not None
        }
        self.goal = Query(self.problem.goal, members=members, facts=initial)
        changing = {effect.atom.predicate for schema in schemas for effect in schema.effects}
        self.fixed_template = {
            schema.name: not _asks_about(self.grammar, self.text(schema).template, changing)
            for schema in schemas
        }
        self.given = {schema.name: _collect_required(schema) for schema in schemas}
        self.command_texts: dict[tuple[str, Arguments], str | None] = {}
        """(action, arguments) -> command that is the same in every state, or None if the action never has an effect."""

    def text(self, schema: Schema) -> ActionText:
        try:
            return self.grammar.actions[schema.name]
        except KeyError:
            raise InvalidTaskError(f"the game's grammar has no action {schema.name!r}") from None


_household = lru_cache(maxsize=32)(_Household)


class World:
    """A household in play. `reset()` starts an episode, and `step(command)` plays a command; both return a text."""

    def __init__(self, game: Mapping[str, Any]) -> None:
        """`game` is the content of a `game.tw-pddl` file: a domain, a problem and a grammar, each as text."""
        try:
            domain, grammar, problem = (str(game[key]) for key in ("pddl_domain", "grammar", "pddl_problem"))
        except (KeyError, TypeError) as error:
            raise InvalidTaskError(f"not a TextWorld PDDL game: it has no {error}") from None
        self._household = _household(domain, grammar, problem)
        self._commands: dict[str, tuple[Schema, Arguments]] | None = None
        self.facts = self._household.initial.copy()
        self._denied = FactBase()

    @property
    def problem(self) -> Problem:
        return self._household.problem

    def reset(self) -> str:
        self.facts = self._household.initial.copy()
        self._denied = FactBase()
        self._commands = None
        return derive(self._household.grammar, (Symbol("intro"),), {}, self._scene())

    def step(self, command: str) -> str:
        action = self.commands().get(command.strip())
        if action is None:
            return NOTHING_HAPPENS
        schema, arguments = action
        self._apply(schema, arguments)
        feedback = self._household.text(schema).feedback
        return derive(self._household.grammar, feedback, _fill_parameters(schema, arguments), self._scene())

    @property
    def won(self) -> bool:
        return self._household.goal.holds(self.facts)

    def commands(self) -> Mapping[str, tuple[Schema, Arguments]]:
        """Map every command that the game accepts in this state to its action and arguments."""
        if self._commands is None:
            by_text: dict[str, tuple[Schema, Arguments]] = {}
            for schema, query in self._household.applicable:
                for arguments in query.solutions(self.facts):
                    command = self._command(schema, arguments)
                    if command is not None:
                        # If two actions have the same command, the first counts. No published game has such actions.
                        by_text.setdefault(command, (schema, arguments))
            self._commands = by_text
        return self._commands

    def name(self, identifier: str) -> str:
        return self._household.entities[identifier].name

    def _scene(self) -> Scene:
        return Scene(self.facts, self._denied, self._household.entities, self.problem.is_a)

    def _command(self, schema: Schema, arguments: Arguments) -> str | None:
        """Return the command of an action with these arguments; None if it cannot change the state."""
        home, key = self._household, (schema.name, arguments)
        if key in home.command_texts:
            return home.command_texts[key]
        text = None
        if not _has_no_effect(schema, arguments, home.given[schema.name]):
            filled = _fill_parameters(schema, arguments)
            text = derive(home.grammar, home.text(schema).template, filled, self._scene())
        if text is None or home.fixed_template[schema.name]:
            home.command_texts[key] = text
        return text

    def _apply(self, schema: Schema, arguments: Arguments) -> None:
        values = _values(schema, arguments)
        adds: list[Atom] = []
        deletes: list[Atom] = []
        for effect in schema.effects:
            if effect.when is None or self._household.conditions[effect.when].holds(self.facts, values):
                (adds if effect.adds else deletes).append(_ground(effect.atom, values))
        for atom in deletes:
            if atom not in adds:  # PDDL: an atom that is both added and deleted becomes true
                self.facts.discard(atom.predicate, atom.terms)
                self._denied.add(atom.predicate, atom.terms)
        for atom in adds:
            self.facts.add(atom.predicate, atom.terms)
            self._denied.discard(atom.predicate, atom.terms)
        self._commands = None


def _fill_parameters(schema: Schema, arguments: Arguments) -> Filled:
    pairs = zip(schema.parameters, arguments, strict=True)
    return {(parameter.name, parameter.type): value for parameter, value in pairs}


def _values(schema: Schema, arguments: Arguments) -> dict[str, str]:
    return {parameter.name: value for parameter, value in zip(schema.parameters, arguments, strict=True)}


def _ground(atom: Atom, values: Mapping[str, str]) -> Atom:
    return Atom(atom.predicate, tuple(values[t[1:]] if t.startswith("?") else t for t in atom.terms))


def _collect_required(schema: Schema) -> set[Literal]:
    """Return the literals that are in every conjunction of the precondition and have only parameters as variables."""
    names = {parameter.name for parameter in schema.parameters}
    always = set.intersection(*map(set, schema.precondition.conjunctions or [()]))
    return {literal for literal in always if literal.variables <= names}


def _has_no_effect(schema: Schema, arguments: Arguments, given: set[Literal]) -> bool:
    """Return whether the action cannot change the state, such as going to where the agent already stands.

    TextWorld's planner removes such actions, so they are not valid in the game.
    """
    values = _values(schema, arguments)
    known = {(_ground(literal.atom, values), literal.positive) for literal in given}
    adds = {_ground(effect.atom, values) for effect in schema.effects if effect.adds}
    for effect in schema.effects:
        atom = _ground(effect.atom, values)
        if effect.when is not None or not (
            (atom, effect.adds) in known or (not effect.adds and atom in adds)
        ):
            return False
    return True


def _members(problem: Problem) -> dict[str, list[str]]:
    members: dict[str, list[str]] = {ROOT_TYPE: []}
    for name, type_name in problem.objects.items():
        for wanted in dict.fromkeys(problem.lineage(type_name)):
            members.setdefault(wanted, []).append(name)
    return members


def _entities(problem: Problem) -> dict[str, Entity]:
    """Return identifier -> entity for the objects in the initial facts; the household does not contain any others."""
    mentioned = {term for atom in problem.init for term in atom.terms}
    names = readable_names(mentioned)
    try:
        return {i: Entity(i, problem.objects[i], names[i]) for i in sorted(mentioned)}
    except KeyError as error:
        raise InvalidTaskError(f"PDDL: an initial fact mentions {error}, which is not declared") from None


def _asks_about(grammar: Grammar, parts: tuple[Part, ...], predicates: set[str]) -> bool:
    """Return whether the text of `parts` may change when atoms of these predicates change."""
    for part in parts:
        if isinstance(part, Symbol):
            return True
        if isinstance(part, Evaluated) and (
            isinstance(part.inner, Symbol)
            or any(term.predicate.removeprefix("not_") in predicates for term in part.query)
        ):
            return True
    return False


def kind_of(identifier: str) -> str:
    kind = identifier.split(_BAR, 1)[0]
    return kind + "basin" if "basin" in identifier else kind


def readable_names(identifiers: Iterable[str]) -> dict[str, str]:
    """Map a game's identifiers (`cabinet_bar__plus_01_dot_20_bar_...`) to readable names (`cabinet 3`).

    As in ALFWorld, the n identifiers of a kind get the numbers n to 1 in alphabetical order. `sinkbasin` is another
    kind than `sink`. An identifier without coordinates gets no number; its name ends with a space.
    """
    ordered = sorted(set(identifiers))
    left = Counter(kind_of(identifier) for identifier in ordered if _BAR in identifier)
    names = {}
    for identifier in ordered:
        if _BAR in identifier:
            kind = kind_of(identifier)
            names[identifier] = f"{kind} {left[kind]}"
            left[kind] -= 1
        else:
            names[identifier] = f"{identifier} "
    return names
