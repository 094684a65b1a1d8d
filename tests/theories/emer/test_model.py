"""The searching and the answering layer against loops over edges and tokens; relabellings against all permutations."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.theories.emer import model


def test_logits_are_those_of_attention_to_every_edge(x64):
    rng = np.random.default_rng(0)
    n, d = 5, 7
    embed = np.linalg.qr(rng.normal(size=(d, n)))[0]
    w, thought = rng.normal(size=(d, d)), rng.uniform(size=n)
    edges = [(0, 1), (1, 2), (0, 2), (3, 4), (2, 0), (2, 0)]
    stream = embed @ thought
    out = stream.copy()
    for s, t in edges:
        out = out + (stream @ w @ embed[:, s]) * embed[:, t]
    table = np.zeros((n, n))
    for s, t in edges:
        table[s, t] += 1
    np.testing.assert_allclose(model.logits(w, embed, thought, table), embed.T @ out, rtol=1e-12)


def test_losses(x64):
    xi = jnp.asarray([0.3, -1.0, 2.0])
    p = np.exp(xi) / np.exp(xi).sum()
    np.testing.assert_allclose(model.coconut_loss(xi, jnp.eye(3)[2]), -np.log(p[2]), rtol=1e-12)
    np.testing.assert_allclose(model.bfs_loss(xi, jnp.asarray([True, False, True])), -np.log(p[0] + p[2]), rtol=1e-12)
    m = model.Answer(jnp.eye(3) * 2, jnp.ones((3, 3)))
    thought, both = jnp.asarray([0.5, 0.5, 0.0]), jnp.asarray([1.0, 0.0, 1.0])
    expected = model.coconut_loss(jnp.asarray([1.0, 1.0, 0.0]), jnp.eye(3)[0])
    np.testing.assert_allclose(model.answer_loss(m, thought, both, jnp.eye(3)[0]), expected, rtol=1e-12)


def test_relabellings_average_a_matrix_like_all_permutations(x64):
    w = jax.random.normal(jax.random.key(0), (5, 5), jnp.float64)
    few = np.asarray(model.relabellings(5))
    assert (
        len(few) == 20 and few[0].tolist() == [0, 1, 2, 3, 4] and {tuple(sorted(row)) for row in few.tolist()} == {(0, 1, 2, 3, 4)}
    )
    means = [np.mean([model.relabel(np.asarray(w), np.array(order)) for order in orders], 0) for orders in (few, permutations(5))]
    np.testing.assert_allclose(means[0], means[1], rtol=1e-12)
    np.testing.assert_allclose(model.relabel(np.arange(5), few[1]), few[1])


def permutations(n):
    return list(itertools.permutations(range(n)))
