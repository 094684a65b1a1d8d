"""The sum of potentials under weight decay, against a minimiser."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import gram
from jaxdyn.theories.cogo.dynamics import carriers
from tests.theories.cogo.oracle import composed


def test_a_network_held_by_decay_has_the_predicted_diagonal(x64):
    group, decay = parse("5"), 2e-3
    start = composed(group, 2)

    def with_decay(flat):
        w = flat.reshape(start.shape)
        return gram.loss(w, group, "code") + decay / 2 * jnp.sum(w**2)

    both = jax.jit(jax.value_and_grad(with_decay))
    best = scipy.optimize.minimize(lambda x: [np.asarray(v) for v in both(x)], start.ravel(), jac=True, tol=1e-14)
    w = best.x.reshape(start.shape)
    assert np.abs(best.jac).max() < 1e-7
    z = np.fft.fft(w, axis=1)[:, 1:] / 5
    diagonal = 2 * 5 * np.sum(z[0] * z[1] * z[2].conj()).real
    norm = np.sum(w**2)
    predicted = carriers.diagonal_under_decay(group, decay, norm, best.fun - decay / 2 * norm)
    assert diagonal == pytest.approx(float(predicted), rel=1e-6)
    assert 4 - diagonal > 0.02
