"""Updates during backpropagation against updates after it: the same steps, with less memory."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import apply, init, parts
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.layerwise import Layers, layerwise
from jaxdyn.optim.memory import compiled_bytes, nbytes
from jaxdyn.optim.projection import galore
from jaxdyn.optim.subspace import Subspace

SMALL = Transformer(vocabulary=11, width=8, layers=3, heads=2, hidden=10, std=0.4, dtype="float64")
TXS = {
    "adam": optax.adam(0.01),
    "galore": optax.chain(galore(adam_direction(), Subspace(rank=3), every=2), optax.scale(-0.05)),
}


def network(shape):
    enter, block, read = parts(shape)

    def leave(rest, x, tokens):
        logits = read(rest, x)[:, :-1]
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))

    return Layers(enter, block, leave)


def loss(shape, params, tokens):
    logits = apply(shape, params, tokens)[:, :-1]
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]))


def apart(params):
    return {n: x for n, x in params.items() if n != "blocks"}, params["blocks"]


def at_once(shape, tx):
    def step(params, state, tokens):
        value, gradient = jax.value_and_grad(lambda p: loss(shape, p, tokens))(params)
        updates, state = tx.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tied"),
    [
        pytest.param("adam", False, marks=pytest.mark.slow),
        ("galore", True),
        pytest.param("adam", True, marks=pytest.mark.slow),
        pytest.param("galore", False, marks=pytest.mark.slow),
    ],
)
def test_the_steps_are_those_of_an_update_after_backpropagation(name, tied, x64):
    shape, tx = dataclasses.replace(SMALL, tied=tied), TXS[name]
    params = init(shape, jax.random.key(0))
    start, step = layerwise(network(shape), tx)
    state, all_at_once, step = start(*apart(params)), jax.jit(at_once(shape, tx)), jax.jit(step)
    opt = tx.init(params)
    for i in range(5):
        tokens = jnp.asarray(np.random.default_rng(i).integers(0, 11, (2, 7)))
        params, opt, expected = all_at_once(params, opt, tokens)
        state, found = step(state, tokens)
        assert float(found) == pytest.approx(float(expected), abs=1e-10)
    for ours, theirs in zip(jax.tree.leaves((state.rest, state.stack)), jax.tree.leaves(apart(params)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_a_stack_has_layers_and_equally_many():
    start, _ = layerwise(network(SMALL), optax.sgd(0.1))
    for stack in ({}, {"w": jnp.ones((0, 2))}, {"w": jnp.ones(())}, {"w": jnp.ones((2, 3)), "v": jnp.ones((3, 3))}):
        with pytest.raises(UsageError, match="stack of layers"):
            start({}, stack)


@pytest.mark.slow
def test_the_gradients_of_most_layers_need_no_memory():
    shape = dataclasses.replace(SMALL, vocabulary=32, width=64, heads=4, hidden=128, layers=16, dtype="float32")
    tokens, tx = jax.ShapeDtypeStruct((1, 8), jnp.int32), optax.sgd(0.1)
    params = jax.eval_shape(lambda: init(shape, jax.random.key(0)))
    start, step = layerwise(network(shape), tx)
    ours = compiled_bytes(step, jax.eval_shape(start, *apart(params)), tokens, donated=(0,))
    theirs = compiled_bytes(at_once(shape, tx), params, jax.eval_shape(tx.init, params), tokens, donated=(0, 1))
    assert theirs["peak"] - ours["peak"] > 0.8 * nbytes(params["blocks"])
