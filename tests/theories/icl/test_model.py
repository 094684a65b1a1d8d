"""The layer against its definition by matrices over the whole prompt, and its population loss against samples."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.data import prompts
from jaxdyn.theories.icl import model

draw = jax.jit(prompts.draw, static_argnums=(1, 2))  # as one program: by itself every operation would be compiled


def layer(seed, d=3, heads=2):
    """A layer with random weights."""
    sizes = ((d + 1, d + 1), (d + 1, d + 1), (heads, d + 1), (heads, d + 1), (heads, d + 1))
    rng = np.random.default_rng(seed)
    return model.Params(*(jnp.asarray(0.5 * rng.normal(size=s)) for s in sizes))


def test_prediction_is_an_entry_of_the_layers_output(x64):
    d, n, p = 3, 6, layer(0)
    rng = np.random.default_rng(1)
    tokens, query = rng.normal(size=(n, d + 1)), rng.normal(size=d)
    e = np.concatenate([tokens.T, np.append(query, 0.0)[:, None]], 1)
    mask = np.append(np.ones(n), 0.0)  # the query is no key
    kqs = [p.kq] + [np.outer(k, q) for k, q in zip(p.key, p.query, strict=True)]
    rows = [p.pv] + [np.outer(np.eye(d + 1)[-1], v) for v in p.value]
    out = sum(row @ e @ (mask[:, None] * (e.T @ kq @ e)) / n for row, kq in zip(rows, kqs, strict=True))
    np.testing.assert_allclose(model.predict(p, tokens, query, np.full(n, 1 / n)), out[-1, -1], rtol=1e-12)
    g = tokens.T @ tokens / n
    beta = np.einsum("abj,ab->j", model.tensor(p), g)
    np.testing.assert_allclose(beta @ query, out[-1, -1], rtol=1e-12)


def test_softmax_attention_weighs_the_values(x64):
    p = layer(0)._replace(value=jnp.zeros((2, 4)))
    rng = np.random.default_rng(2)
    tokens, query = rng.normal(size=(5, 4)), rng.normal(size=3)
    scores = np.exp(tokens[:3] @ np.asarray(p.kq) @ np.append(query, 0.0))
    expected = scores / scores.sum() @ (tokens[:3] @ np.asarray(p.pv)[-1])
    weight = np.array([1 / 3, 1 / 3, 1 / 3, 0, 0])
    np.testing.assert_allclose(model.predict(p, tokens, query, weight, True), expected, rtol=1e-12)


def test_population_loss_is_the_mean_over_prompts(x64):
    rng = np.random.default_rng(3)
    root = rng.normal(size=(3, 3))
    p = layer(4)
    length, count = 7, 400_000
    batch = draw(jax.random.key(5), count, length, root)
    label = jax.jit(jax.vmap(lambda z, q: model.predict(p, z, q, jnp.full(length, 1 / length))))(batch.tokens, batch.query)
    squares = np.square(np.asarray(label) - np.asarray(batch.target)) / 2
    expected, error = squares.mean(), squares.std() / count**0.5
    whole = jax.jit(model.population_loss, static_argnums=2)(p, root @ root.T, length)
    assert abs(float(whole) - expected) < 4 * error < 0.05 * expected
    np.testing.assert_allclose(jax.jit(model.batch_loss)(p, batch), expected, rtol=1e-9)


def test_risks_of_shorter_prompts(x64):
    p = layer(6)
    batch = jax.device_get(draw(jax.random.key(7), 5, 8, np.eye(3)))
    short = batch._replace(tokens=batch.tokens[:, :3])
    risks = np.asarray(jax.jit(model.risks)(p, batch, np.asarray([3, 8])))
    np.testing.assert_allclose(risks[0], 2 * jax.jit(model.batch_loss)(p, short), rtol=1e-12)


def test_effective_predictor_is_the_part_that_is_odd_in_the_task(x64):
    p, rng = layer(8), np.random.default_rng(9)
    x, w = rng.normal(size=(6, 3)), rng.normal(size=3)
    query = rng.normal(size=3)

    def at(sign):
        return model.predict(p, np.concatenate([x, sign * (x @ w)[:, None]], 1), query, np.full(6, 1 / 6))

    odd = (at(1) - at(-1)) / 2
    second = x.T @ x / 6
    t = np.asarray(model.tensor(p))
    by_hand = sum((t[3, a, j] + t[a, 3, j]) * second[a, b] * w[b] * query[j] for a in range(3) for b in range(3) for j in range(3))
    np.testing.assert_allclose((odd, w @ second @ model.effective(p) @ query), (by_hand, by_hand), rtol=1e-12)
