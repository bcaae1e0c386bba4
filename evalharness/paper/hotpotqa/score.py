"""Compute exact match and F1 of an answer by the rule of HotpotQA's official evaluation (Yang et al., EMNLP 2018)."""

from __future__ import annotations

import re
import string
from collections import Counter

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_CLOSED = frozenset({"yes", "no", "noanswer"})
"""Answers that get no partial credit: F1 is 0 unless answer and gold are equal."""


def normal(answer: str) -> str:
    """Return the text in lower case, without punctuation, articles and repeated white space."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> bool:
    return normal(answer) == normal(gold)


def f1(answer: str, gold: str) -> float:
    """Return F1 over the words of both texts after `normal`, 0..1."""
    given, expected = normal(answer), normal(gold)
    if given != expected and (given in _CLOSED or expected in _CLOSED):
        return 0.0
    given_words, expected_words = given.split(), expected.split()
    common = sum((Counter(given_words) & Counter(expected_words)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(given_words), common / len(expected_words)
    return 2 * precision * recall / (precision + recall)
