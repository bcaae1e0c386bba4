"""The user's data folder: published benchmark files are imported into it and checked by hash, never shipped.

The environments read `<folder>/agentboard/<family folder>/...` (`TextEnv(data=<folder>)`).
"""

from __future__ import annotations

from evalharness.data.table import FamilyCheck, PublishedFamily, check, published

__all__ = ["FamilyCheck", "PublishedFamily", "check", "published"]
