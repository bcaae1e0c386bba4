"""Generate a world for the open suite: invented towns, people, institutions, events and works, with a page for each.

The seed determines everything. Each sentence with a fact is made from a template, and the order of sentences on a page
is random. The oracle reads the same templates, so its lookups find the sentences.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from evalharness.paper.hotpotqa.names import Names
from evalharness.paper.hotpotqa.pages import Page, hash_corpus

TOWNS, PEOPLE, INSTITUTIONS, EVENTS, WORKS = 320, 1500, 240, 260, 980
NAMESAKES = 0.14
"""Probability that a person (a work) gets the name of another person (work) of another occupation (kind)."""
MOST_NAMESAKES = 3
"""Largest number of things with the same name. A search lists at most five similar titles; all things with the name
must be among them."""

MAKERS = {
    "novel": ("novelist", "written by"),
    "film": ("film director", "directed by"),
    "opera": ("composer", "composed by"),
    "painting": ("painter", "painted by"),
}
"""Kind of work -> (occupation of its maker, words before the maker's name on the page)."""
OCCUPATIONS = (
    *(occupation for occupation, _ in MAKERS.values()),
    "botanist",
    "engineer",
    "explorer",
    "merchant",
)

SENTENCES: Mapping[str, Mapping[str, str]] = {
    "town": {
        "province": "{name} is a town in the province of {value}.",
        "river": "It lies on the river {value}.",
        "founded": "The town was founded in {value}.",
        "inhabitants": "At the last census it had {value} inhabitants.",
        "product": "The town is known for its {value}.",
        "former": "In older books it is called {value}.",
    },
    "person": {
        "birth_year": "{name}, born in {value}, worked as {article} {kind}.",
        "birthplace": "The parents of {short} kept an inn in {value}, where {short} was born.",
        "school": "{short} studied at the {value}.",
        "mentor": "For three years {short} was a pupil of the {value}.",
        "residence": "{short} spent the later years in {value}.",
    },
    "institution": {
        "founded": "The {name} is {article} {kind} that was founded in {value}.",
        "town": "Its main building stands in {value}.",
        "founder": "It goes back to a gift of the {value}.",
    },
    "event": {
        "first": "The {name} is a {kind} that was first held in {value}.",
        "town": "It takes place in {value}.",
        "founder": "It was started by the {value}.",
    },
    "work": {
        "year": "{name} is {article} {kind} of {value}.",
        "maker": "It was {made} the {value}.",
        "setting": "The {kind} shows the life of a family in {value}.",
    },
}
"""Sort of thing -> relation -> template of the sentence that states it. The first one opens the page."""

_FILLERS = {
    "town": (
        "A market is held every second week.", "The old walls were taken down for a railway.",
        "Its theatre burned down twice.", "Two bridges connect its halves.", "A fair marks the end of the harvest.",
    ),
    "person": (
        "Few letters have been kept.", "A street bears the name.", "The diaries were published much later.",
        "An illness ended the journeys of those years.", "Critics did not agree about the early years.",
    ),
    "institution": (
        "The library is open to visitors.", "A fire destroyed the east wing.", "The great hall seats four hundred.",
        "A second house was opened later.", "Its archive has never been moved.",
    ),
    "event": (
        "Entry is free for children.", "It was called off twice because of floods.", "The prize is a silver cup.",
        "Visitors come from all provinces.", "A song opens every evening.",
    ),
    "work": (
        "The first reviews were cold.", "A parody appeared soon after.", "A prize came years later.",
        "For decades it was thought to be lost.", "The censors asked for changes.",
    ),
}  # fmt: skip
_FEWEST_FILLERS, _MOST_FILLERS = 2, 4
_PRODUCTS = (
    "bells", "blue glass", "candied plums", "carved doors", "clocks", "copper kettles", "dried fish", "felt hats",
    "fiddles", "green marble", "honey cakes", "lace", "leather gloves", "linen", "mead", "paper kites", "pear brandy",
    "pewter spoons", "pipe organs", "pottery", "red ink", "rope", "saffron", "salt", "sheep cheese", "silk ribbons",
    "smoked eel", "tin soldiers", "walnut oil", "wax candles", "wicker chairs", "wool blankets",
)  # fmt: skip


@dataclass
class Thing:
    """The subject of one page. `facts` maps a relation to its value as the page writes it; `links` maps a relation to
    the title of the linked page."""

    sort: str
    name: str
    """The name in texts; several things can have the same name."""
    kind: str
    """Occupation of a person, kind of a work, and so on; things with the same name differ in it."""
    title: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()
    shown: dict[str, int] = field(default_factory=dict)
    """Relation -> index (from 0) of the sentence that states it on the page."""

    @property
    def mention(self) -> str:
        """The words for the thing on other pages, such as `novelist Quest Morner`, `novel The Iron Gate`,
        `Morndale`."""
        return f"{self.kind} {self.name}" if self.sort in ("person", "work") else self.name


@dataclass(frozen=True)
class Encyclopedia:
    seed: int
    things: Mapping[str, tuple[Thing, ...]]
    """Sort of thing (`town`, `person`, ...) -> all things of the sort."""
    redirects: tuple[tuple[str, str], ...]

    @cached_property
    def by_title(self) -> Mapping[str, Thing]:
        return {thing.title: thing for things in self.things.values() for thing in things}

    @property
    def pages(self) -> list[Page]:
        return [Page(thing.title, thing.sentences) for thing in self.by_title.values()]

    @cached_property
    def sha256(self) -> str:
        """The hash of this world's page store."""
        return hash_corpus(self.pages, self.redirects)


@lru_cache(maxsize=4)
def make_encyclopedia(seed: int) -> Encyclopedia:
    """Return the world of a suite seed: about 3,300 pages, in a fraction of a second."""
    stream = random.Random(f"hotpotqa/open/{seed}/world")
    names = Names(stream)
    towns = _make_towns(stream, names)
    people = _make_people(stream, names, towns)
    institutions = _make_founded(stream, names, towns, people, "institution")
    _add_schools(stream, people, institutions)
    events = _make_founded(stream, names, towns, people, "event")
    works = _make_works(stream, names, towns, people)
    things = {
        "town": towns, "person": people, "institution": institutions, "event": events, "work": works
    }  # fmt: skip
    for listed in things.values():
        for thing in listed:
            _write_page(stream, thing)
    redirects = [(town.facts["former"], town.title) for town in towns if "former" in town.facts]
    return Encyclopedia(seed, {sort: tuple(listed) for sort, listed in things.items()}, tuple(redirects))


def _make_towns(stream: random.Random, names: Names) -> list[Thing]:
    rivers = [names.river() for _ in range(48)]
    provinces = [names.town().removesuffix("e") + "ia" for _ in range(24)]
    towns: list[Thing] = []
    for _ in range(TOWNS):
        name = names.town()
        if towns and stream.random() < 0.1:
            name = f"New {stream.choice([t.name for t in towns if not t.name.startswith('New ')])}"
            if any(town.name == name for town in towns):
                name = names.town()
        facts = {
            "province": stream.choice(provinces),
            "river": stream.choice(rivers),
            "founded": str(stream.randint(820, 1790)),
            "inhabitants": f"{stream.randint(900, 240_000):,}",
            "product": stream.choice(_PRODUCTS),
        }
        if stream.random() < 0.35:
            facts["former"] = names.town()
        towns.append(Thing("town", name, "town", name, facts))
    return towns


def _make_people(stream: random.Random, names: Names, towns: list[Thing]) -> list[Thing]:
    given_names = [names.given() for _ in range(90)]
    surnames = [names.surname() for _ in range(420)]
    people: list[Thing] = []
    kinds_by_name: defaultdict[str, set[str]] = defaultdict(set)
    for _ in range(PEOPLE):
        occupation = stream.choice(OCCUPATIONS)
        name = names.person(given_names, surnames)
        if people and stream.random() < NAMESAKES:
            other = stream.choice(people).name
            if occupation not in kinds_by_name[other] and len(kinds_by_name[other]) < MOST_NAMESAKES:
                name = other
        kinds_by_name[name].add(occupation)
        born, lived = stream.sample(towns, 2)
        facts = {
            "birth_year": str(stream.randint(1640, 1920)),
            "birthplace": born.name,
            "residence": lived.name,
        }
        people.append(Thing("person", name, occupation, facts=facts, links={"birthplace": born.title}))
    _entitle(people)
    for person in people:
        year = int(person.facts["birth_year"])
        for mentor in (stream.choice(people) for _ in range(40)):
            if 12 <= year - int(mentor.facts["birth_year"]) <= 50:
                person.facts["mentor"], person.links["mentor"] = mentor.mention, mentor.title
                break
    return people


_FOUNDED = {
    "institution": (INSTITUTIONS, ("university", "academy", "conservatory"), "founded", (1300, 1900)),
    "event": (EVENTS, ("festival", "regatta", "fair", "tournament"), "first", (1500, 1960)),
}
"""Sort -> (number of things, their kinds, name of the relation with the founding year, range of that year)."""


def _make_founded(
    stream: random.Random, names: Names, towns: list[Thing], people: list[Thing], sort: str
) -> list[Thing]:
    count, kinds, since, years = _FOUNDED[sort]
    made = []
    for _ in range(count):
        kind = stream.choice(kinds)
        town, founder = stream.choice(towns), stream.choice(people)
        # The name does not contain the town, because it would then answer the question.
        name = f"{names.surname()} {kind.capitalize()}"
        facts = {since: str(stream.randint(*years)), "town": town.name, "founder": founder.mention}
        links = {"town": town.title, "founder": founder.title}
        made.append(Thing(sort, name, kind, name, facts, links))
    return made


def _add_schools(stream: random.Random, people: list[Thing], institutions: list[Thing]) -> None:
    for person in people:
        school = stream.choice(institutions)
        person.facts["school"], person.links["school"] = school.name, school.title


def _make_works(stream: random.Random, names: Names, towns: list[Thing], people: list[Thing]) -> list[Thing]:
    makers = {occupation: [p for p in people if p.kind == occupation] for occupation, _ in MAKERS.values()}
    works: list[Thing] = []
    kinds_by_name: defaultdict[str, set[str]] = defaultdict(set)
    for _ in range(WORKS):
        kind = stream.choice(sorted(MAKERS))
        name = names.of_a_work()
        if works and stream.random() < NAMESAKES:
            other = stream.choice(works).name
            if kind not in kinds_by_name[other] and len(kinds_by_name[other]) < MOST_NAMESAKES:
                name = other
        kinds_by_name[name].add(kind)
        maker, town = stream.choice(makers[MAKERS[kind][0]]), stream.choice(towns)
        year = int(maker.facts["birth_year"]) + stream.randint(22, 60)
        facts = {"year": str(year), "maker": maker.mention, "setting": town.name}
        works.append(
            Thing("work", name, kind, facts=facts, links={"maker": maker.title, "setting": town.title})
        )
    _entitle(works)
    return works


def _entitle(things: list[Thing]) -> None:
    """Set the titles: the name, and the kind in brackets if several things have the same name."""
    count: dict[str, int] = {}
    for thing in things:
        count[thing.name] = count.get(thing.name, 0) + 1
    for thing in things:
        thing.title = thing.name if count[thing.name] == 1 else f"{thing.name} ({thing.kind})"


def _write_page(stream: random.Random, thing: Thing) -> None:
    """Write the page: the opening sentence first, then other facts and fillers in random order."""
    forms = SENTENCES[thing.sort]
    article = "an" if thing.kind[0] in "aeio" else "a"  # no `u`: it is `a university`
    words = {"name": thing.name, "short": thing.name.split()[-1], "kind": thing.kind, "article": article}
    if thing.sort == "work":
        words["made"] = MAKERS[thing.kind][1]
    stated = [(relation, forms[relation].format(value=thing.facts[relation], **words))
            for relation in forms if relation in thing.facts]  # fmt: skip
    fillers = stream.sample(_FILLERS[thing.sort], stream.randint(_FEWEST_FILLERS, _MOST_FILLERS))
    rest = stated[1:] + [("", filler) for filler in fillers]
    stream.shuffle(rest)
    ordered = [stated[0], *rest]
    thing.sentences = tuple(sentence for _, sentence in ordered)
    thing.shown = {relation: i for i, (relation, _) in enumerate(ordered) if relation}


def sentence_form(thing: Thing, relation: str) -> str:
    """Return the template of the sentence that states a fact, with the kind of a person or work filled in."""
    form = SENTENCES[thing.sort][relation]
    if thing.sort in ("person", "work"):
        form = form.replace("{kind}", thing.kind).replace("{made}", MAKERS.get(thing.kind, ("", "{made}"))[1])
    return form
