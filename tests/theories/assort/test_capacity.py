"""The constructed autoencoder restores what is in its codebook, and no more."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.assort.capacity import Capacity, largest, trial


@pytest.mark.slow
def test_shares():
    ds = jd.sweep(trial, jd.grid(Capacity, distinct=[3.0, 5.0, 9.0], kept=["frequent", "rare"], vocabulary=3, codes=5), 2)
    good = ds.sel(kept="frequent")
    np.testing.assert_allclose(good.measured_restored, good.predicted_restored, rtol=1e-12)
    np.testing.assert_allclose(good.measured_restored.sel(distinct=[3.0, 5.0]), 1, rtol=1e-12)
    assert float(good.measured_restored.sel(distinct=9.0).max()) < 0.99
    worse = ds.sel(kept="rare", distinct=9.0)
    assert bool((worse.measured_restored < worse.predicted_restored - 0.01).all())


def test_the_best_set_is_that_of_the_largest():
    np.testing.assert_allclose(largest(np.float32([0.2, 0.5, 0.3])), [0.5, 0.8, 1.0], rtol=1e-6)


@pytest.mark.parametrize("wrong", [{"vocabulary": 2}, {"distinct": 40.0}, {"codes": 40}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Capacity(**wrong)
