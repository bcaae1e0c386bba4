"""Import published benchmark files into the user's data folder and check them by hash.

The harness contains none of these files. The environments read them from `<data folder>/agentboard/<family folder>/`.
"""

from __future__ import annotations

from evalharness.data.table import FamilyCheck, PublishedFamily, check, published

__all__ = ["FamilyCheck", "PublishedFamily", "check", "published"]
