"""The updates of a small network, and what the setting refuses."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.xu.trials.spectral import RATIOS, Spectral, trial


def test_windows_end_at_records_and_ratios_are_at_least_one():
    ds = jd.sweep(trial, jd.grid(Spectral, group="7", hidden=16, share=0.7, epochs=40, every=2, window=6), seeds=2)
    np.testing.assert_array_equal(ds.end, range(12, 41, 2))
    np.testing.assert_array_equal(ds.epoch, range(0, 41, 2))
    assert ds.ratio.sizes["after"] == RATIOS and ds.ratio.sizes["end"] == ds["size"].sizes["end"] == 15
    assert float(ds.ratio.min()) >= 1 and float(ds["size"].min()) > 0
    assert bool((ds.measured_time <= 80).all())


@pytest.mark.parametrize("window", [RATIOS, 21])
def test_settings_refuse(window):
    with pytest.raises(jd.UsageError, match="window=.* not allowed: a window has more than 4 updates"):
        Spectral(epochs=40, every=2, window=window)
