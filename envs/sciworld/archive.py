from __future__ import annotations
import os

def flags(executable: str) -> list[str]:
    return os.environ.get("SCI_FLAGS", "").split()
