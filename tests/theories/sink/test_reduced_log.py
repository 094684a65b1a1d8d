"""The reduced flow's trial."""

import numpy as np

import jaxdyn as jd
from jaxdyn.theories.sink.reduced_log import Reduced, trial


def test_margins_follow_the_law_unless_the_value_is_frozen():
    ds = jd.sweep(trial, jd.grid(Reduced, rate=[1.0, 0.0]), 2)
    assert (ds.status == 0).all() and set(ds.form.values) == {"derived", "heuristic"}
    end = ds.isel(t=-1)
    law = end.predicted_margin.sel(form="derived")
    np.testing.assert_allclose(end.measured_margin.sel(rate=1.0), law.sel(rate=1.0), atol=0.05)
    assert float((law - end.measured_margin).sel(rate=0.0).min()) > 2
    np.testing.assert_allclose(end["size"].sel(rate=0.0), 1.0)
    assert float(abs(end["size"].sel(rate=1.0)).max()) < 1e-3
