"""Settings of Theorem 4, and its plain flow under an implicit solver."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.trials import critical

from ..helpers import inside


@pytest.mark.slow
def test_an_implicit_solver_gives_the_same_flow(x64):
    s = inside(critical.Critical(tokens=3, mu_high=3.0, solver="kvaerno5"))
    out = jax.jit(critical.plain_trial)(s, jax.random.key(0))
    np.testing.assert_allclose(out.measured["v"].value, out.predicted["v"].value, atol=1e-7)


@pytest.mark.parametrize(("fields", "message"), [({"start": 0.6}, "start < mu_low"), ({"tokens": 1}, "at least 2 tokens")])
def test_wrong_settings_are_named(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        critical.Critical(**fields)
