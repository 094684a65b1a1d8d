"""Runs of blocks that are trained to convergence: the task, the descent, and the limit."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.joma import convergence
from tests.theories.joma.helpers import inside

ONE = {"context": "one", "attention": "exp", "activation": "id", "queries": 1.0, "residual": 0.0, "eta": 0.04, "span": 0.8}


@pytest.mark.slow
def test_rows_of_one_token_samples_converge_at_the_closed_rate(x64):
    """And the limit's smallest eigenvalue is the slowest row's, up to the error of the step."""
    s = inside(convergence.Converge(**(ONE | {"eta": 0.01}), late=1e-6, low=0.8, high=1.5, tokens=3, nodes=2, samples=24))
    out = jax.jit(convergence.trial)(s, jax.random.key(0))
    speed, predicted = (np.asarray(side["speed"].value) for side in (out.measured, out.predicted))
    np.testing.assert_allclose(speed, predicted, rtol=0.05)
    assert float(out.recorded["slowest"].value) == pytest.approx(speed.min(), rel=0.05)
    assert float(out.assumed["unconverged"].value) < 1e-10


def test_every_sample_has_one_token_or_all_of_them(x64):
    one, many = (
        jax.jit(convergence.build)(inside(s), jax.random.key(1))[2].x for s in (convergence.Converge(**ONE), convergence.Converge())
    )
    np.testing.assert_array_equal(np.sort(one, 1)[:, -1], 1.0)
    np.testing.assert_allclose(many.sum(1), 1.0)
    assert float(many.min()) > 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"queries": 3.0}, "queries is at most max_queries"),
        ({"span": 1.0}, "whole multiple"),
        ({"low": 2.0}, "low is at most high"),
    ],
)
def test_wrong_settings_are_named(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        convergence.Converge(**fields)
