"""A turn that is one call to Java is the stock simulator's step, to the letter."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from evalharness.envs.sciworld.kinds import SIMPLIFICATIONS
from evalharness.envs.sciworld.simulator import Simulator, SimulatorFault

pytestmark = pytest.mark.slow

ODD = (
    *("help", " TASK ", "objects", "\x00help", "", "dance", "0", "7", "pick up object", "look at object"),
    *("pour object in object", "1", "open", "teleport to kitchen", "x" * 3_000, "look in inventory"),
    *("focus on agent", "eat agent", "read recipe", "look around", "move agent to inventory", "look around"),
    *("inventory", "wait1", "reset task", "pick up agent", "wait", "dance"),
)


class StockSimulator(Simulator):
    """Every step is `PythonInterface.step`."""

    def step(self, text: str) -> str:
        return self._stock_step(text.encode("utf-8", "replace").decode())


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Simulator, StockSimulator]]:
    ours, stock = Simulator(), StockSimulator()
    yield ours, stock
    ours.close()
    stock.close()


def _said(simulator: Simulator, text: str) -> tuple[str, tuple[float, bool]]:
    try:
        answer = simulator.step(text)
    except SimulatorFault:
        answer = "fault"
    return answer, simulator.verdict()


@pytest.mark.parametrize(
    ("task", "variation", "simplifications"),
    [
        ("find-animal", 5, SIMPLIFICATIONS),
        ("chemistry-mix-paint-secondary-color", 7, SIMPLIFICATIONS),
        ("power-component", 2, "openDoors"),
        ("boil", 6, "easy"),  # where `teleport` is an action
    ],
)
def test_a_turn_is_the_stock_step(
    pair: tuple[Simulator, StockSimulator], task: str, variation: int, simplifications: str
) -> None:
    """The two play in turn in one Java process, so each turn also takes the singletons from the other world."""
    choose = random.Random(variation)
    ours, stock = pair
    for simulator in pair:
        simulator.load(task, variation, simplifications)
    assert _said(ours, "look around") == _said(stock, "look around")
    for number, odd in enumerate(ODD):
        valid = ours.valid_actions()
        if number % 4 == 0:  # the list takes far longer than a turn
            assert valid == stock.valid_actions()
        for text in (odd, choose.choice(valid)):
            assert _said(ours, text) == _said(stock, text), text


class StockLoad(Simulator):
    """Every world is made by `PythonInterface.load`, with all variations of all tasks."""

    def load(self, task: str, variation: int, simplifications: str, *, gold: bool = False) -> None:
        self.start()
        self._simplifications, self._verdict = simplifications, None
        with self._call(fresh=True) as shared:
            assert self._world is not None
            self._world.load_as_stock(task, variation, simplifications, gold=gold)
            shared.note_simplifications(simplifications)


def _singletons(simulator: Simulator) -> tuple[int, int]:
    """The world's random state and its counter of object ids."""
    assert simulator._world is not None
    values = simulator._world._values
    return values.get(0), values.get(1)


TASK_OF_EACH_CLASS = (
    *("freeze", "power-component", "test-conductivity", "test-conductivity-of-unknown-substances"),
    *("find-living-thing", "grow-fruit", "chemistry-mix", "chemistry-mix-paint-tertiary-color"),
    *("lifespan-shortest-lived", "identify-life-stages-1", "identify-life-stages-2"),
    *("inclined-plane-determine-angle", "inclined-plane-friction-named-surfaces"),
    *("inclined-plane-friction-unnamed-surfaces", "mendelian-genetics-known-plant"),
    *("mendelian-genetics-unknown-plant", "use-thermometer", "measure-melting-point-known-substance"),
    "measure-melting-point-unknown-substance",
)


def test_a_world_without_the_other_tasks_is_the_stock_world() -> None:
    ours, stock = Simulator(), StockLoad()
    try:
        for number, task in enumerate(TASK_OF_EACH_CLASS):
            variation = number % 10
            for simulator in (ours, stock):
                simulator.load(task, variation, SIMPLIFICATIONS)
            assert _singletons(ours) == _singletons(stock), task
            assert ours.task_description() == stock.task_description()
            for text in ("look around", "inventory", "open door to kitchen", "go to kitchen", "wait1"):
                assert _said(ours, text) == _said(stock, text), task
            assert ours.valid_actions() == stock.valid_actions(), task
            assert _singletons(ours) == _singletons(stock), task
    finally:
        ours.close()
        stock.close()
