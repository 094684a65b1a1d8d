"""The kernel's statistics and its learning times."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.kumar import model
from jaxdyn.theories.kumar.dynamics import statistics
from jaxdyn.theories.kumar.dynamics.times import settled

# Expected loss, kernel and gradient descent with a frozen kernel against sampling, differences and a linear model.


def test_terms_sum_to_the_loss_of_many_samples(x64):
    w = model.init(jax.random.key(0), 6, 3, 1.0, "float64")
    x = model.inputs(jax.random.key(1), 200_000, 3, "float64")
    loss = model.error(model.Network(1.5, 0.5, w, 0.0), w, x)
    assert float(jnp.sum(statistics.expected_terms(w, 1.5, 0.5))) == pytest.approx(float(loss), rel=0.03)


def test_kernel_is_the_inner_product_of_differences(x64):
    w = np.asarray(model.init(jax.random.key(2), 4, 3, 1.0, "float64"))
    x, z = (np.asarray(model.inputs(jax.random.key(i), n, 3, "float64")) for i, n in ((3, 5), (4, 2)))

    def slopes(at):
        out = []
        for i in range(w.size):
            step = np.zeros(w.size)
            step[i] = 1e-6
            two = [model.outputs(model.Network(2.0, 0.5, w, 0.0), w + s * step.reshape(w.shape), at) for s in (1, -1)]
            out.append((np.asarray(two[0]) - np.asarray(two[1])) / 2e-6)
        return np.stack(out, 1)

    expected = slopes(x) @ slopes(z).T * 4 / 4.0
    np.testing.assert_allclose(statistics.kernel(w, 0.5, x, z), expected, atol=1e-8)


def test_frozen_descent_is_that_of_a_linear_model(x64):
    rng = np.random.default_rng(0)
    features, across, missing, rate, steps = rng.normal(size=(6, 9)), rng.normal(size=(3, 9)), rng.normal(size=6), 0.1, 37
    v = np.zeros(9)
    for _ in range(steps):
        v -= rate / 6 * features.T @ (features @ v - missing)
    added, squared = statistics.frozen(features @ features.T, across @ features.T, missing, rate, steps)
    np.testing.assert_allclose(added, across @ v, rtol=1e-9)
    assert float(squared) == pytest.approx(v @ v, rel=1e-9)
    assert float(statistics.movement(4.0, 2.0, 9, 1.5)) == pytest.approx(2.0)


# When losses settle below a level.


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([1.0, 0.1, 0.001, 0.001], 1.5),
        ([1.0, 0.001, 1.0, 0.0001], 2.5),  # the last fall counts
        ([1.0, 1.0, 1.0, 1.0], 3.0),  # never: the last time
        ([0.001, 0.001, 0.0001, 0.0001], 0.0),  # always: the first
    ],
)
def test_last_fall_counts(x64, losses, expected):
    assert float(settled(jnp.arange(4.0), jnp.asarray(losses), 0.01)) == pytest.approx(expected)
