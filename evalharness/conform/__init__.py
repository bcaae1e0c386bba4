"""Do our environments behave as recorded ones did? Transcripts are replayed and compared step by step."""

from __future__ import annotations

from evalharness.conform.compare import Comparison, Difference, FamilyResult
from evalharness.conform.replay import conform
from evalharness.conform.rules import Policy, load_policies
from evalharness.conform.transcripts import Transcript, read_transcripts

__all__ = [
    "Comparison",
    "Difference",
    "FamilyResult",
    "Policy",
    "Transcript",
    "conform",
    "load_policies",
    "read_transcripts",
]
