"""List the levels of the suites, and make the minigrid simulator of a level."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

FAMILY = "babyai"
OPEN_VERSION = 2
"""Version of the open suite. Version 2 has no task with the goal and first observation of another task (see
`open.generator`)."""
FEW_STARTS: Mapping[str, int] = {"GoToRedBallNoDists": 8, "OpenRedDoor": 8}
"""Level -> number of different first observations, if it is too small to give every suite its own. Such a level has one
ball or door, and the accepted seeds hide it at the start, because a random policy would otherwise reach it. So only
walls are visible: more than 300 accepted seeds of each level gave 8 first observations."""
LEVELS: tuple[str, ...] = (
    "GoToRedBallGrey",
    "GoToRedBall",
    "GoToRedBallNoDists",
    "GoToObjS6",
    "GoToLocalS8N7",
    "GoToObjMazeS7",
    "GoToImpUnlock",
    "GoToSeqS5R2",
    "GoToRedBlueBall",
    "GoToDoor",
    "GoToObjDoor",
    "Open",
    "OpenRedDoor",
    "OpenDoorLoc",
    "OpenRedBlueDoorsDebug",
    "OpenDoorsOrderN4Debug",
    "Pickup",
    "UnblockPickup",
    "PickupLoc",
    "PickupDistDebug",
    "PickupAbove",
    "Unlock",
    "UnlockLocalDist",
    "UnlockPickupDist",
    "BlockedUnlockPickup",
    "UnlockToUnlock",
    "FindObjS7",
    "KeyCorridorS6R3",
)
"""AgentBoard's 28 levels in AgentBoard's order; minigrid registers each as `BabyAI-<name>-v0`."""
AGENTGYM_LEVELS: tuple[str, ...] = (
    *LEVELS[:21],
    "PutNextLocalS6N4",
    "PutNextS7N4Carrying",
    *LEVELS[21:23],
    "KeyInBox",
    *LEVELS[23:26],
    "ActionObjDoor",
    *LEVELS[26:],
    "OneRoomS20",
    "MoveTwoAcrossS8N9",
    "SynthS5R2",
    "SynthLoc",
    "SynthSeq",
    "MiniBossLevel",
    "BossLevel",
    "BossLevelNoUnlock",
)
"""AgentGym's 40 levels in AgentGym's order (agentenv-babyai at commit 3ef9235)."""
SEEDS = (1234, 1235, 1236, 1237)
"""Seeds of the published tasks: the same four seeds for every level."""


FIXED_SIZE: Mapping[str, Mapping[str, Any]] = {
    "GoToRedBallNoDists": {"num_rows": 1, "num_cols": 1, "room_size": 8},
    "GoToDoor": {"room_size": 7},
    "GoToObjDoor": {"room_size": 8},
    "OpenRedDoor": {"num_rows": 1, "num_cols": 2, "room_size": 5},
    "OpenRedBlueDoorsDebug": {"room_size": 6},
    "OpenDoorsOrderN4Debug": {"room_size": 6},
    "PickupAbove": {"room_size": 6},
    "PickupDistDebug": {"num_rows": 1, "num_cols": 1, "room_size": 7},
}
"""Level whose class ignores arguments for its size -> the constants of this class."""


@cache
def _constructors() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return level -> (class, keyword arguments), as registered by minigrid."""
    # minigrid imports pygame, which otherwise prints a greeting.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import gymnasium
    import minigrid
    import minigrid.envs.babyai.core.roomgrid_level as roomgrid_level
    from gymnasium.envs.registration import load_env_creator

    # minigrid prints a line for every rejected layout. Replacing `print` in its module costs no time. Redirecting
    # stdout instead could lose the output of another thread.
    roomgrid_level.print = lambda *_args, **_kwargs: None
    if "BabyAI-GoToObj-v0" not in gymnasium.registry:
        minigrid.register_minigrid_envs()  # gymnasium >= 1.0 no longer registers minigrid 2.3's levels
    constructors = {}
    for name in AGENTGYM_LEVELS:
        spec = gymnasium.spec(f"BabyAI-{name}-v0")
        constructors[name] = (load_env_creator(str(spec.entry_point)), dict(spec.kwargs))
    return constructors


def _construct(level: str, parameters: Mapping[str, Any]) -> Any:
    from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel

    constructor, registered = _constructors()[level]
    if not parameters or level not in FIXED_SIZE:
        return constructor(**{**registered, **parameters})
    simulator = constructor(**registered)
    RoomGridLevel.__init__(
        simulator, **{**FIXED_SIZE[level], **parameters}
    )  # initialise again with the wanted size
    return simulator


def make_level(level: str, seed: int, parameters: Mapping[str, Any] | None = None) -> Any:
    """Return a simulator of `level`, reset with `seed`; `parameters` override the registered keyword arguments.

    Two methods of minigrid's simulator are replaced. `gen_obs` does nothing, because it took three quarters of the time
    of a step; `evalharness.envs.babyai.view` computes the same view in a tenth of that time. `_reward` returns 1 for a
    success after any number of steps.
    """
    simulator = _construct(level, parameters or {})
    simulator.gen_obs = lambda: {}
    simulator._reward = lambda: 1.0
    simulator.reset(seed=seed)
    return simulator
