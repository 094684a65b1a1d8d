"""The network on sampled sequences, in the parameters that can move, against autodiff of the whole network."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import classes
from jaxdyn.data.classes import Vocabulary
from jaxdyn.theories.snap import model
from jaxdyn.theories.snap.synthetic import sampled, syn
from tests.theories.snap.helpers import full_counts

start = jax.jit(sampled.start, static_argnums=(1, 3))
expand = jax.jit(sampled.expand, static_argnums=1)
draw = jax.jit(classes.draw, static_argnums=(1, 3, 4))
whole_gradient = jax.jit(jax.value_and_grad(model.cross_entropy))


@settings(deadline=None, max_examples=3)
@given(
    seed=st.integers(0, 10**6), sizes=st.sampled_from([(2, 1, 10, 10), (3, 2, 4, 3), (1, 2, 1, 5)]), scale=st.sampled_from([0, 3])
)
def test_loss_and_gradient_are_those_of_the_whole_network(seed, sizes, scale):
    with jax.enable_x64(True):
        v = Vocabulary(*sizes)
        k_start, k_draw = jax.random.split(jax.random.key(seed))
        params = start(k_start, v, float(scale), "float64")
        batch = sampled.Batch(*draw(k_draw, v, np.asarray(classes.law(v)), 32, 20))
        chosen = np.asarray(batch.chosen)
        data = (
            jnp.asarray(full_counts(v, batch)),
            jnp.asarray(v.query[chosen]),
            jnp.asarray(v.label[chosen]),
            jnp.full(32, 1 / 32),
        )
        value, gradient = jax.jit(jax.value_and_grad(sampled.make_loss(v)))(params, batch)
        expected, whole = whole_gradient(expand(params, v), *data)
        assert value == pytest.approx(float(expected), rel=1e-13)
        for ours, theirs in zip(expand(gradient, v), whole, strict=True):  # also: what Compact leaves out cannot move
            np.testing.assert_allclose(ours, theirs, atol=1e-13 + 1e-12 * np.abs(theirs).max())


def test_start_fills_the_stated_range(x64):
    v = Vocabulary(3, 2)
    flat = np.concatenate([np.ravel(a) for a in start(jax.random.key(0), v, 2.0, "float32")])
    edge = 2 / np.sqrt(v.size)
    assert flat.dtype == np.float32 and np.abs(flat).max() < edge
    assert scipy.stats.kstest(flat, "uniform", (-edge, 2 * edge)).pvalue > 1e-3
    assert not np.any(start(jax.random.key(0), v, 0.0, "float32").y)


def test_attention_numbers_and_sums(x64):
    v = Vocabulary(2, 2)
    params, p = start(jax.random.key(0), v, 5.0, "float64"), classes.law(v)
    whole = expand(params, v)
    e = np.asarray(jax.jit(classes.laws, static_argnums=0)(v, p)) * np.exp(np.asarray(whole.z)[v.query])
    c = np.take_along_axis(e / e.sum(1, keepdims=True), v.support, 1)
    np.testing.assert_allclose(jax.jit(sampled.attention, static_argnums=1)(params, v, p), c, rtol=1e-12)
    own = scipy.stats.entropy(c[:, 10:], axis=1).mean()
    expected = [own, scipy.stats.entropy(c, axis=1).mean(), c[:, :10].sum(1).mean(), c[0, -1]]
    np.testing.assert_allclose(jax.jit(syn.numbers, static_argnums=1)(c, 10), expected, rtol=1e-12)
    for ours, theirs in zip(
        jax.jit(sampled.sums, static_argnums=1)(params, v), (whole.y.sum(1)[: v.contextual], whole.z.sum(1)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)
