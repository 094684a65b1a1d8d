"""Each variant in the common program against the decoder of its own shape, with gradients; weights and bytes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.nn.transformer import read, trunk
from jaxdyn.theories.mobile import model

BASE = nn.Transformer(vocabulary=11, width=16, layers=3, heads=4, hidden=10, tied=True, std=0.5, dtype="float64")


def own(shape, params):
    """A variant's weights out of the common ones."""
    blocks = {name: w[: shape.layers] for name, w in params["blocks"].items()}
    share = shape.heads // shape.key_heads
    for name in ("k", "v"):
        heads = blocks[name].reshape(shape.layers, shape.width, shape.heads, -1)[:, :, ::share]
        blocks[name] = heads.reshape(shape.layers, shape.width, -1)
    return {n: w for n, w in params.items() if n != "head" or not shape.tied} | {"blocks": blocks}


@pytest.mark.thinned
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in ("base", "again") else pytest.mark.slow) for n in model.VARIANTS]
)
def test_a_variant_is_the_decoder_of_its_shape_and_trains_like_it(name, x64):
    tokens = jnp.asarray(np.random.default_rng(0).integers(0, 11, (2, 7)))
    params, shape = nn.network(model.wide(BASE)).init(jax.random.key(0)), model.shape_of(name, BASE)

    def common(params, index):
        v = model.variant(index, BASE)
        return jnp.sum(jnp.sin(model.trunk(BASE, v, params, tokens) @ model.read_out(v, params).T))

    def alone(params):
        p = own(shape, params)
        return jnp.sum(jnp.sin(read(shape, p, trunk(shape, p, tokens))))

    index = jnp.int32(model.VARIANTS.index(name))
    (a, da), (b, db) = jax.jit(jax.value_and_grad(common))(params, index), jax.jit(jax.value_and_grad(alone))(params)
    np.testing.assert_allclose(a, b, rtol=1e-12)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-11), da, db)


def test_weights_and_bytes():
    base = dataclasses.replace(BASE, vocabulary=256, width=32, hidden=42, dtype="float32")
    count = {name: model.weights_of(model.shape_of(name, base)) for name in model.VARIANTS}
    held = {name: model.bytes_of(model.shape_of(name, base), 10) for name in model.VARIANTS}
    block = 4 * 32**2 + 3 * 32 * 42 + 2 * 32
    assert count["base"] == 256 * 32 + 3 * block + 32
    assert count["untied"] == count["base"] == count["twice"] == count["again"] and block == 256 * 32
    assert count["deep"] == count["base"] + 3 * block
    assert held["base"] == 2 * 3 * 32 * 10 * 4
    assert held["half"] == held["base"] / 2 and held["one"] == held["base"] / 4
    assert held["twice"] == held["again"] == held["deep"] == 2 * held["base"]


def test_what_writes_into_the_stream_starts_small():
    params = nn.network(model.wide(dataclasses.replace(BASE, dtype="float32"))).init(jax.random.key(0))
    small = model.started(params, 8)
    for name, w in params["blocks"].items():
        np.testing.assert_allclose(small["blocks"][name], w / 4 if name in ("o", "down") else w, rtol=1e-6)
    np.testing.assert_array_equal(small["embed"], params["embed"])
