"""The agent's actions (ReAct's search, lookup and finish), and the class `Reader`, which answers them from a page
store."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalharness.paper.hotpotqa.pages import Page, Pages

ACTIONS = {
    "search": "search[{entity}]",
    "lookup": "lookup[{keyword}]",
    "finish": "finish[{answer}]",
}
"""Action name -> template of the action, in the order in which the prompt lists the actions."""

LISTING = "Invalid action: you can say "
"""Beginning of the observation after an invalid action. The action templates follow."""
INVALID = LISTING + ", ".join(re.sub(r"[{}]", "", template) for template in ACTIONS.values())
NO_MORE = "No more results."
SHOWN_SENTENCES = 5
LONGEST_ECHO = 200
"""Characters of the search text that the observation quotes if no page was found."""

_ACTION = re.compile(r"\s*(search|lookup|finish)\s*\[(.*)\]\s*\.?\s*", re.IGNORECASE | re.DOTALL)


def parse(action: str) -> tuple[str, str] | None:
    """Return (search, lookup or finish; its argument); None if the text is no action or the argument is empty."""
    match = _ACTION.fullmatch(action)
    if match is None or not match[2].strip():
        return None
    return match[1].lower(), match[2].strip()


class Reader:
    """What the agent has open in one episode: a page, and the position of the last lookup in the page."""

    def __init__(self, store: Pages) -> None:
        self.store = store
        self.page: Page | None = None
        self._keyword: str | None = None
        self._results: Sequence[str] = ()
        self._next = 0

    def search(self, entity: str) -> str:
        """Open a page and return its first sentences. If there is no such page, return similar titles and keep the
        open page."""
        self._keyword = None
        page = self.store.find(entity)
        if page is None:
            echo = entity if len(entity) <= LONGEST_ECHO else entity[:LONGEST_ECHO] + "..."
            return f"Could not find {echo}. Similar: {self.store.similar(entity)}."
        self.page = page
        return (
            " ".join(sentence.strip() for sentence in page.sentences[:SHOWN_SENTENCES]) or "(an empty page)"
        )

    def lookup(self, keyword: str) -> str:
        """Return the next sentence of the open page with the keyword, in upper or lower case. A new keyword starts at
        the beginning."""
        if self.page is None:
            return NO_MORE
        if keyword != self._keyword:
            lowered = keyword.lower()
            self._keyword, self._next = keyword, 0
            self._results = [s.strip() for s in self.page.sentences if lowered in s.lower()]
        if self._next >= len(self._results):
            return NO_MORE
        self._next += 1
        return f"(Result {self._next} / {len(self._results)}) {self._results[self._next - 1]}"


def place(action: str, observation: str) -> str | None:
    """Return the title, in lower case, of the page that is open after a valid action. Measures of exploration use
    it."""
    what, entity = parse(action) or ("", "")
    return entity if what == "search" and not observation.startswith("Could not find ") else None
