; A robot with grippers carries balls between rooms.
(define (domain gripper-strips)
  (:requirements :strips)
  (:predicates
    (room ?room) (ball ?ball) (gripper ?gripper)
    (at-robby ?room)
    (at ?ball ?room)
    (free ?gripper)
    (carry ?ball ?gripper))

  (:action move
    :parameters (?from ?to)
    :precondition (and (room ?from) (room ?to) (at-robby ?from))
    :effect (and (not (at-robby ?from)) (at-robby ?to)))

  (:action pick
    :parameters (?ball ?room ?gripper)
    :precondition (and (ball ?ball) (room ?room) (gripper ?gripper)
                       (at-robby ?room) (at ?ball ?room) (free ?gripper))
    :effect (and (not (at ?ball ?room)) (not (free ?gripper)) (carry ?ball ?gripper)))

  (:action drop
    :parameters (?ball ?room ?gripper)
    :precondition (and (ball ?ball) (room ?room) (gripper ?gripper)
                       (at-robby ?room) (carry ?ball ?gripper))
    :effect (and (not (carry ?ball ?gripper)) (at ?ball ?room) (free ?gripper))))
