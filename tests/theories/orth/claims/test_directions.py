"""Random vectors of the trial against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxdyn as jd
from jaxdyn.theories.orth.claims import directions


def test_random_trial_is_plain_numpy(x64):
    s = jd.grid(directions.Directions, dims=(8, 12), vectors=6, common=0.2).cells()[0]
    found = jax.jit(directions.trial)(s, jax.random.key(0))
    drawn = 0.2 + np.asarray(jax.random.normal(jax.random.key(0), (6, 12), jnp.float64))
    for i, d in enumerate((8, 12)):
        u = drawn[:, :d] / np.linalg.norm(drawn[:, :d], axis=1, keepdims=True)
        pairs = (u @ u.T)[np.triu_indices(6, 1)]
        np.testing.assert_allclose(found.measured["signed"].value[i], pairs.mean(), rtol=1e-10)
        np.testing.assert_allclose(found.measured["absolute"].value[i], np.abs(pairs).mean(), rtol=1e-10)
