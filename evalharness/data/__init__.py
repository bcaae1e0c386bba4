"""The user's data folder: published benchmark files are brought in here, checked by hash, never shipped.

`<folder>/agentboard/<family folder>/...` is what the environments read (`TextEnv(data=<folder>)`).
"""

from __future__ import annotations

from evalharness.data.table import FamilyCheck, PublishedFamily, check, published

__all__ = ["FamilyCheck", "PublishedFamily", "check", "published"]
