"""Spectra of updates: network, equations and judges."""

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.xu import dynamics, spectral
from jaxdyn.theories.xu.spectral import RATIOS, Spectral, trial

# Singular values of windows against NumPy, and first crossings.


def test_values_are_numpys_in_every_window(x64):
    updates = jax.random.normal(jax.random.key(0), (9, 30), "float32")
    sigma = np.asarray(dynamics.values(updates, 4))
    assert sigma.shape == (6, 4) and sigma.dtype == np.float64
    for i in range(6):
        exact = np.linalg.svd(np.asarray(updates[i : i + 4], np.float64), compute_uv=False)
        np.testing.assert_allclose(sigma[i], exact, rtol=1e-10)


def test_updates_of_low_rank_leave_the_other_values_at_zero(x64):
    one, two = jax.random.normal(jax.random.key(1), (2, 1, 30), "float32")
    factors = jax.random.normal(jax.random.key(2), (7, 2), "float32")
    sigma = np.asarray(dynamics.values(factors[:, :1] * one + factors[:, 1:] * two, 5))
    assert (sigma[:, 1] > 1e-2).all() and (sigma[:, 2:] < 1e-5 * sigma[:, :1]).all()


def test_first_is_the_earliest_flag_or_infinity():
    flags = np.array([[False, True, False, True], [False] * 4, [True] * 4])
    np.testing.assert_array_equal(dynamics.first(flags, np.array([5, 10, 15, 20])), [10, np.inf, 5])


# The updates of a small network, what the setting refuses, the detectors and the judges of the gap on made-up runs.


@pytest.mark.slow
def test_windows_end_at_records_and_ratios_are_at_least_one():
    ds = jd.sweep(trial, jd.grid(Spectral, group="7", hidden=16, share=0.7, epochs=40, every=2, window=6), seeds=2)
    np.testing.assert_array_equal(ds.end, range(12, 41, 2))
    np.testing.assert_array_equal(ds.epoch, range(0, 41, 2))
    assert ds.ratio.sizes["after"] == RATIOS and ds.ratio.sizes["end"] == ds["size"].sizes["end"] == 15
    assert float(ds.ratio.min()) >= 1 and float(ds["size"].min()) > 0
    assert bool((ds.measured_test <= 1).all())


@pytest.mark.parametrize("window", [RATIOS, 21])
def test_settings_refuse(window):
    with pytest.raises(jd.UsageError, match="window=.* not allowed: a window has more than 4 updates"):
        Spectral(epochs=40, every=2, window=window)


@pytest.fixture
def lawful():
    """Twelve networks: with decay the gap opens at epoch 20 and they generalise at 100, without decay neither happens."""
    end, epoch, rng = np.arange(10, 201, 10), np.arange(0, 201, 10), np.random.default_rng(0)
    ratio = 1.4 + 0.1 * rng.random((2, 12, len(end), 4))
    ratio[1, :, 1:, 1] = 5.0
    test = np.zeros((2, 12, len(epoch)))
    test[1, :, 10:] = 1.0
    arrays = {
        "ratio": (("decay", "seed", "end", "after"), ratio),
        "size": (("decay", "seed", "end"), np.ones((2, 12, len(end)))),
        "measured_test": (("decay", "seed", "epoch"), test),
        "fitted": (("decay", "seed"), np.ones((2, 12))),
    }
    return xr.Dataset(arrays, {"decay": [0.0, 5e-4], "end": end, "epoch": epoch, "after": [1, 2, 3, 4], "seed": range(12)})


def passed(checks):
    return all(c.passed for c in checks)


def test_detector_fires_at_the_first_high_window(lawful):
    fired = spectral.fires(lawful)
    assert bool((fired.sel(decay=5e-4) == 20).all()) and bool(np.isinf(fired.sel(decay=0.0)).all())
    lost = lawful.assign(ratio=lawful.ratio.where(lawful.seed > 0))
    assert np.isnan(spectral.fires(lost).sel(seed=0)).all()


def test_the_published_detector_fires_when_the_logarithm_has_risen_by_one_within_25_epochs(lawful):
    end = lawful.end  # every 10 epochs: two records are 20 epochs
    slope = {20: 0.55, 30: 0.27}  # rise of ln of the ratio of eigenvalues from one record to the next

    def climbing(each):
        log = xr.where(end > 100, each * (end - 100) / 10, 0.0) + 0 * lawful.ratio
        return lawful.assign(ratio=np.exp(log / 2).transpose(*lawful.ratio.dims))

    assert (spectral.rises(climbing(slope[20])) == 120).all()
    assert np.isinf(spectral.rises(climbing(slope[30]))).all()  # one in four records, 40 epochs
    lost = climbing(0.55)
    assert np.isnan(spectral.rises(lost.assign(ratio=lost.ratio.where(lost.seed > 0))).sel(seed=0)).all()


def readings(ds):
    return [r.value for r in spectral.judge_rise(ds) if isinstance(r, jd.Reading)]


def test_the_rise_is_judged_by_when_and_how_often_it_fires(lawful):
    log = xr.where((lawful.end > 100) & (lawful.decay > 0), 0.2 * (lawful.end - 100) / 10, 0.0)
    ds = lawful.assign(ratio=np.exp(log + 0 * lawful.ratio).transpose(*lawful.ratio.dims))
    ds = ds.assign(measured_test=ds.measured_test.shift(epoch=10, fill_value=0))
    values = readings(ds)
    assert values[0] == 0 and values[1] == 400  # .4 a record: .8 within 20 epochs, never one
    ds = ds.assign(ratio=ds.ratio**1.5)
    values = readings(ds)
    assert values == [0, 120, 80]
    assert readings(spectral.exchanged(ds))[:2] == [1, 400]


def test_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert passed(spectral.judge(lawful))
    assert not passed(spectral.judge(spectral.exchanged(lawful)))
    for after in (1, 3):
        assert not passed(spectral.judge(spectral.instead(lambda ds, k=after: ds.ratio.sel(after=k, drop=True))(lawful)))
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        spectral.judge(lawful.isel(seed=slice(4)))


def test_a_network_that_does_not_generalise_is_counted_and_passed_over(lawful):
    slow = (lawful.seed == 0) & (lawful.decay > 0)
    ds = lawful.assign(measured_test=lawful.measured_test.where(~slow, 0.5))
    judged = spectral.judge(ds)
    assert passed(judged) and judged[1].gate and judged[1].value == pytest.approx(11 / 12)
    assert judged[4].value == 80
    many = (lawful.seed < 4) & (lawful.decay > 0)
    assert spectral.judge(lawful.assign(measured_test=lawful.measured_test.where(~many, 0.5)))[1].passed is False
    lost = lawful.assign(measured_test=lawful.measured_test.where(lawful.seed > 0))
    assert np.isnan(spectral.generalised(spectral.worlds(lost)[0]).sel(seed=0))


def test_late_wants_generalisation_before_the_gap_and_without_decay(lawful):
    assert not passed(spectral.judge_late(lawful))
    early = lawful.assign(measured_test=lawful.measured_test * 0 + 1, ratio=lawful.ratio.shift(end=7, fill_value=1.4))
    assert passed(spectral.judge_late(early))
    never = spectral.instead(lambda ds: ds.ratio.sel(after=1, drop=True))(early)
    assert not passed(spectral.judge_late(never))


def test_relu_wants_no_gap(lawful):
    on = lawful.sel(decay=5e-4)
    assert not passed(spectral.judge_relu(on))
    assert passed(spectral.judge_relu(spectral.instead(lambda ds: ds.ratio.sel(after=1, drop=True))(on)))
