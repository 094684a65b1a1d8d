"""Networks trained on a square, and the judges of delay and lazy limit on made-up runs."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.plotting import render
from jaxdyn.theories.kumar import lazy
from jaxdyn.theories.kumar.lazy import Regression, trial


def test_large_scales_are_kernel_regression_and_small_ones_learn_features():
    fields = {"dimension": 5, "nodes": 16, "samples": 14, "tests": 60, "every": 5, "centred": 1.0}
    ds = jd.sweep(trial, jd.grid(Regression, alpha=[0.5, 1e3], **fields), seeds=2)
    lazy, rich = (ds.sel(alpha=a) for a in (1e3, 0.5))
    np.testing.assert_allclose(lazy.measured_test, lazy.predicted_test, rtol=0.02)
    np.testing.assert_allclose(lazy.measured_movement, lazy.predicted_movement, rtol=0.02)
    assert float(lazy.kernel_change.max()) < 0.02 < 0.2 < float(rich.kernel_change.min())
    assert bool((rich.fit_end < 0.1).all()) and bool((ds.fitted <= ds["at"].isel(record=-1)).all())
    np.testing.assert_allclose(ds.measured_delay, ds.general - ds.fitted)


def runs(alpha, seeds=8, records=6):
    """Delays that rise like alpha^1.3, differences that fall like 1/alpha, with scatter."""
    rng, alpha = np.random.default_rng(2), np.asarray(alpha)
    jitter = np.exp(0.02 * rng.normal(size=(3, seeds, 1)))
    dims, ones = ("seed", "alpha"), np.ones((seeds, len(alpha)))
    curve = ones[..., None] * np.geomspace(1, 1e-3, records)
    return xr.Dataset(
        {
            "predicted_delay": (dims, alpha * ones),
            "measured_delay": (dims, 100 * alpha**1.3 * jitter[0]),
            "fitted": (dims, 20 * alpha**0.4 * ones),
            "predicted_movement": (dims, 10 / alpha * ones),
            "measured_movement": (dims, 10 / alpha * (1 - 0.5 / alpha * jitter[1])),
            "kernel_change": (dims, 0.6 / alpha * jitter[2]),
            "predicted_test": (dims, 0.4 * ones),
            "measured_test": (dims, 0.4 * (1 - 0.9 / alpha * jitter[1])),
            "fit_end": (dims, 1e-4 * ones),
            "first_norm": (dims, 5 * ones),
            "status": (dims, np.zeros(ones.shape, int)),
            "first_test": (dims, ones),
            "fit_curve": ((*dims, "record"), curve),
            "test_curve": ((*dims, "record"), curve),
            "at": ((*dims, "record"), ones[..., None] * np.arange(records)),
        },
        {"alpha": alpha, "seed": np.arange(seeds)},
    )


def failed(judge, ds):
    return {c.name for c in judge(ds) if not c.passed}


@pytest.fixture
def rich():
    ds = runs(lazy.ALPHAS)
    return ds.assign(measured_movement=1.3 * ds.alpha**-0.35 * ds.fit_end / ds.fit_end, measured_test=0.1 * ds.predicted_test)


def test_delay_holds_on_lawful_data_and_rejects_others(rich):
    assert not failed(lazy.judge_rich, rich)
    rank = {"rank correlation of the delay with the prediction"}
    assert failed(lazy.judge_rich, jd.swap(predicted_delay=1.0)(rich)) == rank
    assert failed(lazy.judge_rich, jd.swap(predicted_delay="first_norm")(rich)) == rank
    exchanged = jd.rolled(measured_delay="alpha", measured_movement="alpha", kernel_change="alpha")(rich)
    assert len(failed(lazy.judge_rich, exchanged)) == 5
    assert "test loss / that of the frozen kernel" in failed(lazy.judge_rich, jd.swap(measured_test="predicted_test")(rich))
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        lazy.judge_rich(rich.isel(seed=slice(3)))


def test_limit_holds_on_lawful_data_and_rejects_others():
    ds = runs(lazy.LIMIT)
    assert not failed(lazy.judge_limit, ds)
    still = failed(lazy.judge_limit, jd.swap(predicted_test="first_test", predicted_movement=1e-9)(ds))
    assert {"test loss / predicted, largest alpha", "movement / predicted, largest alpha"} <= still
    assert "power of alpha in the difference, kernel" in failed(lazy.judge_limit, ds.assign(kernel_change=ds.kernel_change**0.8))


def test_figures_are_drawn(rich):
    for plot, ds in ((lazy.plot, rich), (lazy.plot_limit, runs(lazy.LIMIT))):
        assert "<svg" in render(plot, ds)
