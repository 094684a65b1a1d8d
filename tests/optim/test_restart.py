"""restart.py: an optimizer made anew each epoch is the same as one that is rebuilt by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.restart import restarting


def gradients(steps):
    return np.random.default_rng(0).normal(size=(steps, 4))


def adam(gs, every, lr=0.1):
    """Adam from its formulas; moments and count go to zero before steps 0, every, 2 every..."""
    x, path = np.zeros(4), []
    m = v = np.zeros(4)
    n = 0
    for i, g in enumerate(gs):
        if every and i % every == 0:
            m, v, n = np.zeros(4), np.zeros(4), 0
        n += 1
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - lr * m / (1 - 0.9**n) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8)
        path.append(x)
    return np.array(path)


def path(gs, every):
    tx = restarting(optax.adam(0.1), every)

    def step(carry, g):
        x, state = carry
        updates, state = tx.update(g, state, x)
        x = optax.apply_updates(x, updates)
        return (x, state), x

    start = jnp.zeros(4)
    return jax.lax.scan(step, (start, tx.init(start)), jnp.asarray(gs))[1]


@pytest.mark.parametrize("every", [0, 1, 3, 5, 100])
def test_moments_are_forgotten(x64, every):
    gs = gradients(11)
    np.testing.assert_allclose(path(gs, every), adam(gs, every), rtol=1e-12, atol=1e-15)  # steps of one cancel but for rounding


def test_period_may_be_traced(x64):
    gs = gradients(9)
    np.testing.assert_allclose(jax.jit(path)(gs, jnp.int32(4)), adam(gs, 4), rtol=1e-12)
    assert not np.allclose(adam(gs, 4), adam(gs, 0)), "the period matters"


def test_resets_go_on_after_the_last_number_of_the_count():
    tx, g = restarting(optax.trace(0.5), 3), jnp.ones(2)
    state, update, sizes = tx.init(g)._replace(steps=jnp.int32(2**31 - 2)), jax.jit(tx.update), []
    for _ in range(7):
        updates, state = update(g, state, g)
        sizes.append(float(updates[0]))
    assert sizes == [1, 1.5, 1.75, 1, 1.5, 1.75, 1]  # 2^31 - 2 is a multiple of 3


def test_wrong_use_is_refused():
    for every in (-1, 2.0, True, np.int64(-1), None, "2", jnp.float32(1)):
        with pytest.raises(UsageError, match="every="):
            restarting(optax.sgd(0.1), every)
    tx = restarting(optax.adam(0.1), np.int64(2))
    with pytest.raises(UsageError, match="without the parameters"):
        tx.update(jnp.ones(2), tx.init(jnp.ones(2)))
