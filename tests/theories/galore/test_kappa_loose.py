"""Kappa against the smallest eigenvalue, and the judge on made-up data."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.galore import kappa_loose
from tests.theories.galore.helpers import runs


@pytest.mark.slow
def test_kappa_is_exact_for_one_term_alone():
    ds = jd.sweep(kappa_loose.trial, jd.grid(kappa_loose.Spread, terms=[1, 10]), 4)
    over = ds.measured_rate / ds.predicted_rate
    np.testing.assert_allclose(over.sel(terms=1.0), 1, rtol=1e-10)
    assert float(over.sel(terms=10.0).min()) > 1.05


def test_a_fraction_of_a_term_is_refused():
    with pytest.raises(UsageError, match="not allowed"):
        kappa_loose.Spread(terms=1.5)


def test_kappa_is_compared_by_terms():
    over = np.stack([np.full(200, r) for r in (1.0, 1.2, 1.4)], 1)
    ds = runs(measured_rate=(("terms",), over), predicted_rate=(("terms",), np.ones((200, 3)))).assign_coords(
        terms=[1.0, 3.0, 10.0]
    )
    (claim,) = kappa_loose.CLAIMS
    np.testing.assert_allclose([r.value for r in kappa_loose.read(ds)], (1.2, 1.4))
    assert set(claim.recorded) == {r.name for r in kappa_loose.read(ds)}
