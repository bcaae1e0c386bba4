"""List the settings, other than the model, that may change a run's scores: prompts, token limits, sampling.

Published results do not state their prompts and token limits, so a leaderboard compares a run with our defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evalharness.config import OPTIONS
from evalharness.records.manifest import Identity
from evalharness.results.score import EpisodeScore

MAX_TOKENS = int(OPTIONS["max_tokens"].default)


def deviations(
    identity: Identity, prompts: Mapping[str, str], titles: Mapping[str, str], scores: Iterable[EpisodeScore]
) -> tuple[str, ...]:
    """Return a phrase for each difference between a run's settings and the harness's defaults.

    `prompts`: family -> SHA-256 of the harness's prompt file. The prompts of other families are not checked.
    """
    config = identity.config.to_json()
    others = [
        titles.get(family, family)
        for family, sha in sorted(identity.prompts_sha256.items())
        if prompts.get(family, sha) != sha
    ]
    phrases = [f"other prompts for {', '.join(others)}"] if others else []
    if config.get("max_tokens", MAX_TOKENS) != MAX_TOKENS:
        phrases.append(f"at most {config['max_tokens']} tokens a reply, not {MAX_TOKENS}")
    if "--max-model-len" in str(config.get("vllm_args") or ""):
        phrases.append(f"a context limit of its own ({config['vllm_args']})")
    if config.get("sampling") == "model":
        phrases.append("sampling as the model recommends it")
    elif (config["temperature"] or 0) > 0:
        phrases.append(
            f"mean of {config['samples']} samples at temperature {config['temperature']}, not greedy"
        )
    phrases += [
        f"{name.replace('_', ' ')} {config[name]}"
        for name in ("presence_penalty", "frequency_penalty", "repetition_penalty")
        # Penalties change greedy decoding, too.
        if config.get(name) not in (None, OPTIONS[name].default)
    ]
    if cut := sum(score.cut_from > 0 for score in scores):
        phrases.append(f"the server dropped the beginning of {cut} episodes")
    return tuple(phrases)
