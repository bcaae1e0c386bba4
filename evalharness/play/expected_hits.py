"""How much of its prompts a run should find in the server's prefix cache, to stand beside what the server measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from evalharness.models.template import Template
from evalharness.records.episode import Episode
from evalharness.records.tokens import TurnTokens, common_prefix


@dataclass
class ExpectedHits:
    """Counted over episodes: a prompt finds the prompt of the turn before, less what the template does not keep of
    it; where the token ids are on record, exactly what the two have in common. What episodes of a family have in
    common (instruction, worked example) comes on top, so that a server with room for everything measures more; one
    that measures less has thrown prefixes away."""

    found: float = 0.0
    prompts: float = 0.0
    """Tokens of all prompts."""

    def add(
        self, episode: Episode, template: Template | None, tokens: Sequence[TurnTokens | None] = ()
    ) -> None:
        """`tokens`: of each turn, where they are recorded. Else nothing is counted where the template is unknown or the
        server gave no token counts."""
        ids = [turn.prompt for turn in tokens if turn is not None]
        if ids and len(ids) == len(episode.turns):
            self.prompts += sum(map(len, ids))
            self.found += sum(common_prefix(earlier, prompt) for earlier, prompt in pairwise(ids))
            return
        lengths = [turn.prompt_tokens for turn in episode.turns]
        if template is None or None in lengths:
            return
        trimmed = {trim.turn for trim in episode.trims}
        self.prompts += sum(length or 0 for length in lengths)
        for earlier, turn in pairwise(episode.turns):
            if turn.turn not in trimmed:  # there nothing behind the head is found
                self.found += max(0.0, (earlier.prompt_tokens or 0) - template.lost_tokens)

    @property
    def share(self) -> float | None:
        """0..1; None before the first episode."""
        return self.found / self.prompts if self.prompts else None
