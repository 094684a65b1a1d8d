"""The least-norm programme against SciPy's solver."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from jaxdyn.theories.lyu import model
from jaxdyn.theories.lyu.dynamics import path, sparse


def test_least_one_norm_is_scipys_and_the_end_of_the_path(x64):
    for seed, active in ((0, 2), (1, 5), (2, 9)):  # few active weights are recovered, many are not
        data = model.sample(jax.random.key(seed), 8, 14, active)
        found = np.asarray(jax.jit(sparse.least_one_norm)(data))
        x, y = np.asarray(data.x), np.asarray(data.y)
        program = scipy.optimize.linprog(np.ones(28), A_eq=np.concatenate([x, -x], 1), b_eq=y)
        np.testing.assert_allclose(found, program.x[:14] - program.x[14:], atol=1e-4)
        np.testing.assert_allclose(x @ found, y, atol=1e-8)
        end = path.path(data, jnp.exp(jnp.linspace(4.0, -16.0, 101)))[-1]
        assert np.abs(found).sum() - 1e-4 < np.abs(end).sum() < 1.01 * np.abs(found).sum()
