"""The network that learns a latent tree: its forward pass, and its gradient at the start."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf, logsumexp

from jaxdyn.data import trees
from jaxdyn.theories.joma.dynamics import hblt as theory
from jaxdyn.theories.joma.hierarchy import model as net
from jaxdyn.theories.joma.hierarchy.hier_order import GELU

pytestmark = pytest.mark.usefixtures("x64")


def network(seed: int = 0, tokens: int = 8, hidden: int = 6, outputs: int = 5, dtype: str = "float64"):
    rng = np.random.default_rng(seed)
    shapes = {"z": (tokens, tokens), "v": (tokens, hidden), "xi": (tokens, hidden)}
    params = net.Params(**{name: jnp.asarray(0.5 * rng.normal(size=shape), dtype) for name, shape in shapes.items()})
    return params, jnp.asarray(rng.normal(size=(hidden, outputs)), dtype)


def sequences(count: int, dtype: str = "float64", depth: int = 3, subtrees: int = 2, rho: float = 0.7):
    tree = trees.Tree(
        jnp.full(subtrees, 1 / subtrees, dtype), 1 - 2 * jnp.eye(subtrees, dtype=dtype), trees.symmetric(rho, depth - 1, dtype)
    )
    tokens = subtrees * tree.leaves

    @jax.jit
    def draw(tree, key):
        u = jax.random.uniform(key, (count, tokens + trees.draws(tree)), jnp.float32)
        label, leaves = trees.grow(tree, u[:, tokens:])
        present = leaves.reshape(count, tokens)
        mean_count = tree.leaves * jnp.sum(trees.leaf_rate(tree) @ tree.prior)
        return present, net.pick_queries(u[:, :tokens], label, present, mean_count)

    return tree, *draw(tree, jax.random.key(5))


def test_loss_is_that_of_numpy():
    params, upper = network()
    _, _, batch = sequences(40)
    allowed = np.array([True, True, True, False, True])
    z, v, xi, a = (np.asarray(p) for p in (*params, upper))
    losses = []
    for label, query, x, weight in zip(*(np.asarray(b) for b in batch), strict=True):
        pre = (x * np.exp(z[query]) / 8) @ v + xi[query]
        logits = (0.5 * pre * (1 + erf(pre / np.sqrt(2)))) @ a
        losses.append(weight * (logsumexp(logits[allowed]) - logits[label]))
    assert jax.jit(net.loss, static_argnums=4)(params, batch, upper, allowed, GELU) == pytest.approx(np.mean(losses), rel=1e-12)


def test_queries_are_present_and_leave_their_own_context():
    _, present, batch = sequences(300)
    rows, count = np.arange(300), np.asarray(present).sum(1)
    some = count > 0
    assert np.all(np.asarray(present)[rows, batch.query][some])
    assert np.all(np.asarray(batch.x)[rows, batch.query] == 0)
    assert np.array_equal(np.asarray(batch.x).sum(1)[some], count[some] - 1)
    assert np.all(np.asarray(batch.weight)[~some] == 0)
    assert np.mean(batch.weight) == pytest.approx(1.0, abs=0.15)


def test_gradient_at_the_start_is_the_saliency_of_the_theory():
    """What the stationary theory rests on: -dL/dv = slope/A * sum_m P(m) Delta_lm A^T, and the same for z at given v."""
    tree, _, batch = sequences(2**17)
    tokens, outputs = 8, 5
    params, upper = net.init(jax.random.key(0), tokens, 16, outputs, 0.0, "float64")
    allowed = jnp.ones(outputs, bool)
    v = 1e-6 * jax.random.normal(jax.random.key(1), params.v.shape)
    g = jax.jit(jax.grad(net.loss), static_argnums=4)(params._replace(v=v), batch, upper, allowed, GELU)
    saliency = jax.jit(theory.start_saliencies, static_argnums=3)(tree.prior, tree.polarity, 0.7, 3, allowed, jnp.bool_(False))
    height = trees.cla_heights(2)
    near = np.where(height[..., None] > 0, np.moveaxis(np.asarray(saliency.near[0]), 0, -1)[np.maximum(height - 1, 0)], 0.0)
    swap = np.array([1, 0, 2, 3, 4])  # the other subtree is the same with the classes exchanged
    far = np.broadcast_to(np.asarray(saliency.far[0, 1]), near.shape)
    delta = np.stack([np.concatenate([near, far], 1), np.concatenate([far[..., swap], near[..., swap]], 1)]).reshape(8, 8, 5)
    expected_v = 0.5 / tokens * np.mean(delta, 0) @ np.asarray(upper).T
    np.testing.assert_allclose(-g.v, expected_v, atol=0.02 * np.abs(expected_v).max())
    expected_z = 0.5 / tokens**2 * np.einsum("mlo,ko,lk->ml", delta, np.asarray(upper), np.asarray(v))
    np.testing.assert_allclose(-g.z, expected_z, atol=0.08 * np.abs(expected_z).max())


def test_precision_of_a_step_is_the_settings():
    params, upper = network(dtype="float32")
    _, _, batch = sequences(16, "float32")
    allowed = jnp.ones(5, bool)
    jaxpr = jax.make_jaxpr(jax.grad(net.loss))(params, batch, upper, allowed, GELU)
    wide = [v for e in jaxpr.eqns for v in e.outvars if v.aval.dtype == jnp.float64 and v.aval.ndim]
    assert not wide
    assert all(leaf.dtype == jnp.float32 for leaf in (*batch[2:], *params))


def test_blocks_means_and_first_arrivals():
    pairs = jnp.arange(64.0).reshape(8, 8)
    blocks = net.same_subtree(pairs, 2)
    np.testing.assert_array_equal(blocks, np.stack([pairs[:4, :4], pairs[4:, 4:]]))
    height = trees.cla_heights(2)
    means = net.height_means(blocks, jnp.asarray(height), 2)
    np.testing.assert_allclose(means, [np.mean(np.asarray(blocks)[:, height == h]) for h in (1, 2)])
    time = net.track(jnp.array([[[jnp.inf, 3.0, jnp.inf]]]), jnp.array([[[1.0, 1.0, 0.2]]]), jnp.int32(7), jnp.float64(0.5))
    np.testing.assert_array_equal(time, [[[7.0, 3.0, np.inf]]])


def test_descent_moves_logits_faster():
    params, _ = network()
    updates, _ = net.descent(jnp.float64(0.1), jnp.float64(5.0)).update(params, None, params)
    np.testing.assert_allclose(updates.z, -0.5 * params.z)
    np.testing.assert_allclose(updates.v, -0.1 * params.v)
