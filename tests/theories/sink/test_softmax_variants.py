"""The forms of attention with sinks, on a few runs."""

import numpy as np

import jaxdyn as jd
from jaxdyn.theories.sink.softmax_variants import Variants, trial


def test_weights_at_shifted_logits():
    ds = jd.sweep(trial, jd.grid(Variants, shift=[-900.0, 0.0, 900.0]), 3)
    for name in ("zero", "bias", "faint", "output"):
        np.testing.assert_allclose(ds[f"measured_{name}"], ds[f"predicted_{name}"], rtol=0, atol=1e-13)
    assert float(ds.measured_zero.sel(shift=-900.0).max()) == 0
    np.testing.assert_allclose(ds.measured_zero.sel(shift=900.0).sum("token"), 1)
    assert float(abs(ds.naive - ds.predicted_zero).sel(shift=0.0).max("token").min()) > 1e-2
