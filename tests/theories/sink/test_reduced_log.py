"""The claims on the reduced flow come out, with all their controls and rivals, on a few runs.

The reduced flow's trial.
"""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.sink import reduced_log
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


@pytest.mark.parametrize("wrong", [{"number": 0.0}, {"others": -1.0}, {"rate": -1.0}, {"vocabulary": 1}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Reduced(**wrong)


@pytest.mark.slow
def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(reduced_log.CLAIMS), seeds=2)] == ["upheld", "refuted"]
