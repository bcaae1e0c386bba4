"""The lead of the best of k equally good models, against its textbook value and by what it must not depend on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalharness.stats.chance import lead_by_chance


def noise(models: int, tasks: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(models, tasks))


def test_two_models_lead_by_the_expected_maximum_of_two_normals() -> None:
    """E max(x, y) - mean = sd(x - y) / sqrt(2 pi) for normal x, y."""
    values = noise(2, 400)
    found = lead_by_chance([values])
    assert found is not None
    error = math.sqrt(np.var(values[0] - values[1], ddof=1) / 400)
    assert found.expected == pytest.approx(error / math.sqrt(2 * math.pi), rel=0.02)


def test_k_independent_models_lead_by_the_expected_maximum_of_k() -> None:
    """For five standard normals it is 1.163 (Harter, Biometrika 48, 1961, 151-165)."""
    found = lead_by_chance([noise(5, 20_000)])
    assert found is not None
    assert found.expected == pytest.approx(1.163 / math.sqrt(20_000), rel=0.03)


def test_luck_that_all_models_share_is_no_lead() -> None:
    """Hard and easy tasks move all scores together."""
    values = noise(4, 200)
    shared = values + 50 * noise(1, 200, seed=1)
    first, second = lead_by_chance([values]), lead_by_chance([shared])
    assert first is not None
    assert second is not None
    assert second.expected == pytest.approx(first.expected, rel=0.05)


def test_a_true_lead_is_told_from_luck() -> None:
    values = noise(6, 300)
    luck = lead_by_chance([values])
    assert luck is not None
    assert luck.p > 0.02
    values[3] += 1
    found = lead_by_chance([values])
    assert found is not None
    assert found.p < 0.001
    assert found.lead > found.high > found.expected > 0


def test_families_vary_within_themselves() -> None:
    """Means of families apart say nothing about luck; the lead is that of the mean over all tasks."""
    one, other = noise(3, 100), noise(3, 50, seed=1)
    apart, together = lead_by_chance([one, other + 100]), lead_by_chance([one, other])
    assert apart is not None
    assert together is not None
    assert apart.expected == pytest.approx(together.expected)
    pooled = np.concatenate([one, other], axis=1).mean(axis=1)
    assert apart.lead == pytest.approx(pooled.max() - pooled.mean())


def test_equal_models_have_no_lead_and_one_model_none_to_speak_of() -> None:
    same = np.tile(noise(1, 50), (4, 1))
    found = lead_by_chance([same])
    assert found is not None
    assert (round(found.lead, 9), found.p) == (0, 1)
    assert lead_by_chance([noise(1, 50)]) is None
    assert lead_by_chance([noise(3, 1)]) is None


def test_the_same_values_give_the_same_answer() -> None:
    assert lead_by_chance([noise(4, 60)]) == lead_by_chance([noise(4, 60)])
