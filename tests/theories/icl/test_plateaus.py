"""Where the loss rests, on a made curve and on one flow."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.icl.plateaus import Plateaus, resting, trial


def test_resting_on_a_made_curve(x64):
    times = np.concatenate([[0.0], np.logspace(0, 6, 61)])
    steps = 3.0 - sum(times**4 / (times**4 + t**4) for t in (1e2, 1e4))
    at = resting(jnp.asarray(steps), jnp.asarray(times), jnp.asarray([3.0, 2.0, 1.0]))
    np.testing.assert_allclose(steps[np.asarray(at)], (3, 2, 1), atol=1e-3)
    assert 0 < at[0] < at[1] < at[2]


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_flow_rests_on_the_levels():
    ds = jd.sweep(trial, jd.grid(Plateaus), 1).isel(seed=0)
    np.testing.assert_allclose(ds.measured_level, ds.predicted_level, rtol=5e-3)
    np.testing.assert_allclose(ds.measured_strength, ds.predicted_strength, atol=0.03)
    assert float(ds.loss.diff("time").max()) < 1e-6
