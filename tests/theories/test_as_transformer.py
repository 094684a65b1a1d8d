"""Blocks of the theories are the transformer with fields set: the same training from the same weights and batches."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxdyn as jd
from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.theories.icl import model as icl
from jaxdyn.theories.joma import model as joma
from jaxdyn.theories.snap import model as snap

STEPS, LENGTH = 25, 6
RNG = np.random.default_rng(0)


def sequences(counts, query, tokens):
    """Sequences of these counts in random order, each with its query at the end."""
    rows = [RNG.permutation(np.repeat(np.arange(tokens), row)) for row in counts]
    return np.concatenate([np.stack(rows), tokens + np.asarray(query)[:, None]], 1)


def drawn_counts(samples, tokens):
    """Counts of tokens in sequences of ``LENGTH``, some of them zero."""
    return np.stack([RNG.multinomial(LENGTH, RNG.dirichlet(np.ones(tokens))) for _ in range(samples)])


def trained(loss, params, rates):
    """Gradient descent with a rate for every leaf."""

    def step(params, _):
        gradient = jax.grad(loss)(params)
        return jax.tree.map(lambda p, rate, g: p - rate * g, params, rates, gradient), None

    return jax.jit(lambda p: jax.lax.scan(step, p, None, STEPS)[0])(params)


@pytest.mark.parametrize(
    ("kind", "phi"), [*itertools.product(("exp", "linear"), ("relu", "tanh")), ("softmax", "gelu"), ("softmax", "id")]
)
def test_jomas_block(x64, kind, phi):
    """joma.exp_invariant, linear_invariant, softmax_invariant, softmax_as_printed: the same block, its own token counts."""
    m, q, d, hidden, o, n, lr, ratio, tau = 4, 2, 8, 3, 2, 7, 0.05, 3.0, 0.5
    tokens, queries = joma.embed(jax.random.key(0), d, m, q)
    block = joma.Block(tokens, queries, jd.Code.of(kind, joma.ATTENTIONS), jd.Code.of(phi, joma.ACTIVATIONS), tau, 1.7)
    params = joma.Params(*(jnp.asarray(RNG.normal(size=size)) for size in ((d, hidden), (q, m), (hidden, o))))
    counts, query = drawn_counts(n, m), np.arange(n) % q
    batch = joma.Batch(jnp.asarray(counts / LENGTH), jnp.asarray(query), jnp.asarray(RNG.normal(size=(n, o))), jnp.full(n, 1 / n))
    ours = trained(lambda p: joma.squared_loss(p, block, batch), params, joma.Params(lr, ratio * lr, lr, None))

    shape, weights = joma.as_transformer(params, block, LENGTH)
    text = sequences(counts, query, m)
    frozen = jax.tree.map(lambda _: 0.0, weights)
    of_z = shape.width * ratio * lr / (1 if kind == "linear" else tau) ** 2  # the matrix is √D/τ times the logits
    rates = frozen | {"blocks": frozen["blocks"] | {"q": of_z, "up": lr, "down": lr}}

    def loss(p):
        error = nn.network(shape).apply(p, text)[:, -1] - batch.target
        return 0.5 * jnp.mean(jnp.sum(error**2, -1))

    found = trained(loss, weights, rates)
    expected = joma.as_transformer(ours, block, LENGTH)[1]
    assert np.abs(ours.z - params.z).max() > 1e-3 and np.abs(ours.w - params.w).max() > 1e-2
    used = np.arange(shape.width) < d
    np.testing.assert_allclose(found["blocks"]["up"][0][used], ours.w, atol=1e-9)
    np.testing.assert_allclose(found["blocks"]["down"][0][:, ~used], ours.a, atol=1e-9)
    u = weights["embed"]
    logits = [np.asarray(u[m:] @ one["blocks"]["q"][0] @ u[:m].T) for one in (found, expected)]
    np.testing.assert_allclose(*logits, atol=1e-9)


def test_scan_and_snaps_network(x64):
    m, r, n, lr = 5, 2, 8, 0.4
    params = snap.Params(jnp.asarray(0.3 * RNG.normal(size=(m, m))), jnp.asarray(RNG.normal(size=(r, m))))
    counts, query, label = drawn_counts(n, m), np.arange(n) % r, RNG.integers(0, m, n)
    weight = jnp.full(n, 1 / n)
    ours = trained(
        lambda p: snap.cross_entropy(p, jnp.asarray(counts, float), query, label, weight), params, snap.Params(lr, 2 * lr)
    )
    shape, weights = snap.as_transformer(params)
    text = sequences(counts, query, m)
    frozen = jax.tree.map(lambda _: 0.0, weights)
    rates = frozen | {"head": lr, "blocks": frozen["blocks"] | {"q": shape.width * 2 * lr}}

    def loss(p):
        logits = nn.network(shape).apply(p, text)[:, -1]
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, label))

    found = trained(loss, weights, rates)
    assert np.abs(ours.z - params.z).max() > 1e-2 and np.abs(ours.y - params.y).max() > 1e-2
    np.testing.assert_allclose(found["head"][:, :m], ours.y.T, atol=1e-9)
    np.testing.assert_allclose(found["blocks"]["q"][0, m:, :m] / shape.width**0.5, ours.z, atol=1e-9)


@pytest.mark.parametrize("softmax", [False, True])
def test_regression_in_context(x64, softmax):
    """Predictions and gradients of every head, for one prompt."""
    d, n, heads = 3, 5, 2
    zero = jnp.zeros((d + 1, d + 1))
    params = icl.Params(zero, zero, *(jnp.asarray(RNG.normal(size=(heads, d + 1))) for _ in range(3)))
    tokens, query = jnp.asarray(RNG.normal(size=(n, d + 1))), jnp.asarray(RNG.normal(size=d))

    def theirs(value, key, query_weights):
        p = params._replace(value=value, key=key, query=query_weights)
        return icl.predict(p, tokens, query, jnp.full(n, 1 / n), softmax)

    def ours(value, key, query_weights):
        shape, weights = icl.as_transformer(params._replace(value=value, key=key, query=query_weights), tokens, query, softmax)
        return nn.network(shape).apply(weights, jnp.arange(n + 1)[None])[0, -1, 0]

    given = params.value, params.key, params.query
    for a, b in zip(*(jax.tree.leaves(jax.value_and_grad(f, (0, 1, 2))(*given)) for f in (ours, theirs)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_blocks_that_are_no_transformer_are_refused(x64):
    block = joma.Block(None, None, jd.Code.of("exp", joma.ATTENTIONS), jd.Code.of("id", joma.ACTIVATIONS))
    with pytest.raises(UsageError, match="has embeddings that are held, and one upper layer"):
        joma.as_transformer(joma.Params(jnp.ones((4, 2)), jnp.ones((1, 3)), jnp.ones((2, 1))), block, 3)
    merged = icl.Params(jnp.ones((2, 2)), jnp.ones((2, 2)), *(jnp.ones((1, 2)),) * 3)
    with pytest.raises(UsageError, match="heads of rank one are"):
        icl.as_transformer(merged, jnp.ones((2, 2)), jnp.ones(1))


def test_the_first_token_spoils_no_gradient_in_float32():
    params = snap.Params(jnp.asarray(RNG.normal(size=(4, 4)), jnp.float32), jnp.asarray(RNG.normal(size=(1, 4)), jnp.float32))
    shape, weights = snap.as_transformer(params)
    text = np.asarray([[0, 2, 1, 4]])
    gradient = jax.jit(jax.grad(lambda p: jnp.sum(jnp.sin(nn.network(shape).apply(p, text)[:, -1]))))(weights)
    assert all(np.all(np.isfinite(g)) for g in jax.tree.leaves(gradient))
