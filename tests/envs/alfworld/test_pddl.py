"""PDDL conditions and text grammars, on small worlds of our own."""

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalharness.envs.alfworld.grammar import Entity, Symbol, parse_grammar
from evalharness.envs.alfworld.narration import Scene, derive
from evalharness.envs.alfworld.pddl import Variable, condition_of, parse_domain, parse_problem
from evalharness.envs.alfworld.query import FactBase, Query
from evalharness.envs.alfworld.world import readable_names
from evalharness.envs.base import InvalidTaskError
from evalharness.envs.pddl_text import Tree

OBJECTS = {"ann": "person", "bob": "person", "hat": "thing", "cup": "thing", "jar": "thing"}
MEMBERS = {
    "object": list(OBJECTS),
    "person": ["ann", "bob"],
    "thing": ["hat", "cup", "jar"],
    "ghost": [],
}
ARITY = {"red": 1, "likes": 2, "=": 2}

names = st.sampled_from(["x", "y", "z"])
terms = st.one_of(names.map("?{}".format), st.sampled_from(sorted(OBJECTS)))
variables = st.lists(st.tuples(names, st.sampled_from(sorted(MEMBERS))), max_size=2, unique_by=lambda v: v[0])


@st.composite
def atoms(draw: st.DrawFn) -> Tree:
    predicate = draw(st.sampled_from(sorted(ARITY)))
    return [predicate, *(draw(terms) for _ in range(ARITY[predicate]))]


@st.composite
def existentials(draw: st.DrawFn, inner: st.SearchStrategy[Tree]) -> Tree:
    return [
        "exists",
        [word for name, kind in draw(variables) for word in (f"?{name}", "-", kind)],
        draw(inner),
    ]


def combined(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    several = st.lists(inner, max_size=3)
    return st.one_of(several.map(lambda parts: ["and", *parts]), several.map(lambda parts: ["or", *parts]))


negated = st.recursive(atoms(), combined, max_leaves=3).map(lambda part: ["not", part])
implied = st.tuples(atoms(), atoms()).map(lambda parts: ["imply", *parts])
conditions: st.SearchStrategy[Tree] = st.recursive(
    st.one_of(atoms(), negated, implied),
    lambda inner: st.one_of(combined(inner), existentials(inner)),
    max_leaves=6,
)
worlds = st.lists(
    st.one_of(
        st.tuples(st.just("red"), st.tuples(st.sampled_from(sorted(OBJECTS)))),
        st.tuples(st.just("likes"), st.tuples(*[st.sampled_from(sorted(OBJECTS))] * 2)),
    ),
    max_size=12,
)


def is_true(condition: Tree, facts: FactBase, values: Mapping[str, str]) -> bool:
    """The textbook meaning of a condition, by trying every object for every quantified variable."""
    match condition:
        case ["not", part]:
            return not is_true(part, facts, values)
        case ["and", *parts]:
            return all(is_true(part, facts, values) for part in parts)
        case ["or", *parts]:
            return any(is_true(part, facts, values) for part in parts)
        case ["imply", given, then]:
            return not is_true(given, facts, values) or is_true(then, facts, values)
        case ["exists", listed, part]:
            bound = [name.removeprefix("?") for name in listed[::3]]
            choices = product(*(MEMBERS[kind] for kind in listed[2::3]))
            return any(is_true(part, facts, {**values, **dict(zip(bound, c, strict=True))}) for c in choices)
        case [predicate, *raw]:
            arguments = tuple(values[t[1:]] if t.startswith("?") else t for t in raw)
            return arguments[0] == arguments[1] if predicate == "=" else facts.holds(predicate, arguments)
    raise AssertionError(condition)


@pytest.mark.slow
@settings(deadline=None)
@given(conditions, worlds, st.sampled_from(["object", "person", "thing"]))
def test_a_query_finds_exactly_the_bindings_that_make_its_condition_true(
    condition: Tree, world: list[tuple[str, tuple[str, ...]]], type_name: str
) -> None:
    facts = FactBase()
    for predicate, arguments in world:
        facts.add(predicate, arguments)
    free = [Variable("x", type_name), Variable("y", "thing"), Variable("z", "person")]
    query = Query(condition_of(condition, free), free=free, members=MEMBERS, facts=facts)
    wanted = {
        values
        for values in product(*(MEMBERS[variable.type] for variable in free))
        if is_true(condition, facts, dict(zip("xyz", values, strict=True)))
    }
    found = query.solutions(facts)
    assert set(found) == wanted
    assert len(found) == len(wanted)
    assert query.holds(facts) is bool(wanted)


@given(worlds)
def test_the_indexes_of_a_fact_base_follow_additions_and_removals(
    world: list[tuple[str, tuple[str, ...]]],
) -> None:
    facts = FactBase()
    for predicate, arguments in world:
        facts.add(predicate, arguments)
    for predicate, arguments in world[::2]:
        facts.discard(predicate, arguments)
    left = set(world) - set(world[::2])
    assert set(facts.of("likes")) == {arguments for predicate, arguments in left if predicate == "likes"}
    for name in OBJECTS:
        assert set(facts.match("likes", (None, name))) == {
            a for p, a in left if p == "likes" and a[1] == name
        }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(define (problem p)",
        "(define (problem p)))",
        "(define)",
        "(define (domain d))",
        "(define (problem p) (:init fact) (:goal ()))",
        "(define (problem p) (:init))",
        "(define (problem p) (:init) (:goal (not)))",
        "(define (problem p) (:init) (:goal fact))",
        f"(define (problem p) (:init) (:goal {'(not ' * 2000}(p){')' * 2000}))",
    ],
)
def test_a_malformed_problem_is_named_as_such(text: str) -> None:
    domain = parse_domain("(define (domain d) (:types thing))")
    with pytest.raises(InvalidTaskError):
        parse_problem(text, domain)


def test_tokens_are_split_by_white_space_and_parentheses_only() -> None:
    """As in Fast Downward, `location,` is a type of its own: TextWorld plays the published domain that way."""
    domain = parse_domain(
        "(define (domain d) (:action a :parameters () :effect ()"
        " :precondition (exists (?l - place, ?r - Box) (at ?l))))"
    )
    assert domain.schemas[0].precondition.lifted == (Variable("l", "place,"), Variable("r", "box"))


@pytest.mark.parametrize(
    "form", ["(forall (?l - place) (at ?l))", "(not (exists (?l - place) (at ?l)))", "(= ?l)"]
)
def test_what_no_household_says_is_refused(form: str) -> None:
    with pytest.raises(InvalidTaskError):
        parse_domain(f"(define (domain d) (:action a :parameters () :effect () :precondition {form}))")


GRAMMAR = '''
grammar :: """ { "intro": [ {"rhs": "You own [{t.indefinite + ' ' + t.name | owns(p:person, t:thing)}]."} ],
  "list_empty": [{"rhs": "nothing"}], "list_separator": [{"rhs": ", "}],
  "list_last_separator": [{"rhs": ", and "}] } """;
action Give { template :: "give {t}"; feedback :: "#given#";  # a comment
  grammar :: """ { "given": [ {"condition": "owns(p:person, t:thing)", "rhs": "Still yours."},
                              {"rhs": "{t.name or t.id} is gone.}"} ] } """; }
'''


def _scene(*owned: str) -> Scene:
    facts = FactBase()
    for thing in owned:
        facts.add("owns", ("ann", thing))
    entities = {name: Entity(name, type_name, name) for name, type_name in OBJECTS.items()}
    return Scene(facts, FactBase(), entities, lambda type_name, wanted: wanted in (type_name, "object"))


@pytest.mark.parametrize(
    ("owned", "text"),
    [
        ((), "You own nothing."),
        (("hat",), "You own a hat."),
        (("jar", "cup"), "You own a cup, and a jar."),
        (("jar", "hat", "cup"), "You own a cup, a hat, and a jar."),
    ],
)
def test_a_list_is_alphabetical_and_in_words(owned: tuple[str, ...], text: str) -> None:
    assert derive(parse_grammar(GRAMMAR), (Symbol("intro"),), {}, _scene(*owned)) == text


def test_the_first_rule_whose_condition_holds_is_used() -> None:
    grammar, scene = parse_grammar(GRAMMAR), _scene("hat")
    for thing, text in (("hat", "Still yours."), ("cup", "cup is gone.")):
        filled = {("t", "thing"): thing}
        assert derive(grammar, grammar.actions["give"].feedback, filled, scene) == text
        assert derive(grammar, grammar.actions["give"].template, filled, scene) == f"give {thing}"


@pytest.mark.parametrize(
    "expression",
    ["__import__('os')", "t.__class__", "t.name.upper()", "open(t)", "1", "lambda: t", "t.name if t else t"],
)
def test_a_game_cannot_run_code(expression: str) -> None:
    with pytest.raises(InvalidTaskError):
        parse_grammar(f'action Give {{ template :: "give {{{expression}}}"; feedback :: "x"; }}')


def test_names_count_down_in_alphabetical_order() -> None:
    names = readable_names(
        ["mug_bar_1", "mug_bar_3", "mug_bar_2", "sink_bar_1", "sink_bar_1_bar_sinkbasin", "mugtype"]
    )
    assert names == {
        "mug_bar_1": "mug 3",
        "mug_bar_2": "mug 2",
        "mug_bar_3": "mug 1",
        "mugtype": "mugtype ",
        "sink_bar_1": "sink 1",
        "sink_bar_1_bar_sinkbasin": "sinkbasin 1",
    }
