"""The judges of unlearning and of efficiency."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.varma.claims import ungrok


@pytest.fixture
def lawful():
    """Eight networks that keep what they know from a share of .33 on, where the efficiencies cross."""
    share, rng = np.array([0.1, 0.2, 0.3, 0.36, 0.5]), np.random.default_rng(0)
    two = ("seed", "left")
    noise = 1 + 1e-3 * rng.random((8, 5))
    after = np.array([0.0, 0.0, 0.0, 1.0, 1.0]) / noise
    arrays = {
        "measured_continued": (two, after),
        "scratch": (two, after),
        "measured_kept": (("seed",), np.ones(8)),
        "memory": (two, share**-1.4 * noise),
        "general": (("seed",), np.full(8, 0.33**-1.4)),
        "learned": (("seed",), np.ones(8)),
        "fitted": (("seed",), np.ones(8)),
    }
    return xr.Dataset(arrays, {"left": share})


def passed(checks):
    return all(c.passed for c in checks)


def test_judges_hold_on_lawful_data(lawful):
    assert passed(ungrok.judge_ungrok(lawful)) and passed(ungrok.judge_efficiency(lawful)) and passed(ungrok.judge_crossing(lawful))
    np.testing.assert_allclose(ungrok.crossings(lawful), 0.33, rtol=2e-3)
    np.testing.assert_allclose(ungrok.halves(lawful, "scratch"), 0.33, rtol=2e-3)


def test_judges_reject_others(lawful):
    assert not passed(ungrok.judge_ungrok(ungrok.reverse("measured_continued")(lawful)))
    assert not passed(ungrok.judge_ungrok(ungrok.continued(lambda ds: ds.learned)(lawful)))
    assert not passed(ungrok.judge_ungrok(lawful.assign(measured_kept=0 * lawful.measured_kept)))
    for power in (0.0, -1.0):
        assert not passed(ungrok.judge_efficiency(ungrok.memory(power)(lawful)))
    early = lawful.measured_continued.copy(data=np.tile([0.0, 1.0, 1.0, 1.0, 1.0], (8, 1)) - 1e-3 * lawful.memory.values / 50)
    assert not passed(ungrok.judge_crossing(lawful.assign(measured_continued=early)))


def test_judge_of_what_is_kept_in_part():
    """Networks that lose .7 of the table, a tenth of it slowly, and nothing; the last quarter is five of twenty records."""
    at = np.arange(21)
    three = np.stack([np.exp(-at / 4), 1 - 0.01 * at, np.ones(21)])
    curve = three[None] - 1e-3 * np.random.default_rng(0).random((8, 3, 21))
    arrays = {
        "measured_continued": (("seed", "left"), curve[:, :, -1]),
        "curve": (("seed", "left", "epoch"), curve),
        "learned": (("seed",), np.ones(8)),
        "fitted": (("seed",), np.ones(8)),
    }
    good = xr.Dataset(arrays, {"left": [0.2, 0.3, 0.4]})
    assert passed(ungrok.judge_semi(good))
    for other in (ungrok.kept, ungrok.fewest, ungrok.reverse("measured_continued")):
        assert not passed(ungrok.judge_semi(other(good)))
    still = good.assign(curve=good.curve.isel(epoch=-1, drop=True) + 0 * good.curve)
    assert [c.name for c in ungrok.judge_semi(still) if not c.passed] == ["what it loses over the last quarter, mean"]


def test_judge_wants_gates_and_runs(lawful):
    assert not passed(ungrok.judge_ungrok(lawful.assign(learned=0.5 * lawful.learned)))
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        ungrok.judge_efficiency(lawful.isel(seed=slice(4)))
