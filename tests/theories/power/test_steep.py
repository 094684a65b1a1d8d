"""The judges of the time to generalise, and that division is a cyclic group."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.dynamics.critical import critical_share
from jaxdyn.theories.power import steep


@pytest.fixture
def lawful():
    """Eight networks per group, whose epochs fall like the inverse fifth power of the share."""
    share, rng = np.array([1.1, 1.2, 1.4, 1.8]), np.random.default_rng(0)
    time = 500 * (share / 1.1) ** -5 * (1 + 0.01 * rng.random((2, 8, 4)))
    arrays = {"measured_time": (("group", "seed", "share"), time)}
    return xr.Dataset(arrays, {"group": ["22", "S4"], "share": share, "epoch": np.arange(0, 1201, 5)})


def passed(checks):
    return all(c.passed for c in checks)


def test_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert passed(steep.judge(lawful))
    for rival in (steep.times(0.0), steep.times(-1.0), steep.reverse):
        assert not passed(steep.judge(rival(lawful)))
    flat = lawful.measured_time.where(lawful.share > 1.1, lawful.measured_time.sel(share=1.2))
    assert not passed(steep.judge(lawful.assign(measured_time=flat)))
    assert not passed(steep.judge(lawful.assign(measured_time=10 * lawful.measured_time)))
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        steep.judge(lawful.isel(seed=slice(4)))


def test_growth_per_percent_is_that_of_an_exponential(lawful):
    rate = xr.DataArray([100 * critical_share(parse(name)) for name in ("22", "S4")], {"group": lawful.group}, "group")
    time = 1000 * 1.45 ** (-rate * (lawful.share - 1.1)) + 0 * lawful.measured_time
    ds = lawful.assign(measured_time=time.transpose("group", "seed", "share"))
    np.testing.assert_allclose(steep.per_percent(ds), 0.45, rtol=1e-10)
    assert passed(steep.judge_percent(ds)) and not passed(steep.judge_percent(lawful))
    assert not passed(steep.judge_percent(steep.times(-1.0)(ds)))


def test_division_of_nonzero_residues_is_the_cyclic_group_with_the_second_operand_renamed():
    power = [pow(5, k, 23) for k in range(22)]  # 5 generates the nonzero residues modulo 23
    assert sorted(power) == list(range(1, 23))
    table = np.asarray(parse("22").table)
    for i in range(22):
        for j in range(22):
            quotient = power[i] * pow(power[j], -1, 23) % 23
            assert quotient == power[table[i, -j % 22]]
