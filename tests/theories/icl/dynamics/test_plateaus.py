"""Losses of the plateaus against numbers checked independently, and against the merged form's least loss."""

import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.icl.dynamics import merged, plateaus


def test_levels(x64):
    lam = jnp.asarray([2.0, 1.0, 0.5])
    np.testing.assert_allclose(plateaus.levels(lam, 50), (1.75, 0.80213, 0.34342, 0.12790), atol=6e-6)
    np.testing.assert_allclose(plateaus.levels(lam, 50)[-1], merged.least_loss(jnp.diag(lam), 50), rtol=1e-12)


def test_strengths(x64):
    np.testing.assert_array_equal(plateaus.strengths(2), [[0, 0], [1, 0], [1, 1]])
