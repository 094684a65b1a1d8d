"""The claims come out as expected, with all their controls and rivals.

SGD on few prompts: it follows the equations roughly, and is tested on laws of its own.
"""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.icl import sgd
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


@pytest.mark.parametrize(
    "wrong", [{"lr": 0.0}, {"lr": 1.0}, {"size": 0.0}, {"ratio": 2.0}, {"tails": 2.0}, {"batch": 0}, {"inputs": 1}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Sgd(**wrong)


@pytest.mark.slow  # a verification judges the same runs
def test_verdicts():
    results = jd.verify_many(list(sgd.CLAIMS))
    assert {r.claim.id: r.verdict for r in results} == {c.id: c.expected for c in sgd.CLAIMS}
