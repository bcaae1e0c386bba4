"""Define the action surface: the wording of an environment's actions.

An environment's actions are data: a table of name -> template such as `take: "take {object} from {receptacle}"`. The
list in the instruction, the worked example and the parser of the model's reply use the same surface. Another surface
has other words for the same actions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter


@dataclass(frozen=True)
class Action:
    """The meaning of an action: its name and its objects."""

    name: str
    arguments: Mapping[str, str]


@lru_cache(maxsize=4096)
def _pattern(template: str) -> re.Pattern[str]:
    parts = []
    for literal, slot, _, _ in Formatter().parse(template):
        parts.append(re.escape(literal))
        if slot is not None:
            parts.append(f"(?P<{slot}>.+?)")
    return re.compile("".join(parts), re.DOTALL)


class ActionSurface:
    """The templates of actions, in the order of the prompt's list."""

    def __init__(self, templates: Mapping[str, str]) -> None:
        self.templates = dict(templates)
        # Try the template with the most literal text first: `go to goal` before `go to {object}`.
        self._patterns = sorted(
            ((name, _pattern(template)) for name, template in self.templates.items()),
            key=lambda item: (-len(re.sub(r"\{.*?\}", "", self.templates[item[0]])), item[0]),
        )

    def patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        """Return (name, regular expression with a group for each slot), in the order of the attempts."""
        return list(self._patterns)

    def parse(self, text: str) -> Action | None:
        """Parse `text` as an action; return None if no template fits."""
        for name, pattern in self._patterns:
            if match := pattern.fullmatch(text):
                return Action(name, match.groupdict())
        return None

    def render(self, action: Action) -> str:
        return self.templates[action.name].format(**action.arguments)

    def listing(self, names: list[str] | None = None) -> str:
        """Return the bullet list that replaces `{actions}` in a prompt; `names` selects some of the actions."""
        return "\n".join(f"- {self.templates[name]}" for name in names or self.templates)
