"""What else than the model may have moved a run's scores: prompts, token limits and sampling other than the harness's.

The published rows' prompts and token limits are not public, so ours stand for them in a leaderboard. Pure.
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
    """A phrase for each way in which a run (its manifest's `identity`) leaves the harness's own protocol.

    `prompts`: family -> SHA-256 of the prompt file that comes with the harness; a family that is not there (an
    environment that is not installed) is not judged.
    """
    config = identity.config.to_json()
    others = [
        titles.get(family, family)
        for family, sha in sorted(identity.prompts_sha256.items())
        if prompts.get(family, sha) != sha
    ]
    found = [f"other prompts for {', '.join(others)}"] if others else []
    if config.get("max_tokens", MAX_TOKENS) != MAX_TOKENS:
        found.append(f"at most {config['max_tokens']} tokens a reply, not {MAX_TOKENS}")
    if "--max-model-len" in str(config.get("vllm_args") or ""):
        found.append(f"a context limit of its own ({config['vllm_args']})")
    if config.get("sampling") == "model":
        found.append("sampling as the model recommends it")
    elif (config["temperature"] or 0) > 0:
        found.append(
            f"mean of {config['samples']} samples at temperature {config['temperature']}, not greedy"
        )
    found += [
        f"{name.replace('_', ' ')} {config[name]}"
        for name in ("presence_penalty", "frequency_penalty", "repetition_penalty")
        # These change what is greedy, too.
        if config.get(name) not in (None, OPTIONS[name].default)
    ]
    if cut := sum(score.cut_from > 0 for score in scores):
        found.append(f"{cut} episodes whose beginning the server had dropped")
    return tuple(found)
