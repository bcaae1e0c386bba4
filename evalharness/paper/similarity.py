"""How like training data is to the environments that models are tested in (AgentRefine, figure 7).

50 openings of conversations of each data set and ten tasks of each installed family, worked examples left out, in one
embedding; the mean cosine similarity of every two groups. The paper holds data against the test sets and finds 0.5
and more nowhere. Data that is grounded in a family is like that family: that is what the figure is to show.
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
from evalharness.paper.diversity import embed, labels_of_paths, mean_similarity, read_conversations
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import load_prompt
from evalharness.suites.open import FROZEN_SEED

OF_DATA, OF_FAMILY = 50, 10
PUBLISHED = "agentboard"
_EXAMPLE = re.compile(r"\n*Here is an example\.\n.*?(?=\n\nNow it is your turn\.|\Z)", re.DOTALL)


def opening(conversation: Iterable[tuple[str, str]]) -> str:
    """What a conversation begins with, up to the first reply, our prompts' worked example left out."""
    texts = []
    for role, text in conversation:
        if role == "assistant":
            break
        texts.append(text)
    return _EXAMPLE.sub("", "\n\n".join(texts)).strip()


def of_data(path: Path, seed: int) -> list[str]:
    """Raises UserError where the file holds no conversation."""
    conversations = list(read_conversations(path))
    chosen = Random(f"environments/{seed}").sample(conversations, min(OF_DATA, len(conversations)))
    texts = [text for text in map(opening, chosen) if text]
    if not texts:
        raise UserError(f"{path} holds no conversation that begins with anything")
    return texts


def of_family(family: str, seed: int, data: Path | None = None) -> list[str]:
    """Instruction and goal of tasks, without the worked example: of the published suite where its data is there, else
    of suite seed 0."""
    spec = specs()[family]
    tasks = _published(spec, data) or spec.suites.load_tasks("open", None, FROZEN_SEED)
    prompt = load_prompt(spec)
    surface = PlayedSurface(spec).perturbed
    texts = []
    for task in Random(f"environments/{seed}").sample(tasks, min(OF_FAMILY, len(tasks))):
        bare = prompt.for_kind(task.kind).model_copy(update={"example": None})
        messages = bare.messages(surface, task.goal, "")
        texts.append("\n\n".join(message["content"] for message in messages))
    return texts


def _published(spec: EnvSpec, data: Path | None) -> list[Task]:
    """Empty where there is no published suite, or its data is not there."""
    if PUBLISHED not in spec.suites.expected:
        return []
    try:
        return spec.suites.load_tasks(PUBLISHED, data, FROZEN_SEED)
    except (MissingDataError, InvalidTaskError):
        return []


def block_means(
    paths: Sequence[Path], seed: int, data: Path | None = None
) -> tuple[list[dict[str, Any]], str]:
    """(a row a pair of groups, name of the embedding).

    Within a group a text is not compared with itself; None is the similarity of a group of one with itself.
    """
    titles = {
        family: spec.title for family, spec in sorted(specs().items()) if PUBLISHED in spec.suites.expected
    }
    labels = [f"{name} (data)" if name in titles.values() else name for name in labels_of_paths(paths)]
    groups = {label: of_data(path, seed) for label, path in zip(labels, paths, strict=True)}
    groups |= {title: of_family(family, seed, data) for family, title in titles.items()}
    vectors, name = embed([text for texts in groups.values() for text in texts])
    ends = np.cumsum([len(texts) for texts in groups.values()])
    parts = dict(zip(groups, np.split(vectors, ends[:-1]), strict=True))
    rows: list[dict[str, Any]] = []
    for first, left in parts.items():
        for second, right in parts.items():
            value = mean_similarity(left) if first == second else float((left @ right.T).mean())
            rows.append({"first": first, "second": second, "similarity": value})
    return rows, name
