"""Check what works on this machine, what does not, and which command fixes it."""

from __future__ import annotations

from evalharness.checks.doctor.families import FamilyProbe, SuiteProbe, probe_families
from evalharness.checks.doctor.machine import Finding, machine_findings

__all__ = ["FamilyProbe", "Finding", "SuiteProbe", "machine_findings", "probe_families"]
