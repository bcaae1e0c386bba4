"""Read which part of the machine this process may use."""

from __future__ import annotations

import os
from pathlib import Path


def core_numbers() -> list[int]:
    """Return the cores that this process may use, in order."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(core_numbers())


def share_in_use(cores: list[int], seconds: float = 0.5) -> float:
    """Measure over `seconds` which share of these cores' time is in use, 0 to 1."""
    import psutil

    percent = psutil.cpu_percent(interval=seconds, percpu=True)
    used = [percent[core] for core in cores if core < len(percent)]
    return sum(used) / len(used) / 100 if used else 0.0


def cpu_flags() -> frozenset[str]:
    """Return the CPU's features in Linux's names (`avx2`, `avx512bw`); empty on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    words = (line.partition(":") for line in text.splitlines())
    # The key is "flags" on x86, "Features" on Arm.
    return next(
        (frozenset(of.split()) for name, _, of in words if name.strip() in ("flags", "Features")), frozenset()
    )
