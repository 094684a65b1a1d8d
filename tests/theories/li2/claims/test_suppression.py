"""The judge of the claim on suppression, on planted gains."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.li2.claims import suppression

CLAIM = suppression.CLAIMS[0]


def planted(factor, seeds=32):
    """Gains whose held part is ``factor`` of the free one, with noise of 5%."""
    rng = np.random.default_rng(0)
    free = np.exp(rng.normal(size=(seeds, 3)))
    gain = np.stack([factor * free * np.exp(0.05 * rng.normal(size=free.shape)), free], -1)
    coords = {"seed": np.arange(seeds), "epoch": [100, 200, 300], "part": ["held", "free"]}
    axes = ("seed", "epoch", "part")
    return xr.Dataset({"measured_gain": (axes, gain), "test_accuracy": (axes[:2], 0 * free)}, coords)


@pytest.mark.parametrize(("factor", "outcome"), [(1.0, True), (0.95, True), (0.8, False), (0.5, False), (1.3, False)])
def test_a_tenth_decides(factor, outcome):
    assert {c.passed for c in CLAIM.judge(planted(factor))} == {outcome}


def test_the_rival_halves_what_others_hold():
    (rival,) = CLAIM.rivals.values()
    np.testing.assert_allclose(suppression.ratio(rival(planted(1.0))), np.log(0.5))


def test_too_few_seeds_decide_nothing():
    with pytest.raises(jd.Inconclusive):
        CLAIM.judge(planted(1.0, seeds=8))


def test_the_figure_has_data():
    fig = Figure()
    CLAIM.plot(planted(1.0), fig)
    assert all(ax.has_data() for ax in fig.axes)
