"""The judges of the gap."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.xu.claims import spectral


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
        "test": (("decay", "seed", "epoch"), test),
        "fitted": (("decay", "seed"), np.ones((2, 12))),
        "measured_time": (("decay", "seed"), np.repeat([[400.0], [100.0]], 12, 1) + rng.random((2, 12))),
    }
    return xr.Dataset(arrays, {"decay": [0.0, 5e-4], "end": end, "epoch": epoch, "after": [1, 2, 3, 4], "seed": range(12)})


def passed(checks):
    return all(c.passed for c in checks)


def test_detector_fires_at_the_first_high_window(lawful):
    fired = spectral.fires(lawful)
    assert bool((fired.sel(decay=5e-4) == 20).all()) and bool(np.isinf(fired.sel(decay=0.0)).all())
    lost = lawful.assign(ratio=lawful.ratio.where(lawful.seed > 0))
    assert np.isnan(spectral.fires(lost).sel(seed=0)).all()


def test_judge_holds_on_lawful_data_and_rejects_others(lawful):
    assert passed(spectral.judge(lawful))
    assert not passed(spectral.judge(spectral.exchanged(lawful)))
    for after in (1, 3):
        assert not passed(spectral.judge(spectral.instead(lambda ds, k=after: ds.ratio.sel(after=k, drop=True))(lawful)))
    with pytest.raises(jd.Inconclusive, match="at least 8 values of seed"):
        spectral.judge(lawful.isel(seed=slice(4)))


def test_late_wants_generalisation_before_the_gap_and_without_decay(lawful):
    assert not passed(spectral.judge_late(lawful))
    early = lawful.assign(measured_time=lawful.measured_time * 0 - 10 + np.arange(12) / 100, test=lawful.test * 0 + 1)
    assert passed(spectral.judge_late(early))
    never = spectral.instead(lambda ds: ds.ratio.sel(after=1, drop=True))(early)
    assert not passed(spectral.judge_late(never))


def test_relu_wants_no_gap(lawful):
    on = lawful.sel(decay=5e-4)
    assert not passed(spectral.judge_relu(on))
    assert passed(spectral.judge_relu(spectral.instead(lambda ds: ds.ratio.sel(after=1, drop=True))(on)))
