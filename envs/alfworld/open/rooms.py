"""Define the four kinds of room: the numbers of receptacles, and the possible receptacles of each thing.

We wrote the tables so that generated rooms are like the rooms of the published games, which have 13 to 27 receptacles,
13 to 60 things to pick up, and up to four things of a kind (measured; see `docs/environments/alfworld.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OPENABLE = frozenset({"cabinet", "drawer", "fridge", "microwave", "safe"})
CLEANED_AT, HEATED_AT, COOLED_AT = "sinkbasin", "microwave", "fridge"
LAMP = "desklamp"

_CUTLERY = ("butterknife", "fork", "knife", "ladle", "spatula", "spoon")
_DISHES = ("bowl", "cup", "mug", "plate")
_FRUIT = ("apple", "lettuce", "potato", "tomato")
_PANS = ("pan", "pot")

CLEANABLE = frozenset(
    {*_CUTLERY, *_DISHES, *_FRUIT, *_PANS, "cloth", "dishsponge", "egg", "kettle", "soapbar"}
)
HEATABLE = frozenset({*_DISHES, "apple", "bread", "egg", "potato", "tomato"} - {"bowl"})
COOLABLE = frozenset({*_DISHES, *_FRUIT, *_PANS, "bread", "egg", "winebottle"})
SLICEABLE = frozenset({*_FRUIT, "bread", "egg"})
VESSELS = frozenset({*_DISHES, *_PANS, "box"})


@dataclass(frozen=True)
class Room:
    receptacles: Mapping[str, tuple[int, int]]
    """Kind of receptacle -> (smallest number, largest number) in a room."""
    places: Mapping[str, tuple[str, ...]]
    """Kind of thing -> kinds of receptacle that may contain it."""
    at_most: int
    """Largest number of things of one kind in a room."""
    fixtures: Mapping[str, tuple[str, ...]]
    """Kind of thing that cannot be moved -> its possible receptacles. A room has one thing of each such kind."""

    def holds(self, receptacle: str) -> tuple[str, ...]:
        """Return the kinds of thing that a receptacle of this kind may contain."""
        return tuple(thing for thing, places in self.places.items() if receptacle in places)


def _places(table: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {thing: tuple(sorted(places.split())) for thing, places in sorted(table.items())}


_ON_TOP = "countertop diningtable"

KITCHEN = Room(
    receptacles={
        "cabinet": (4, 9),
        "coffeemachine": (1, 1),
        "countertop": (1, 3),
        "diningtable": (0, 1),
        "drawer": (2, 6),
        "fridge": (1, 1),
        "garbagecan": (1, 1),
        "microwave": (1, 1),
        "shelf": (0, 4),
        "sinkbasin": (1, 1),
        "stoveburner": (2, 4),
        "toaster": (0, 1),
    },
    places=_places(
        {
            **dict.fromkeys(_CUTLERY, f"{_ON_TOP} drawer sinkbasin"),
            **dict.fromkeys(_PANS, f"cabinet {_ON_TOP} fridge shelf sinkbasin stoveburner"),
            **dict.fromkeys(
                ("apple", "potato", "tomato", "egg"), f"{_ON_TOP} fridge garbagecan microwave sinkbasin"
            ),
            "bowl": f"cabinet {_ON_TOP} fridge microwave shelf sinkbasin",
            "bread": f"{_ON_TOP} fridge garbagecan microwave",
            "cup": f"cabinet {_ON_TOP} fridge microwave shelf sinkbasin",
            "dishsponge": f"cabinet {_ON_TOP} drawer garbagecan shelf sinkbasin",
            "glassbottle": f"cabinet {_ON_TOP} fridge garbagecan shelf sinkbasin",
            "kettle": f"cabinet {_ON_TOP} shelf sinkbasin stoveburner",
            "lettuce": f"{_ON_TOP} fridge garbagecan sinkbasin",
            "mug": f"cabinet coffeemachine {_ON_TOP} fridge microwave shelf sinkbasin",
            "papertowelroll": f"cabinet {_ON_TOP} garbagecan shelf",
            "peppershaker": f"cabinet {_ON_TOP} drawer shelf",
            "plate": f"cabinet {_ON_TOP} fridge microwave shelf sinkbasin",
            "saltshaker": f"cabinet {_ON_TOP} drawer shelf",
            "soapbottle": f"cabinet {_ON_TOP} drawer garbagecan shelf",
            "vase": f"cabinet {_ON_TOP} shelf",
            "winebottle": f"cabinet {_ON_TOP} fridge garbagecan shelf",
        }
    ),
    at_most=3,
    fixtures={"houseplant": ("countertop", "shelf")},
)

BATHROOM = Room(
    receptacles={
        "bathtubbasin": (0, 1),
        "cabinet": (2, 6),
        "countertop": (1, 2),
        "garbagecan": (1, 1),
        "handtowelholder": (1, 2),
        "shelf": (0, 3),
        "sinkbasin": (1, 2),
        "toilet": (1, 1),
        "toiletpaperhanger": (1, 1),
        "towelholder": (1, 2),
    },
    places=_places(
        {
            "candle": "cabinet countertop shelf toilet",
            "cloth": "bathtubbasin cabinet countertop garbagecan shelf sinkbasin",
            "handtowel": "cabinet countertop handtowelholder shelf",
            "scrubbrush": "cabinet countertop toilet",
            "soapbar": "bathtubbasin cabinet countertop garbagecan shelf sinkbasin toilet",
            "soapbottle": "cabinet countertop garbagecan shelf toilet",
            "spraybottle": "cabinet countertop garbagecan shelf toilet",
            "tissuebox": "cabinet countertop shelf toilet",
            "toiletpaper": "cabinet countertop garbagecan shelf toilet toiletpaperhanger",
            "towel": "cabinet shelf towelholder",
        }
    ),
    at_most=3,
    fixtures={},
)

BEDROOM = Room(
    receptacles={
        "armchair": (0, 1),
        "bed": (1, 1),
        "desk": (1, 2),
        "drawer": (3, 8),
        "dresser": (0, 1),
        "garbagecan": (1, 1),
        "laundryhamper": (0, 1),
        "safe": (0, 1),
        "shelf": (2, 6),
        "sidetable": (1, 2),
    },
    places=_places(
        {
            "alarmclock": "desk dresser shelf sidetable",
            "book": "bed desk drawer dresser shelf sidetable",
            "bowl": "desk dresser shelf sidetable",
            "cd": "desk drawer dresser garbagecan safe shelf sidetable",
            "cellphone": "bed desk drawer dresser safe shelf sidetable",
            "cloth": "bed desk drawer laundryhamper",
            "creditcard": "desk drawer dresser safe shelf sidetable",
            "keychain": "desk drawer dresser safe shelf sidetable",
            "laptop": "armchair bed desk dresser sidetable",
            "mug": "desk dresser shelf sidetable",
            "pen": "desk drawer dresser garbagecan shelf sidetable",
            "pencil": "desk drawer dresser garbagecan shelf sidetable",
            "pillow": "armchair bed",
            "tissuebox": "desk dresser garbagecan shelf sidetable",
            "watch": "desk drawer dresser safe shelf sidetable",
        }
    ),
    at_most=3,
    fixtures={LAMP: ("desk", "dresser", "shelf", "sidetable")},
)

LIVINGROOM = Room(
    receptacles={
        "armchair": (1, 2),
        "cabinet": (1, 4),
        "coffeetable": (1, 1),
        "drawer": (2, 6),
        "dresser": (0, 1),
        "garbagecan": (1, 1),
        "safe": (0, 1),
        "shelf": (3, 9),
        "sidetable": (1, 3),
        "sofa": (1, 2),
    },
    places=_places(
        {
            "book": "armchair coffeetable drawer dresser shelf sidetable sofa",
            "box": "armchair cabinet coffeetable dresser shelf sidetable sofa",
            "candle": "cabinet coffeetable dresser shelf sidetable",
            "cellphone": "armchair coffeetable drawer dresser safe shelf sidetable sofa",
            "creditcard": "armchair coffeetable drawer dresser safe shelf sidetable sofa",
            "keychain": "armchair coffeetable drawer dresser safe shelf sidetable sofa",
            "laptop": "armchair coffeetable dresser sidetable sofa",
            "newspaper": "armchair cabinet coffeetable drawer dresser garbagecan shelf sidetable sofa",
            "pillow": "armchair sofa",
            "remotecontrol": "armchair coffeetable drawer dresser shelf sidetable sofa",
            "statue": "cabinet coffeetable dresser safe shelf sidetable",
            "tissuebox": "cabinet coffeetable drawer dresser garbagecan shelf sidetable",
            "vase": "cabinet coffeetable dresser safe shelf sidetable",
            "watch": "coffeetable drawer dresser safe shelf sidetable",
        }
    ),
    at_most=3,
    fixtures={
        LAMP: ("coffeetable", "dresser", "sidetable"),
        "houseplant": ("coffeetable", "shelf", "sidetable"),
    },
)

ROOMS: Mapping[str, Room] = {
    "kitchen": KITCHEN,
    "bathroom": BATHROOM,
    "bedroom": BEDROOM,
    "livingroom": LIVINGROOM,
}
