"""Invent names from syllables, each name once."""

from __future__ import annotations

import random
from collections.abc import Callable


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ONSETS = _words("b br c cr d dr f fl g gr h j k l m n p pr qu r s sk st t th tr v w z")
_VOWELS = _words("a e i o u ae ei ia oa")
_CODAS = _words("l m n nd r rn s sk st th v x")
_TOWN_ENDINGS = _words("burg dale fell ford haven holm mere minster port stead vale wick")
_SURNAME_ENDINGS = _words("an ar eau elin en er ic is oll ov ry son")
_GIVEN_ENDINGS = _words("a as el ena ias in is on ora us wen yn")

ADJECTIVES = _words(
    "Amber Ashen Borrowed Brass Broken Burning Copper Crooked Distant Drowned Empty Fallen Frozen Gilded "
    "Glass Hidden Hollow Idle Iron Ivory Last Lost Midnight Narrow Northern Paper Patient Quiet Rusted "
    "Salt Scarlet Second Shallow Silent Silver Sleeping Stolen Stone Sunken Tall Tired Unseen Velvet "
    "Wandering Winter Wooden"
)
NOUNS = _words(
    "Almanac Anchor Archive Balcony Bell Bridge Candle Canal Carousel Chimney Clock Corridor Court Cradle "
    "Feather Ferry Garden Gate Harvest Heron Island Journey Kite Ladder Lantern Letter Lighthouse Lock "
    "Market Mirror Oath Orchard Parade Pilgrim Quarry Railway River Rope Season Shore Staircase Station "
    "Storm Thread Tide Tower Valley Wedding Well Window"
)


class Names:
    """A stream of different names."""

    def __init__(self, stream: random.Random) -> None:
        self._stream = stream
        self._given_out: set[str] = set()

    def town(self) -> str:
        return self._new(lambda: (self._stem() + self._stream.choice(_TOWN_ENDINGS)).capitalize())

    def surname(self) -> str:
        return self._new(lambda: (self._stem() + self._stream.choice(_SURNAME_ENDINGS)).capitalize())

    def given(self) -> str:
        return self._new(lambda: (self._stem() + self._stream.choice(_GIVEN_ENDINGS)).capitalize())

    def river(self) -> str:
        return self._new(lambda: (self._stem() + self._stream.choice(_VOWELS[:5])).capitalize())

    def of_a_work(self) -> str:
        return self._new(lambda: f"The {self._stream.choice(ADJECTIVES)} {self._stream.choice(NOUNS)}")

    def person(self, given: list[str], surnames: list[str]) -> str:
        return self._new(lambda: f"{self._stream.choice(given)} {self._stream.choice(surnames)}")

    def _stem(self) -> str:
        draw = self._stream.choice
        return draw(_ONSETS) + draw(_VOWELS) + draw(_CODAS)

    def _new(self, draw: Callable[[], str]) -> str:
        while (name := draw()) in self._given_out:
            pass
        self._given_out.add(name)
        return name
