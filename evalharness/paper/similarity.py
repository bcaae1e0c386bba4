"""Measure the similarity of training data to the test environments (AgentRefine, figure 7).

Embed the openings of 50 conversations of each data set, and the prompts of ten tasks of each installed family, all
without worked examples. Then compute the mean cosine similarity of each pair of groups. The paper reports values below
0.5 for its own data. Data that was generated in a family's simulator gives higher values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from evalharness.base.errors import UserError
from evalharness.envs import specs
from evalharness.envs.base import EnvSpec, InvalidTaskError, MissingDataError, Task
from evalharness.paper.diversity import embed, label_paths, mean_similarity, read_conversations
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import load_prompt
from evalharness.suites.open import FROZEN_SEED

OF_DATA, OF_FAMILY = 50, 10
PUBLISHED = "agentboard"
_EXAMPLE = re.compile(r"\n*Here is an example\.\n.*?(?=\n\nNow it is your turn\.|\Z)", re.DOTALL)


def read_opening(conversation: Iterable[tuple[str, str]]) -> str:
    """Return the messages before the first reply, without the worked example of our prompts."""
    texts = []
    for role, text in conversation:
        if role == "assistant":
            break
        texts.append(text)
    return _EXAMPLE.sub("", "\n\n".join(texts)).strip()


def sample_data(path: Path, seed: int) -> list[str]:
    """Return the openings of sampled conversations of a data set. Raises UserError if no
    conversation has a text before the first reply."""
    conversations = list(read_conversations(path))
    chosen = Random(f"environments/{seed}").sample(conversations, min(OF_DATA, len(conversations)))
    texts = [text for text in map(read_opening, chosen) if text]
    if not texts:
        raise UserError(f"{path} has no conversation with a text before the first reply")
    return texts


def sample_family(family: str, seed: int, data: Path | None = None) -> list[str]:
    """Return the prompts of sampled tasks, without the worked example. The tasks come from the published suite if its
    data is present, otherwise from suite `open`, seed 0."""
    spec = specs()[family]
    tasks = _load_published(spec, data) or spec.suites.load_tasks("open", None, FROZEN_SEED)
    prompt = load_prompt(spec)
    surface = PlayedSurface(spec).perturbed
    texts = []
    for task in Random(f"environments/{seed}").sample(tasks, min(OF_FAMILY, len(tasks))):
        bare = prompt.for_kind(task.kind).model_copy(update={"example": None})
        messages = bare.messages(surface, task.goal, "")
        texts.append("\n\n".join(message["content"] for message in messages))
    return texts


def _load_published(spec: EnvSpec, data: Path | None) -> list[Task]:
    """Return the published tasks; empty if there is no published suite or its data is missing."""
    if PUBLISHED not in spec.suites.expected:
        return []
    try:
        return spec.suites.load_tasks(PUBLISHED, data, FROZEN_SEED)
    except (MissingDataError, InvalidTaskError):
        return []


def compare_blocks(
    paths: Sequence[Path], seed: int, data: Path | None = None
) -> tuple[list[dict[str, Any]], str]:
    """Return a row for each pair of groups, and the name of the embedding.

    The similarity of a group with itself is over pairs of different texts; None for a group of one text.
    """
    titles = {
        family: spec.title for family, spec in sorted(specs().items()) if PUBLISHED in spec.suites.expected
    }
    labels = [f"{name} (data)" if name in titles.values() else name for name in label_paths(paths)]
    groups = {label: sample_data(path, seed) for label, path in zip(labels, paths, strict=True)}
    groups |= {title: sample_family(family, seed, data) for family, title in titles.items()}
    vectors, name = embed([text for texts in groups.values() for text in texts])
    ends = np.cumsum([len(texts) for texts in groups.values()])
    parts = dict(zip(groups, np.split(vectors, ends[:-1]), strict=True))
    rows: list[dict[str, Any]] = []
    for first, left in parts.items():
        for second, right in parts.items():
            value = mean_similarity(left) if first == second else float((left @ right.T).mean())
            rows.append({"first": first, "second": second, "similarity": value})
    return rows, name
