"""Store how many object ids and random numbers the simulator uses before it makes a world.

`PythonInterface.load` makes all variations of all 30 tasks, class by class (`TaskMaker1`), and then uses one of them.
That takes 40 of the 66 ms of a load, and 11.5 of the 12 MB of a world. We make only the variations of the task's own
class, with the ids and random numbers that they have in the stock simulator. The numbers below are those of
scienceworld 1.1.3; they were the same for every variation (0 to 1,385).
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
"""Class -> (number of object ids, number of random numbers) that the classes before it use."""
IDS = 17_196
"""Number of object ids that all classes together use."""
LCG_MULTIPLIER = 0x5DEECE66D
_LCG_INCREMENT, _LCG_MASK = 0xB, (1 << 48) - 1
"""`java.util.Random` is a linear congruential generator; `setSeed(s)` stores `s ^ multiplier` (documented there)."""


def before_class(name: str, variation: int) -> tuple[int, int]:
    """Return the counter of object ids and the state of the random stream just before `load` makes a class of tasks."""
    ids, numbers = _BEFORE[name]
    state = (variation ^ LCG_MULTIPLIER) & _LCG_MASK
    for _ in range(numbers):
        state = (state * LCG_MULTIPLIER + _LCG_INCREMENT) & _LCG_MASK
    return ids, state
