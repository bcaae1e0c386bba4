"""What this process may use of the machine."""

from __future__ import annotations

import os
from pathlib import Path


def core_numbers() -> list[int]:
    """Of the cores that this process may run on, in order."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(core_numbers())


def share_in_use(cores: list[int], seconds: float = 0.5) -> float:
    """Of these cores' time, from 0 to 1, measured over `seconds`."""
    import psutil

    percent = psutil.cpu_percent(interval=seconds, percpu=True)
    used = [percent[core] for core in cores if core < len(percent)]
    return sum(used) / len(used) / 100 if used else 0.0


def cpu_flags() -> frozenset[str]:
    """What the CPU can do, in Linux's words (`avx2`, `avx512bw`); empty where there is no Linux to ask."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    words = (line.partition(":") for line in text.splitlines())
    # "Features" on Arm
    return next(
        (frozenset(of.split()) for name, _, of in words if name.strip() in ("flags", "Features")), frozenset()
    )
