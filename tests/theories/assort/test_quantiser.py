"""The quantiser's trial agrees with its formulas, and breaches do not."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.assort.quantiser import Quantiser, brute, trial


@pytest.mark.slow
def test_formulas_hold_and_breaches_break_them():
    grid = jd.grid(Quantiser, choice=["nearest", "product"], passing=["straight", "hard"], stopped=[1.0, 0.0])
    ds = jd.sweep(trial, grid, 4)
    plain = {"choice": "nearest", "passing": "straight", "stopped": 1.0}
    for name, breach in (
        ("code", {"choice": "product"}),
        ("again", {"choice": "product"}),
        ("gradient", {"passing": "hard"}),
        ("commitment", {"stopped": 0.0}),
        ("pull", {"stopped": 0.0}),
    ):
        right, wrong = (ds.sel(plain | change) for change in ({}, breach))
        np.testing.assert_allclose(right[f"measured_{name}"], right[f"predicted_{name}"], rtol=1e-7, atol=1e-8)
        assert float(abs(wrong[f"measured_{name}"] - wrong[f"predicted_{name}"]).max()) > 0.1
    np.testing.assert_allclose(ds.measured_average, ds.predicted_average, rtol=1e-12)


def test_distances_are_those_of_scipy():
    from scipy.spatial.distance import cdist

    x, y = np.random.default_rng(0).normal(size=(2, 5, 3))
    np.testing.assert_allclose(brute(x, y), cdist(x, y), rtol=1e-5)
