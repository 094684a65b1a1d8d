"""The map of how far the saliency changes, on a small network, and its judge on made-up numbers."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.invariant import stationarity as claims
from tests.theories.joma.helpers import panels


@pytest.fixture(scope="module")
def runs():
    grid = jd.grid(claims.Stacked, depth=[0, 2], upper=["tanh", "id"], tokens=10, nodes=4, classes=4, dim=12)
    return jd.sweep(claims.trial, grid, seeds=8)


def test_without_upper_layers_the_activation_below_them_does_not_matter(runs):
    flat = runs.sel(depth=0)
    np.testing.assert_allclose(flat.measured_saliency.sel(upper="tanh"), flat.measured_saliency.sel(upper="id"), rtol=1e-12)
    deep = runs.sel(depth=2)
    assert float(abs(deep.measured_saliency.sel(upper="tanh") - deep.measured_saliency.sel(upper="id")).max()) > 1e-3
    assert list(claims.cells(runs)) == ["depth 0", "depth 2, tanh", "depth 2, id"]


def test_judge_measures_change_and_turn(runs):
    doubled = runs.assign(measured_saliency=2 * runs.predicted_saliency, reached=0 * runs.reached + 1)
    gate, size, direction, *_ = claims.judge(doubled)
    assert (gate.passed, size.passed, direction.passed) == (True, False, True)
    assert (size.value, direction.value) == (pytest.approx(0.0, abs=1e-12), pytest.approx(1.0))
    unmoved = runs.assign(measured_saliency=1.01 * runs.predicted_saliency, reached=0 * runs.reached + 1)
    assert all(check.passed for check in claims.judge(unmoved))
    assert not claims.judge(runs.assign(reached=0 * runs.reached))[0].passed


def test_figure(runs):
    assert len(panels(claims.CLAIMS[0], runs)) == 2


def test_the_dimensions_must_hold_orthonormal_embeddings():
    with pytest.raises(jd.UsageError, match="dim=20, tokens=20 are not allowed"):
        claims.Stacked(dim=20)
