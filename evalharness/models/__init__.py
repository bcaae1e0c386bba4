"""Whatever answers: a model behind a server, or a scripted policy."""

from evalharness.models.base import (
    ContextOverflowError,
    Environment,
    Player,
    Policy,
    PolicyStoppedError,
    Reply,
)

__all__ = ["ContextOverflowError", "Environment", "Player", "Policy", "PolicyStoppedError", "Reply"]
