"""Checkouts of other groups' protocols in miniature, for tests that need no published data."""

from __future__ import annotations

from pathlib import Path

FIRST = "You are at {current_observation}. Actions: [{admissible_actions}]."
LATER = (
    "Task: {task_description} {step_count} steps; last {history_length}: {action_history} Step {current_step}: "
    "{current_observation} [{admissible_actions}]"
)


def verl_checkout(folder: Path, first: str = FIRST, later: str = LATER, more: str = "") -> Path:
    """What `protocol import verl-agent` reads."""
    path = folder / "agent_system" / "environments" / "prompts" / "alfworld.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{more}\nALFWORLD_TEMPLATE_NO_HIS = {first!r}\nALFWORLD_TEMPLATE = {later!r}\n")
    (folder / "LICENSE").write_text("Some License\nAll of it.\n")
    return folder
