"""Import published benchmark files into the user's data folder and check them by hash; we ship none of these files.

The environments read `<folder>/agentboard/<family folder>/...` (`TextEnv(data=<folder>)`).
"""

from __future__ import annotations

from evalharness.data.table import FamilyCheck, PublishedFamily, check, published

__all__ = ["FamilyCheck", "PublishedFamily", "check", "published"]
