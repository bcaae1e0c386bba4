"""What judging has done so far."""

from __future__ import annotations

from dataclasses import dataclass

from evalharness.models.work import WorkProgress


@dataclass
class JudgeProgress(WorkProgress):
    unread: int = 0
    """Replies that were not what was asked for."""

    def details(self) -> list[str]:
        return [f"{self.unread} replies not readable"] if self.unread else []
