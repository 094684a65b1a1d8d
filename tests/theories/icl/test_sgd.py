"""SGD on few prompts: it follows the equations roughly, and is tested on laws of its own."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.icl.sgd import LAWS, LENGTHS, Sgd, trial


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_training_and_test():
    ds = jd.sweep(trial, jd.grid(Sgd, lr=0.01, span=0.5, records=8), 2)
    assert int(ds.status.max()) == 0
    np.testing.assert_allclose(ds.measured_u, ds.predicted_u, rtol=0.15)
    np.testing.assert_allclose(ds.t.isel(seed=0), 0.5 * np.arange(9), rtol=1e-6)
    assert ds.measured_risk.sizes["law"] == len(LAWS) and list(ds.shown.values) == list(LENGTHS)
    same = ds.sel(law="training")
    assert np.all(same.measured_risk < same.blind) and np.all(same.predicted_risk < same.blind)
    assert np.all(ds.predicted_risk.sel(law="noise") > ds.predicted_risk.sel(law="training"))
    np.testing.assert_allclose(ds.one_length.isel(shown=0), ds.predicted_risk.sel(shown=20))


def test_a_record_takes_a_step_at_least():
    with pytest.raises(jd.UsageError, match="not allowed: lr is at most span"):
        Sgd(lr=1.0)
