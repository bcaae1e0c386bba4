"""The PDDL reader reads what the domains use and refuses the rest by name."""

from __future__ import annotations

import re

import pytest
from pddl_worlds import EXAMPLES

from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.problem import DOMAINS, domain_text
from evalharness.envs.pddl.syntax import parse_domain, parse_problem
from evalharness.envs.pddl_text import PddlError

DOMAIN = """
; a comment (with a parenthesis
(DEFINE (domain tiny)
  (:requirements :strips :typing)
  (:types cat dog - pet pet - object)
  (:constants rex - dog)
  (:predicates (here ?p - pet) (calm))
  (:action call :parameters (?a - pet?b - cat) :precondition (here ?a) :effect (and (here ?b) (not (calm)))))
"""
PROBLEM = """
(define (problem p) (:domain tiny) (:objects tom - cat) (:init (here rex) (calm)) (:goal (and (here tom))))
"""


def test_reads_types_constants_comments_and_case() -> None:
    domain = parse_domain(DOMAIN)
    assert domain.constants == {"rex": "dog"}
    assert domain.is_a("cat", "pet")
    assert domain.is_a("cat", "object")
    assert not domain.is_a("pet", "cat")
    (call,) = domain.operators
    # The published barman domain has a variable right behind a type, without a space.
    assert call.parameters == (("?a", "pet"), ("?b", "cat"))
    assert call.delete == (("calm",),)


def test_types_in_a_circle_are_followed_once() -> None:
    domain = parse_domain("(define (domain d) (:types cat - pet pet - cat))")
    assert domain.is_a("cat", "pet")
    assert not domain.is_a("cat", "dog")


def test_types_and_constants_bind_actions() -> None:
    domain = parse_domain(DOMAIN)
    world = GroundedProblem(domain, parse_problem(PROBLEM, domain))
    assert [str(action) for action in world.applicable(world.initial)] == ["call rex tom"]
    after = world.result(world.initial, world.applicable(world.initial)[0])
    assert world.solved(after)
    assert world.decode(after) == {("here", "rex"), ("here", "tom")}


@pytest.mark.parametrize("kind", DOMAINS)
def test_our_domain_files_and_examples_are_readable(kind: str) -> None:
    domain = parse_domain(domain_text(kind))
    assert GroundedProblem(domain, parse_problem(EXAMPLES[kind], domain)).actions


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "start"),
        ("(define (domain d)", "never closed"),
        ("(define (domain d)) x", "closing"),
        ("(" * 100, "deep"),
        ("(define (problem p))", "domain"),
        ("(define (domain d) (:functions (cost)))", ":functions is beyond"),
        ("(define (domain d) (:types a -))", "without a type"),
        ("(define (domain d) (:predicates (p)) (:action a :precondition (not (p))))", "beyond STRIPS"),
        ("(define (domain d) (:action a :duration 3))", ":duration is beyond"),
        ("(define (domain d) (:action a :effect (p)))", "declared predicate"),
        ("(define (domain d) (:predicates (p ?x)) (:action a :effect (p ?x)))", "unknown ?x"),
    ],
)
def test_what_is_no_strips_domain_is_refused(text: str, says: str) -> None:
    with pytest.raises(PddlError, match=re.escape(says)):
        parse_domain(text)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("(here rex)", "((here) rex)", "got a list"),
        ("(here rex)", "(here nobody)", "unknown nobody"),
        ("(here rex)", "(here rex rex)", "declared predicate"),
        ("tom - cat", "tom - fish", "undeclared type fish"),
        ("(and (here tom))", "(or (here tom))", "beyond STRIPS"),
        ("(:init", "(:metric minimize) (:init", ":metric is beyond"),
        ("(:goal (and (here tom)))", "", "no :goal section"),
    ],
)
def test_what_is_no_strips_problem_is_refused(old: str, new: str, says: str) -> None:
    assert old in PROBLEM
    with pytest.raises(PddlError, match=says):
        parse_problem(PROBLEM.replace(old, new), parse_domain(DOMAIN))


def test_a_problem_of_another_domain_is_refused() -> None:
    domain = parse_domain(DOMAIN)
    with pytest.raises(PddlError, match="of domain elsewhere"):
        GroundedProblem(
            domain, parse_problem(PROBLEM.replace("(:domain tiny)", "(:domain elsewhere)"), domain)
        )
