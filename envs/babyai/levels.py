"""The BabyAI levels of the suites, and their simulator: minigrid stepped without drawing its own view."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

FAMILY = "babyai"
OPEN_VERSION = 2
"""Of the open suite. 2: no two tasks begin alike, and none like one of suite seed 0 or a published one, but for
`FEW_STARTS`."""
FEW_STARTS: Mapping[str, int] = {"GoToRedBallNoDists": 8, "OpenRedDoor": 8}
"""Level -> how many of its tasks begin differently, where that is too few for every suite to have starts of its own.
Who sees the ball or the door at the start gets there by chance, so that a start shows walls alone: 330 and 321 seeds
that were accepted have 8 starts each."""
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
"""AgentBoard's 28 levels in its order; each is registered as `BabyAI-<name>-v0`."""
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
"""AgentGym's 40 in its order (agentenv-babyai at commit 3ef9235)."""
SEEDS = (1234, 1235, 1236, 1237)
"""Seeds of the published tasks, the same four for every level."""


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
"""Levels whose classes pass a constant size on; it can be overridden all the same."""


@cache
def _constructors() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Level name -> (class, keyword arguments) as minigrid registers it."""
    os.environ.setdefault(
        "PYGAME_HIDE_SUPPORT_PROMPT", "1"
    )  # minigrid imports pygame, which greets on stdout
    import gymnasium
    import minigrid
    import minigrid.envs.babyai.core.roomgrid_level as roomgrid_level
    from gymnasium.envs.registration import load_env_creator

    # Rejection sampling prints a line for every rejected layout. Shadowing the module's `print` costs nothing
    # and, unlike redirecting stdout, cannot swallow the output of another thread.
    roomgrid_level.print = lambda *_args, **_kwargs: None
    if "BabyAI-GoToObj-v0" not in gymnasium.registry:
        minigrid.register_minigrid_envs()  # gymnasium >= 1.0 no longer finds minigrid 2.3's levels by itself
    found = {}
    for name in AGENTGYM_LEVELS:
        spec = gymnasium.spec(f"BabyAI-{name}-v0")
        found[name] = (load_env_creator(str(spec.entry_point)), dict(spec.kwargs))
    return found


def _construct(level: str, parameters: Mapping[str, Any]) -> Any:
    from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel

    constructor, registered = _constructors()[level]
    if not parameters or level not in FIXED_SIZE:
        return constructor(**{**registered, **parameters})
    simulator = constructor(**registered)
    RoomGridLevel.__init__(simulator, **{**FIXED_SIZE[level], **parameters})  # once more, with another size
    return simulator


def make_level(level: str, seed: int, parameters: Mapping[str, Any] | None = None) -> Any:
    """A simulator of `level`, reset with `seed`; `parameters` override the registered keyword arguments.

    Two parts of the stock class are replaced on the instance. `gen_obs` is empty: three quarters of a stock step
    goes into drawing a view that `evalharness.envs.babyai.view` computes in a tenth of the time (tests compare the
    two). `_reward` is 1: BabyAI pays it on success and 0 on failure, so reward says which kind of end it was however
    many steps were taken.
    """
    simulator = _construct(level, parameters or {})
    simulator.gen_obs = lambda: {}
    simulator._reward = lambda: 1.0
    simulator.reset(seed=seed)
    return simulator
