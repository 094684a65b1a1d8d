"""Laws of descent read from a transformer: each reading against plain NumPy, each law where it holds and where it must not."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import nn
from jaxdyn.instruments.moment import Moment, batch_loss
from jaxdyn.laboratory.lab import study
from jaxdyn.laboratory.tasks import TASKS
from jaxdyn.theories.cal.instrument import BALANCE, EDGE, begun, first_direction, followed, late, read_balance, read_edge

TINY = {"data": "facts", "width": 8, "layers": 1, "reading": 48, "seeds": 4}


def moment(lr=0.05, step=0, **fields):
    shape = nn.Transformer(vocabulary=50, width=8, hidden=16, norm="none", position="none", start="fan_in", **fields)
    params = nn.network(shape).init(jax.random.key(0))
    batch = TASKS["facts"].batch(TASKS["facts"].world(jax.random.key(1)), jax.random.key(2), 48)

    def loss(p):
        return batch_loss(shape, p, batch)

    return Moment(shape, params, batch, jax.grad(loss)(params), loss, (), jnp.float32(lr), jnp.int32(step))


def test_gram_matrices_of_heads_are_those_of_numpy():
    at = moment(heads=4, groups=2)
    found = read_balance(at)
    q, k = (np.asarray(at.params["blocks"][name], np.float64)[0] for name in ("q", "k"))
    for group in range(2):
        both = [q[:, 2 * h : 2 * h + 2] for h in (2 * group, 2 * group + 1)]
        np.testing.assert_allclose(found["queries"][0, group], sum(w.T @ w for w in both), rtol=1e-5, atol=1e-6)
        own = k[:, 2 * group : 2 * group + 2]
        np.testing.assert_allclose(found["keys"][0, group], own.T @ own, rtol=1e-5, atol=1e-6)


def test_sharpness_is_the_largest_eigenvalue_over_the_edge():
    at = moment(lr=2.0)
    flat, tree = jax.flatten_util.ravel_pytree(at.params)
    values = np.linalg.eigvalsh(np.asarray(jax.hessian(lambda x: at.loss(tree(x)))(flat), np.float64))
    v = jax.jit(lambda v: jax.lax.fori_loop(0, 150, lambda _, v: read_edge(at, v)[1], v))(first_direction(at))
    found, _ = read_edge(at, v)
    assert float(found["sharpness"]) == pytest.approx(values[-1], rel=1e-3)


def test_means_over_a_quarter_of_the_readings():
    x = np.random.default_rng(0).random(13).astype(np.float32)
    np.testing.assert_allclose(late(jnp.asarray(x)), [x[max(0, i - 2) : i + 1].mean() for i in range(13)], rtol=1e-5)


def test_the_flow_is_that_of_small_steps():
    with jax.enable_x64(True):
        at = dataclasses.replace(moment().shape, dtype="float64")
        params = nn.network(at).init(jax.random.key(0))
        batch = moment().batch

        def loss(p):
            return batch_loss(at, p, batch)

        def descended(eta, steps):
            return jax.lax.fori_loop(0, steps, lambda _, p: jax.tree.map(lambda w, g: w - eta * g, p, jax.grad(loss)(p)), params)

        now = Moment(at, params, batch, jax.grad(loss)(params), loss, (), jnp.float64(0.02), jnp.int32(0))
        reached = followed(now._replace(step=jnp.int32(10)), begun(now))
        fine, coarse = descended(0.0005, 400), descended(0.02, 10)
        limit = jax.tree.map(lambda x, y: 2 * x - y, fine, descended(0.001, 200))  # Richardson's limit
        for x, y in zip(jax.tree.leaves(reached.flow), jax.tree.leaves(limit), strict=True):
            np.testing.assert_allclose(x, y, atol=2e-6)
        gap = jnp.concatenate([(x - y).ravel() for x, y in zip(*map(jax.tree.leaves, (coarse, reached.flow)), strict=True)])
        lead = 0.02 * jnp.concatenate([x.ravel() for x in jax.tree.leaves(reached.lead)])
        assert float(jnp.linalg.norm(gap - lead) / jnp.linalg.norm(gap)) < 0.1


def verdicts(watch, **fields):
    return {cell.variant: cell for cell in study(watch, **TINY | fields).cells}


def test_balance_holds_in_the_plain_block_and_not_with_rotations_or_adam():
    found = verdicts("balance", variants=["plain", "rotary positions", "Adam"], lr=0.02, steps=200)
    assert found["plain"].verdict == "upheld"
    assert found["rotary positions"].verdict == found["Adam"].verdict == "refuted"
    assert found["plain"].off > BALANCE.bound and found["plain"].shuffled > BALANCE.bound


def test_sharpness_stays_at_the_edge():
    fields = {"data": "markov", "same": True, "reading": 4, "width": 16, "steps": 600, "seeds": 3}
    found = study("edge", **TINY | fields | {"lr": [0.2, 0.002]}).cells
    high, low = found
    assert high.error < EDGE.bound < high.off and high.runs == 3
    assert low.runs == 0 and low.verdict == "inconclusive"  # too small a step to come near the edge


def test_the_deviation_is_the_leading_error():
    recipe = {"norm": "rms", "position": "rotary", "mlp": "gated", "activation": "silu", "heads": 2}
    found = verdicts("deviation", variants={"LLaMA": recipe}, same=True, lr=0.02, steps=60, width=16)
    assert found["LLaMA"].verdict == "upheld" and found["LLaMA"].off == pytest.approx(1)
