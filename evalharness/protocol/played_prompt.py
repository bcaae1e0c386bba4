"""Find the prompt of a stored episode. A run stores only the hash of the prompt; the text is in the prompt file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.envs import specs
from evalharness.protocol.drawn import find_surface
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import AS_WRITTEN, Adaptation, PromptFile, load_prompt


@lru_cache
def _load_prompt(family: str, folder: Path | None, adaptation: Adaptation) -> PromptFile:
    return load_prompt(specs()[family], folder, adaptation)


@lru_cache(maxsize=1024)
def played_prompt(
    family: str,
    kind: str,
    perturbation: str | None,
    prompt_hash: str,
    folder: Path | None = None,
    adaptation: Adaptation = AS_WRITTEN,
    words: str = "",
) -> tuple[PromptFile, PlayedSurface] | None:
    """Return the prompt and the wording with which an episode was played; None if no valid prompt file has the hash.

    `folder`: folder with the user's own prompt files, as for `run --prompts`. `words`: see `Task.words`. Results are
    cached, because reading a prompt file takes 10 ms.
    """
    spec = specs().get(family)
    if spec is None:
        return None
    try:
        prompt = _load_prompt(family, folder, adaptation)
        surface = find_surface(spec, perturbation).for_game(words)
    except UserError:
        return None
    if prompt.sha256 != prompt_hash:
        return None
    return surface.prompt(prompt.for_kind(kind)), surface
