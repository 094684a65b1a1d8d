"""Which tokens a cache of heavy hitters holds, on a few runs."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.h2o.frozen_cache import Stream, trial


def test_runs():
    ds = jd.sweep(trial, jd.grid(Stream, recent=[1.0, 4.0, 8.0], spread=0.0), 2)
    np.testing.assert_array_equal(ds.measured_kept.sel(recent=1.0).values.reshape(-1, 8)[0], [*range(7), 95])
    np.testing.assert_array_equal(ds.measured_kept.sel(recent=4.0).values.reshape(-1, 8)[0], [0, 1, 2, 3, 92, 93, 94, 95])
    np.testing.assert_array_equal(ds.measured_kept.sel(recent=8.0).values.reshape(-1, 8)[0], range(88, 96))


@pytest.mark.parametrize("wrong", [{"recent": 9.0}, {"tokens": 8}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Stream(**wrong)
