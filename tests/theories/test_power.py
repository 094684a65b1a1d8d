"""Generalisation beyond overfitting: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.errors import UsageError
from jaxdyn.nn.transformer import init
from jaxdyn.theories.li2.dynamics.retention import critical_share
from jaxdyn.theories.li2.zero_start import KNOWN
from jaxdyn.theories.power import steep, transformer
from jaxdyn.theories.power.transformer import Transformer, trial

# The judges of the time to generalise, and that division is a cyclic group.


@pytest.fixture
def lawful():
    """Eight networks per group, whose epochs fall like the inverse fifth power of the share."""
    share, rng = np.array([1.1, 1.2, 1.4, 1.8]), np.random.default_rng(0)
    time = 500 * (share / 1.1) ** -5 * (1 + 0.01 * rng.random((2, 8, 4)))
    arrays = {"measured_time": (("group", "seed", "share"), time)}
    return xr.Dataset(arrays, {"group": ["22", "S4"], "share": share, "epoch": np.arange(0, 1201, 5)})


def passed(checks):
    return all(c.passed for c in checks)


def times(ds, power):
    """Times that are a power of the share."""
    largest = ds.sortby("share").isel(share=-1)
    law = largest.measured_time.drop_vars("share") * (ds.share / largest.share.item()) ** power
    return ds.assign(measured_time=law.transpose(*ds.measured_time.dims))


def test_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert passed(steep.judge(lawful))
    for wrong in (times(lawful, 0.0), times(lawful, -1.0), steep.reverse(lawful)):
        assert not passed(steep.judge(wrong))
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
    met, *readings = steep.judge_percent(ds)
    assert met.gate and met.passed
    assert [r.name for r in readings] == [steep.GROWTH.format(kind) for kind in steep.KINDS]
    np.testing.assert_allclose([r.value for r in readings], 0.45, rtol=1e-10)


def test_division_of_nonzero_residues_is_the_cyclic_group_with_the_second_operand_renamed():
    power = [pow(5, k, 23) for k in range(22)]  # 5 generates the nonzero residues modulo 23
    assert sorted(power) == list(range(1, 23))
    table = np.asarray(parse("22").table)
    for i in range(22):
        for j in range(22):
            quotient = power[i] * pow(power[j], -1, 23) % 23
            assert quotient == power[table[i, -j % 22]]


# The transformer: what it is trained on, when it stops, that its counts are those of its curves; the judge on made-up times.

SMALL = Transformer(group="S3", share=0.8, width=16, heads=2, hidden=16, batch=16, steps=300, every=20)


def watched(seed):
    with jax.enable_x64(True):  # as every trial runs
        return jax.device_get(jax.jit(lambda key: trial(SMALL, key))(jax.random.key(seed)))


@pytest.fixture(scope="module")
def run():
    return watched(3)


def first(curve):
    at = np.flatnonzero(curve >= KNOWN)
    return SMALL.every * (at[0] if at.size else 2 * (len(curve) - 1))


@pytest.mark.slow
def test_times_are_where_the_curves_reach_the_level(run):
    for name, curve in (("fitted", "train_accuracy"), ("time", "test_accuracy")):
        assert run.measured[name].value == first(np.asarray(run.recorded[curve].value))
    assert run.measured["fitted"].value <= 200  # 29 products are soon known by heart


@pytest.mark.slow
def test_a_network_that_generalises_is_trained_no_further(monkeypatch):
    monkeypatch.setattr(transformer, "KNOWN", 0.0)  # known at the first record
    curves = watched(0).recorded
    assert np.ptp(np.asarray(curves["train_accuracy"].value)) == 0


@pytest.mark.slow
def test_accuracies_count_what_is_trained_on_and_the_rest(run):
    train, test = (np.asarray(run.recorded[f"{name}_accuracy"].value) for name in ("train", "test"))
    whole = (29 * train, 7 * test)  # 36 products, of which 29 are 80%
    assert all(np.allclose(x, np.round(x), atol=1e-9) for x in whole)


@pytest.mark.slow
def test_answers_read_both_operands_and_their_order():
    params = init(transformer.shape(SMALL), jax.random.key(1))
    pairs = jnp.asarray([[1, 2], [2, 1], [1, 3], [4, 2]], jnp.int32)
    z = np.asarray(transformer.answers(SMALL, params, pairs))
    assert z.shape == (4, parse("S3").order)
    assert all(np.abs(z[0] - other).max() > 1e-4 for other in z[1:])


def test_wrong_settings_are_refused():
    with pytest.raises(UsageError, match="share leaves a pair"):
        Transformer(share=1.0)
    with pytest.raises(UsageError, match="multiple of every"):
        Transformer(steps=70)


@pytest.fixture
def transformer_lawful():
    """Ten networks whose steps fall like the inverse square of the share, and that fit their pairs in 200."""
    share, rng = np.array([0.45, 0.6, 0.8]), np.random.default_rng(0)
    time = 1800 * (share / 0.45) ** -2 * np.exp(0.1 * rng.standard_normal((10, 3)))
    arrays = {"measured_time": (("seed", "share"), time), "measured_fitted": (("seed", "share"), np.full((10, 3), 200.0))}
    return xr.Dataset(arrays, {"seed": range(10), "share": share, "step": np.arange(0, 4001, 50)})


def test_transformer_judge_holds_on_lawful_data_and_rejects_others(transformer_lawful):
    assert passed(transformer.judge(transformer_lawful))
    for wrong in (
        times(transformer_lawful, 0.0),
        times(transformer_lawful, -1.0),
        jd.swap(measured_time="measured_fitted")(transformer_lawful),
        jd.rolled(measured_time="share")(transformer_lawful),
    ):
        assert not passed(transformer.judge(wrong))
    soon = transformer_lawful.assign(measured_fitted=0.5 * transformer_lawful.measured_time)
    assert [c.passed for c in transformer.judge(soon)] == [True, False, True]
    with pytest.raises(jd.Inconclusive, match="at least 4 values of seed"):
        transformer.judge(transformer_lawful.isel(seed=slice(3)))


def test_networks_that_do_not_generalise_count_with_all_steps(transformer_lawful):
    never = transformer_lawful.measured_time.where(transformer_lawful.share > 0.45, 8000.0)
    power = transformer.judge(transformer_lawful.assign(measured_time=never))[2]
    assert np.isclose(power.value, transformer.judge(transformer_lawful.assign(measured_time=never.clip(max=4000.0)))[2].value)
