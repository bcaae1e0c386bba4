"""Options that limit a run: tries, time, format errors."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import Field, field_validator

from evalharness.config.option import ConfigPart, Option


class LimitsConfig(ConfigPart):
    tries: Annotated[int, Option(operational=True)] = Field(default=3, ge=1)
    """maximum number of tries of an episode if a server, a simulator or the network fails"""
    time_limit: Annotated[float | None, Option("S|2h30m", operational=True, text=True)] = Field(
        default=None, gt=0, allow_inf_nan=False
    )
    """stop after this time (seconds, or 90m, 2h30m); the same command continues"""
    stop_on_format_errors: Annotated[float | None, Option(no_flag=True, operational=True)] = Field(
        default=None, ge=0, lt=1
    )
    """stop if more than this share of the replies (0..1) are format errors; checked from 20 replies on"""

    @field_validator("time_limit", mode="before")
    @classmethod
    def _parse_duration(cls, given: Any) -> Any:
        if not isinstance(given, str) or not re.search(r"[^\d.]", given.strip()):
            return given
        number = r"(\d+(?:\.\d+)?)"
        parts = re.fullmatch(
            rf"(?:{number}\s*h)?\s*(?:{number}\s*m)?\s*(?:{number}\s*s)?", given.strip().lower()
        )
        if parts is None:
            raise ValueError("give seconds, or hours, minutes and seconds such as 2h30m")
        return sum(float(part or 0) * unit for part, unit in zip(parts.groups(), (3600, 60, 1), strict=True))
