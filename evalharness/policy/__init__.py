"""Whatever answers: a model behind a server, or a scripted policy."""

from evalharness.policy.base import (
    ContextOverflowError,
    Environment,
    Policy,
    PolicyStoppedError,
    Reply,
    Session,
)

__all__ = ["ContextOverflowError", "Environment", "Policy", "PolicyStoppedError", "Reply", "Session"]
