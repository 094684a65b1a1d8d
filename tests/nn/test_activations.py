"""What happens inside the blocks, against the network itself and a plain attention in NumPy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.nn import Transformer
from jaxdyn.nn.activations import cross_entropies, reduce_blocks
from jaxdyn.nn.transformer import apply, trunk
from tests.nn.drawn import weights

SHAPE = Transformer(vocabulary=11, width=12, layers=2, heads=6, groups=3, hidden=10, std=0.5)
OTHERS = {
    "llama": {},
    "parallel": {"norm": "layer", "mlp": "plain", "activation": "gelu", "parallel": True, "biases": ("q", "up", "down")},
    "repeated": {"repeats": 2, "order": "all"},
    "sink token": {"sink_token": True},
    "small residual": {"residual": 0.3},
    "small residual, parallel": {"residual": 0.3, "parallel": True},
    "written out": {"scan": False},
}
TOKENS = jnp.asarray(np.random.default_rng(0).integers(0, 11, (2, 7)))


@pytest.mark.thinned
@pytest.mark.parametrize("name", OTHERS)
def test_the_network_is_the_same(name):
    shape = dataclasses.replace(SHAPE, **OTHERS[name])
    params = weights(shape)
    x, seen = jax.jit(lambda p: reduce_blocks(shape, p, TOKENS, lambda block: block._replace(weights={})))(params)
    expected, observed = jax.jit(lambda p: trunk(shape, p, TOKENS, observe=("attention", "inputs")))(params)
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen.attention, observed["attention"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen.before, observed["inputs"][:-1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(seen.before[1:], seen.after[:-1], rtol=1e-6)
    np.testing.assert_allclose(seen.before + seen.written + seen.added, seen.after, rtol=1e-5, atol=1e-6)


def test_values_are_mixed_by_the_weights():
    params = weights(SHAPE)
    _, seen = jax.jit(lambda p: reduce_blocks(SHAPE, p, TOKENS, lambda block: block))(params)
    value = np.repeat(np.asarray(seen.value), 2, axis=3)
    mixed = np.einsum("lbhnm,lbmhe->lbnhe", seen.attention, value)
    np.testing.assert_allclose(seen.mixed, mixed, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        np.asarray(seen.units) @ np.asarray(params["blocks"]["down"])[:, None], seen.added, rtol=1e-4, atol=1e-6
    )


def test_only_what_is_asked_for_is_stacked():
    program = jax.jit(lambda p: reduce_blocks(SHAPE, p, TOKENS, lambda block: jnp.mean(block.attention[..., 0]))).lower(
        weights(SHAPE)
    )
    assert "tensor<2x2x6x7x7xf32>" not in program.as_text()  # no layer's attention is held after the layer


@pytest.mark.thinned
@pytest.mark.parametrize("count", [1, 6, 64, 65, 130])
def test_cross_entropy_in_blocks(count):
    params = weights(SHAPE)
    tokens = jnp.asarray(np.random.default_rng(1).integers(0, 11, count + 1))
    x = trunk(SHAPE, params, tokens[None, :-1])[0]
    expected = -jax.nn.log_softmax(apply(SHAPE, params, tokens[None, :-1])[0])[jnp.arange(count), tokens[1:]]
    np.testing.assert_allclose(cross_entropies(SHAPE, params, x, tokens[1:]), expected, rtol=1e-5, atol=1e-6)
