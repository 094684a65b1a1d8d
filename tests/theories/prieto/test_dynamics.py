"""Softmax in finite precision and the scale of logits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.prieto.dynamics import collapse, scale

# Bounds on when a loss is zero, against NumPy's own float16 and float32.


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_numpys_sums_round_to_one_between_the_bounds(x64, kind):
    rng = np.random.default_rng(0)
    top = collapse.SIGNIFICANT[kind] * np.log(2)
    z = np.zeros((400, 5))
    z[:, 1:] = -(top + rng.uniform(-3, 3, (400, 1)) + rng.uniform(0, 2, (400, 4)))
    answers = jnp.zeros(400, jnp.int32)
    low, high = (np.asarray(f(jnp.asarray(z), answers, kind)) for f in (collapse.certain, collapse.possible))
    assert (low <= high).all() and 0.1 < low.mean() < high.mean() < 0.9
    parts = np.exp(z).astype(kind)
    for order in ([0, 1, 2, 3, 4], [1, 2, 3, 4, 0], [3, 0, 1, 4, 2]):
        total = parts[:, order[0]]
        for i in order[1:]:
            total = (total + parts[:, i]).astype(kind)
        zero = total == 1
        near = 0.002  # exponentials are themselves rounded
        assert (low & ~zero).mean() <= near and (zero & ~high).mean() <= near


def test_significands_and_smallest_numbers_are_numpys():
    for kind, bits in collapse.SIGNIFICANT.items():
        info = np.finfo(kind)
        assert bits == info.nmant + 1 and 2.0 ** collapse.SMALLEST[kind] == float(info.smallest_subnormal)


def test_underflow_needs_all_wrong_classes_below_the_smallest_number(x64):
    z = jnp.array([[0.0, -17.0, -17.0], [0.0, -16.0, -17.0], [0.0, -200.0, -200.0]])
    answers = jnp.zeros(3, jnp.int32)
    assert np.asarray(collapse.underflow(z, answers, "float16")).tolist() == [True, False, True]
    assert np.asarray(collapse.underflow(z, answers, "float32")).tolist() == [False, False, True]


# Closed forms of StableMax against finite differences.


@pytest.mark.parametrize("stable", [False, True])
def test_derivatives_and_scale_are_finite_differences(x64, stable):
    z = np.asarray(2 * jax.random.normal(jax.random.key(3), (6, 4), jnp.float64))
    answers = np.array([0, 1, 2, 3, 1, 0])
    each = np.asarray(scale.derivative(jnp.asarray(z), jnp.asarray(answers), stable))

    def loss(x):
        return -np.log(np.asarray(scale.probabilities(jnp.asarray(x), stable))[np.arange(6), answers])

    np.testing.assert_allclose(np.asarray(scale.probabilities(jnp.asarray(z), stable)).sum(1), 1, rtol=1e-12)
    for c in range(4):
        step = np.zeros((1, 4))
        step[0, c] = 1e-6
        np.testing.assert_allclose((loss(z + step) - loss(z - step)) / 2e-6, each[:, c], atol=1e-8)
    along = (loss(z * (1 + 1e-6)) - loss(z * (1 - 1e-6))).mean() / 2e-6
    assert float(scale.along_weights(jnp.asarray(z), jnp.asarray(answers), stable)) == pytest.approx(along, abs=1e-8)
