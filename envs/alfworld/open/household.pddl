;; A home with one robot in it, written for evalharness.
;; The vocabulary of facts and the effects of commands are those of ALFWorld's text games, so that
;; one adapter, one oracle and one prompt serve both; the definitions are our own.
(define (domain household)
  (:requirements :adl :typing)
  (:types agent location receptacle thing rtype otype)

  (:predicates
    (atLocation ?a - agent ?l - location)
    (receptacleAtLocation ?r - receptacle ?l - location)
    (receptacleType ?r - receptacle ?k - rtype)
    (openable ?r - receptacle)
    (opened ?r - receptacle)
    (objectType ?o - thing ?k - otype)
    (inReceptacle ?o - thing ?r - receptacle)
    (canContain ?k - rtype ?m - otype)
    (pickupable ?o - thing)
    (holds ?a - agent ?o - thing)
    (holdsAny ?a - agent)
    (vessel ?o - thing)
    (cleanable ?o - thing)
    (heatable ?o - thing)
    (coolable ?o - thing)
    (sliceable ?o - thing)
    (toggleable ?o - thing)
    (isClean ?o - thing)
    (isHot ?o - thing)
    (isCool ?o - thing)
    (isSliced ?o - thing)
    (isToggled ?o - thing)
    ;; Attention changes nothing else, but an action without an effect is no action to a planner.
    (noticed ?a - agent)
    (noticedPlace ?r - receptacle)
    (noticedThing ?o - thing))

  (:action go
    :parameters (?a - agent ?from - location ?to - location ?r - receptacle)
    :precondition (and (atLocation ?a ?from) (receptacleAtLocation ?r ?to))
    :effect (and (not (atLocation ?a ?from)) (atLocation ?a ?to)))

  (:action open
    :parameters (?a - agent ?l - location ?r - receptacle)
    :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (openable ?r) (not (opened ?r)))
    :effect (opened ?r))

  (:action close
    :parameters (?a - agent ?l - location ?r - receptacle)
    :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (openable ?r) (opened ?r))
    :effect (not (opened ?r)))

  (:action take
    :parameters (?a - agent ?l - location ?o - thing ?r - receptacle)
    :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r) (pickupable ?o)
                       (not (holdsAny ?a)) (imply (openable ?r) (opened ?r)))
    :effect (and (holds ?a ?o) (holdsAny ?a) (not (inReceptacle ?o ?r))))

  (:action put
    :parameters (?a - agent ?l - location ?o - thing ?m - otype ?r - receptacle ?k - rtype)
    :precondition (and (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (objectType ?o ?m)
                       (receptacleType ?r ?k) (canContain ?k ?m) (imply (openable ?r) (opened ?r)))
    :effect (and (inReceptacle ?o ?r) (not (holds ?a ?o)) (not (holdsAny ?a))))

  ;; What treats a thing does so open or closed, as in the published games.
  (:action clean
    :parameters (?a - agent ?l - location ?o - thing ?r - receptacle)
    :precondition (and (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (cleanable ?o)
                       (receptacleType ?r sinkbasinType))
    :effect (isClean ?o))

  (:action heat
    :parameters (?a - agent ?l - location ?o - thing ?r - receptacle)
    :precondition (and (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (heatable ?o)
                       (receptacleType ?r microwaveType))
    :effect (and (isHot ?o) (not (isCool ?o))))

  (:action cool
    :parameters (?a - agent ?l - location ?o - thing ?r - receptacle)
    :precondition (and (holds ?a ?o) (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (coolable ?o)
                       (receptacleType ?r fridgeType))
    :effect (and (isCool ?o) (not (isHot ?o))))

  (:action use
    :parameters (?a - agent ?l - location ?o - thing ?r - receptacle)
    :precondition (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r) (toggleable ?o))
    :effect (isToggled ?o))

  (:action slice
    :parameters (?a - agent ?l - location ?o - thing ?r - receptacle ?tool - thing)
    :precondition (and (holds ?a ?tool) (or (objectType ?tool knifeType) (objectType ?tool butterknifeType))
                       (atLocation ?a ?l) (receptacleAtLocation ?r ?l) (inReceptacle ?o ?r) (sliceable ?o)
                       (imply (openable ?r) (opened ?r)))
    :effect (isSliced ?o))

  (:action examineReceptacle
    :parameters (?a - agent ?r - receptacle)
    :precondition (exists (?l - location) (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l)))
    :effect (noticedPlace ?r))

  (:action examineObject
    :parameters (?a - agent ?o - thing)
    :precondition (holds ?a ?o)
    :effect (noticedThing ?o))

  (:action inventory
    :parameters (?a - agent)
    :precondition ()
    :effect (noticed ?a))

  (:action look
    :parameters (?a - agent ?l - location)
    :precondition (atLocation ?a ?l)
    :effect (noticed ?a)))
