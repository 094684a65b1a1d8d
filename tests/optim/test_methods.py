"""All methods under one interface: they train, share one step, and are swept over rates in one program."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.methods import METHODS, Options, method

TARGET = np.random.default_rng(1).normal(size=(2, 8, 12)).astype(np.float32) / 3


def start():
    rng = np.random.default_rng(0)
    return {"w": jnp.asarray(rng.normal(0, 0.1, (2, 8, 12)), jnp.float32), "norm": jnp.ones((2, 12))}


def loss(params):
    return jnp.sum(jnp.square(params["w"] * params["norm"][:, None] - TARGET))


def final(name, lr, key):
    options = Options(rank=3, every=10, scale=1.0, alpha=3.0, switch=50)
    chosen = method(name, lr, options, key=key)
    params = chosen.start(start())

    def step(carry, _):
        params, state = carry
        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = chosen.tx.update(gradient, state, params)
        return (optax.apply_updates(params, updates), state), value

    return jax.lax.scan(step, (params, chosen.tx.init(params)), None, length=100)[1]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_lowers_the_loss_at_traced_rates_and_keys(name):
    lrs, keys = jnp.array([0.003, 0.01]), jax.random.split(jax.random.key(0), 2)
    traces = 0

    def counted(lr, key):
        nonlocal traces
        traces += 1
        return final(name, lr, key)

    curves = jax.jit(jax.vmap(counted))(lrs, keys)
    assert traces == 1
    assert np.isfinite(curves).all()
    assert (curves[:, -1] < 0.9 * curves[:, 0]).all()


def test_schedules_are_rates():
    chosen = method("galore", lambda count: 0.1 * count, Options(rank=2))
    params = start()
    updates, _ = chosen.tx.update(params, chosen.tx.init(params), params)
    assert not jax.tree.reduce(lambda a, x: a or bool(x.any()), updates, False)


def test_wrong_methods_are_refused():
    with pytest.raises(UsageError, match="method=sgd"):
        method("sgd", 0.1, Options())
    with pytest.raises(UsageError, match="every=None"):
        method("relora", 0.1, Options(every=None))
    with pytest.raises(UsageError, match="rank=0"):
        Options(rank=0)
