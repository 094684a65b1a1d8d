"""The judge of transformers' times holds on lawful data and rejects its rivals."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.power.claims import transformer


@pytest.fixture
def lawful():
    """Ten networks whose steps fall like the inverse square of the share, and that fit their pairs in 200."""
    share, rng = np.array([0.45, 0.6, 0.8]), np.random.default_rng(0)
    time = 1800 * (share / 0.45) ** -2 * np.exp(0.1 * rng.standard_normal((10, 3)))
    arrays = {"measured_time": (("seed", "share"), time), "measured_fitted": (("seed", "share"), np.full((10, 3), 200.0))}
    return xr.Dataset(arrays, {"seed": range(10), "share": share, "step": np.arange(0, 4001, 50)})


def passed(checks):
    return all(c.passed for c in checks)


def test_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert passed(transformer.judge(lawful))
    for rival in (transformer.times(0.0), transformer.times(-1.0), transformer.at_once, jd.rolled(measured_time="share")):
        assert not passed(transformer.judge(rival(lawful)))
    soon = lawful.assign(measured_fitted=0.5 * lawful.measured_time)
    assert [c.passed for c in transformer.judge(soon)] == [True, False, True]
    with pytest.raises(jd.Inconclusive, match="at least 4 values of seed"):
        transformer.judge(lawful.isel(seed=slice(3)))


def test_networks_that_do_not_generalise_count_with_all_steps(lawful):
    never = lawful.measured_time.where(lawful.share > 0.45, 8000.0)
    power = transformer.judge(lawful.assign(measured_time=never))[2]
    assert np.isclose(power.value, transformer.judge(lawful.assign(measured_time=never.clip(max=4000.0)))[2].value)


def test_a_rival_has_its_power(lawful):
    steps = transformer.times(-1.0)(lawful.isel(share=[2, 0, 1])).sortby("share").measured_time
    ratio = (steps / steps.isel(share=-1, drop=True)).transpose("seed", "share")
    np.testing.assert_allclose(ratio, np.tile(0.8 / steps.share, (10, 1)))
