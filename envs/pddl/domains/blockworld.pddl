; One arm moves blocks between towers on a table.
(define (domain blocksworld-4ops)
  (:requirements :strips)
  (:predicates
    (on ?block ?under) (on-table ?block) (clear ?block)
    (holding ?block) (arm-empty))

  (:action pickup
    :parameters (?block)
    :precondition (and (arm-empty) (on-table ?block) (clear ?block))
    :effect (and (not (arm-empty)) (not (on-table ?block)) (not (clear ?block)) (holding ?block)))

  (:action putdown
    :parameters (?block)
    :precondition (holding ?block)
    :effect (and (not (holding ?block)) (on-table ?block) (clear ?block) (arm-empty)))

  (:action stack
    :parameters (?block ?under)
    :precondition (and (holding ?block) (clear ?under))
    :effect (and (not (holding ?block)) (not (clear ?under))
                 (on ?block ?under) (clear ?block) (arm-empty)))

  (:action unstack
    :parameters (?block ?under)
    :precondition (and (arm-empty) (on ?block ?under) (clear ?block))
    :effect (and (not (arm-empty)) (not (on ?block ?under)) (not (clear ?block))
                 (clear ?under) (holding ?block))))
