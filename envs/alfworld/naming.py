"""Names that a person reads (`cabinet 3`) from a game's identifiers (`cabinet_bar__plus_01_dot_20_bar_...`).

ALFWorld's rule: the identifiers of a kind, in alphabetical order, are numbered from the highest down to 1; a
basin is a kind of its own (`sink_bar_..._bar_sinkbasin` is a `sinkbasin`); what has no position in the scene has
no number and keeps the blank before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_BAR = "_bar_"
"""How the games write the `|` between a scene object's kind and its coordinates."""


def kind_of(identifier: str) -> str:
    kind = identifier.split(_BAR, 1)[0]
    return kind + "basin" if "basin" in identifier else kind


def readable_names(identifiers: Iterable[str]) -> dict[str, str]:
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
