"""List how many object ids and random numbers the simulator uses before it makes a class of tasks.

To load a task, the simulator makes all variations of all 30 kinds, class by class, and then uses one of them. Making
all variations takes 40 of the 66 ms of a load, and 11.5 of the 12 MB of a world. We make only the class of the task.
So that its variations are equal to those of the simulator, we first set the counter of ids and the random state to the
values that they would have there. The numbers below are those of scienceworld 1.1.3. They were the same for every
variation (0 to 1,385).
"""

from __future__ import annotations

_BEFORE = {
    "TaskChangeOfState": (0, 0),
    "TaskElectricCircuit": (360, 32),
    "TaskElectricalConductivity": (420, 32),
    "TaskElectricalConductivity2": (576, 32),
    "TaskFindLivingNonLiving": (696, 56),
    "TaskGrowPlant": (5856, 696),
    "TaskChemistryMix": (7458, 696),
    "TaskChemistryMixPaint": (7770, 696),
    "TaskLifeSpan": (7992, 700),
    "TaskIdentifyLifeStages1": (8127, 700),
    "TaskIdentifyLifeStages2": (8757, 700),
    "TaskInclinedPlane1": (11607, 780),
    "TaskInclinedPlane2": (11757, 780),
    "TaskInclinedPlane3": (11817, 780),
    "TaskMendelianGenetics1": (11877, 780),
    "TaskMendelianGenetics2": (12237, 920),
    "TaskUseInstrumentThermometer": (12837, 2000),
    "TaskUseInstrumentThermometer2": (14010, 2720),
    "TaskUseInstrumentThermometer3": (14313, 2745),
}
"""Class of tasks -> (number of object ids, number of random numbers) that the classes before this class use."""
IDS = 17_196
"""Number of object ids that all classes of tasks together use."""
LCG_MULTIPLIER = 0x5DEECE66D
_LCG_INCREMENT, _LCG_MASK = 0xB, (1 << 48) - 1
"""Constants of the linear congruential generator `java.util.Random`. Its `setSeed(s)` stores `s ^ multiplier`."""


def before_class(name: str, variation: int) -> tuple[int, int]:
    """Return (counter of object ids, state of the random numbers) at the time when the simulator makes this class."""
    ids, numbers = _BEFORE[name]
    state = (variation ^ LCG_MULTIPLIER) & _LCG_MASK
    for _ in range(numbers):
        state = (state * LCG_MULTIPLIER + _LCG_INCREMENT) & _LCG_MASK
    return ids, state
