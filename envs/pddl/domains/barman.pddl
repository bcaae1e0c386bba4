; A two-handed barman mixes cocktails of two ingredients in a shaker and serves them in shot glasses.
(define (domain barman)
  (:requirements :strips :typing)
  (:types
    hand level dispenser beverage container - object
    ingredient cocktail - beverage
    shot shaker - container)
  (:predicates
    (handempty ?hand - hand) (holding ?hand - hand ?container - container) (ontable ?container - container)
    (empty ?container - container) (clean ?container - container)
    (contains ?container - container ?beverage - beverage)
    (used ?container - container ?beverage - beverage)
    (dispenses ?dispenser - dispenser ?ingredient - ingredient)
    (shaker-level ?shaker - shaker ?level - level) (shaker-empty-level ?shaker - shaker ?level - level)
    (next ?level - level ?above - level)
    (unshaked ?shaker - shaker) (shaked ?shaker - shaker)
    (cocktail-part1 ?cocktail - cocktail ?ingredient - ingredient)
    (cocktail-part2 ?cocktail - cocktail ?ingredient - ingredient))

  (:action grasp
    :parameters (?hand - hand ?container - container)
    :precondition (and (handempty ?hand) (ontable ?container))
    :effect (and (not (handempty ?hand)) (not (ontable ?container)) (holding ?hand ?container)))

  (:action leave
    :parameters (?hand - hand ?container - container)
    :precondition (holding ?hand ?container)
    :effect (and (not (holding ?hand ?container)) (handempty ?hand) (ontable ?container)))

  (:action fill-shot
    :parameters (?shot - shot ?ingredient - ingredient ?hand - hand ?other - hand ?dispenser - dispenser)
    :precondition (and (holding ?hand ?shot) (handempty ?other) (dispenses ?dispenser ?ingredient)
                       (empty ?shot) (clean ?shot))
    :effect (and (not (empty ?shot)) (not (clean ?shot))
                 (contains ?shot ?ingredient) (used ?shot ?ingredient)))

  (:action refill-shot
    :parameters (?shot - shot ?ingredient - ingredient ?hand - hand ?other - hand ?dispenser - dispenser)
    :precondition (and (holding ?hand ?shot) (handempty ?other) (dispenses ?dispenser ?ingredient)
                       (empty ?shot) (used ?shot ?ingredient))
    :effect (and (not (empty ?shot)) (contains ?shot ?ingredient)))

  (:action empty-shot
    :parameters (?hand - hand ?shot - shot ?beverage - beverage)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?beverage))
    :effect (and (not (contains ?shot ?beverage)) (empty ?shot)))

  (:action clean-shot
    :parameters (?shot - shot ?beverage - beverage ?hand - hand ?other - hand)
    :precondition (and (holding ?hand ?shot) (handempty ?other) (empty ?shot) (used ?shot ?beverage))
    :effect (and (not (used ?shot ?beverage)) (clean ?shot)))

  (:action pour-shot-to-clean-shaker
    :parameters (?shot - shot ?ingredient - ingredient ?shaker - shaker ?hand - hand
                 ?level - level ?above - level)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?ingredient)
                       (empty ?shaker) (clean ?shaker) (shaker-level ?shaker ?level) (next ?level ?above))
    :effect (and (not (contains ?shot ?ingredient)) (empty ?shot)
                 (not (empty ?shaker)) (not (clean ?shaker))
                 (contains ?shaker ?ingredient) (unshaked ?shaker)
                 (not (shaker-level ?shaker ?level)) (shaker-level ?shaker ?above)))

  (:action pour-shot-to-used-shaker
    :parameters (?shot - shot ?ingredient - ingredient ?shaker - shaker ?hand - hand
                 ?level - level ?above - level)
    :precondition (and (holding ?hand ?shot) (contains ?shot ?ingredient)
                       (unshaked ?shaker) (shaker-level ?shaker ?level) (next ?level ?above))
    :effect (and (not (contains ?shot ?ingredient)) (empty ?shot)
                 (contains ?shaker ?ingredient)
                 (not (shaker-level ?shaker ?level)) (shaker-level ?shaker ?above)))

  (:action empty-shaker
    :parameters (?hand - hand ?shaker - shaker ?cocktail - cocktail ?level - level ?bottom - level)
    :precondition (and (holding ?hand ?shaker) (shaked ?shaker) (contains ?shaker ?cocktail)
                       (shaker-level ?shaker ?level) (shaker-empty-level ?shaker ?bottom))
    :effect (and (not (shaked ?shaker)) (not (contains ?shaker ?cocktail)) (empty ?shaker)
                 (not (shaker-level ?shaker ?level)) (shaker-level ?shaker ?bottom)))

  (:action clean-shaker
    :parameters (?hand - hand ?other - hand ?shaker - shaker)
    :precondition (and (holding ?hand ?shaker) (handempty ?other) (empty ?shaker))
    :effect (clean ?shaker))

  (:action shake
    :parameters (?cocktail - cocktail ?first - ingredient ?second - ingredient ?shaker - shaker
                 ?hand - hand ?other - hand)
    :precondition (and (holding ?hand ?shaker) (handempty ?other) (unshaked ?shaker)
                       (contains ?shaker ?first) (contains ?shaker ?second)
                       (cocktail-part1 ?cocktail ?first) (cocktail-part2 ?cocktail ?second))
    :effect (and (not (contains ?shaker ?first)) (not (contains ?shaker ?second))
                 (not (unshaked ?shaker)) (shaked ?shaker) (contains ?shaker ?cocktail)))

  (:action pour-shaker-to-shot
    :parameters (?beverage - beverage ?shot - shot ?hand - hand ?shaker - shaker
                 ?level - level ?below - level)
    :precondition (and (holding ?hand ?shaker) (shaked ?shaker) (contains ?shaker ?beverage)
                       (empty ?shot) (clean ?shot) (shaker-level ?shaker ?level) (next ?below ?level))
    :effect (and (not (empty ?shot)) (not (clean ?shot)) (contains ?shot ?beverage)
                 (not (shaker-level ?shaker ?level)) (shaker-level ?shaker ?below))))
