; Changing wheels with the tools from the boot of a car.
(define (domain tyreworld)
  (:requirements :strips :typing)
  (:types
    obj hub container - object
    tool wheel nut - obj)
  (:constants wrench jack pump - tool)
  (:predicates
    (isopen ?container - container) (closed ?container - container) (unlocked ?container - container)
    (have ?object - obj) (in ?object - obj ?container - container)
    (tight ?nut - nut ?hub - hub) (loose ?nut - nut ?hub - hub)
    (fastened ?hub - hub) (unfastened ?hub - hub)
    (on-ground ?hub - hub) (not-on-ground ?hub - hub)
    (on ?wheel - wheel ?hub - hub) (free ?hub - hub)
    (inflated ?wheel - wheel) (not-inflated ?wheel - wheel) (intact ?wheel - wheel))

  (:action open
    :parameters (?container - container)
    :precondition (and (unlocked ?container) (closed ?container))
    :effect (and (not (closed ?container)) (isopen ?container)))

  (:action close
    :parameters (?container - container)
    :precondition (isopen ?container)
    :effect (and (not (isopen ?container)) (closed ?container)))

  (:action fetch
    :parameters (?object - obj ?container - container)
    :precondition (and (isopen ?container) (in ?object ?container))
    :effect (and (not (in ?object ?container)) (have ?object)))

  (:action put-away
    :parameters (?object - obj ?container - container)
    :precondition (and (isopen ?container) (have ?object))
    :effect (and (not (have ?object)) (in ?object ?container)))

  (:action loosen
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (on-ground ?hub) (tight ?nut ?hub))
    :effect (and (not (tight ?nut ?hub)) (loose ?nut ?hub)))

  (:action tighten
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (on-ground ?hub) (loose ?nut ?hub))
    :effect (and (not (loose ?nut ?hub)) (tight ?nut ?hub)))

  (:action jack-up
    :parameters (?hub - hub)
    :precondition (and (have jack) (on-ground ?hub))
    :effect (and (not (have jack)) (not (on-ground ?hub)) (not-on-ground ?hub)))

  (:action jack-down
    :parameters (?hub - hub)
    :precondition (not-on-ground ?hub)
    :effect (and (not (not-on-ground ?hub)) (on-ground ?hub) (have jack)))

  (:action undo
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (not-on-ground ?hub) (fastened ?hub) (loose ?nut ?hub))
    :effect (and (not (fastened ?hub)) (not (loose ?nut ?hub)) (unfastened ?hub) (have ?nut)))

  (:action do-up
    :parameters (?nut - nut ?hub - hub)
    :precondition (and (have wrench) (not-on-ground ?hub) (unfastened ?hub) (have ?nut))
    :effect (and (not (unfastened ?hub)) (not (have ?nut)) (fastened ?hub) (loose ?nut ?hub)))

  (:action remove-wheel
    :parameters (?wheel - wheel ?hub - hub)
    :precondition (and (not-on-ground ?hub) (unfastened ?hub) (on ?wheel ?hub))
    :effect (and (not (on ?wheel ?hub)) (free ?hub) (have ?wheel)))

  (:action put-on-wheel
    :parameters (?wheel - wheel ?hub - hub)
    :precondition (and (not-on-ground ?hub) (unfastened ?hub) (free ?hub) (have ?wheel))
    :effect (and (not (free ?hub)) (not (have ?wheel)) (on ?wheel ?hub)))

  (:action inflate
    :parameters (?wheel - wheel)
    :precondition (and (have pump) (intact ?wheel) (not-inflated ?wheel))
    :effect (and (not (not-inflated ?wheel)) (inflated ?wheel))))
