"""Do our environments behave as recorded ones did? Transcripts are replayed and compared step by step."""

from __future__ import annotations

from evalharness.checks.conform.compare import FamilyResult, Mismatch, ReplayCheck
from evalharness.checks.conform.replay import conform
from evalharness.checks.conform.rules import Tolerance, load_tolerances
from evalharness.checks.conform.transcripts import Transcript, read_transcripts

__all__ = [
    "FamilyResult",
    "Mismatch",
    "ReplayCheck",
    "Tolerance",
    "Transcript",
    "conform",
    "load_tolerances",
    "read_transcripts",
]
