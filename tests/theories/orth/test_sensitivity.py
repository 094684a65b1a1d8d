"""Columns between orthonormal and random ones, and how the law moves there; the judge on made-up runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma import model
from jaxdyn.theories.orth import sensitivity


def test_columns_go_from_the_frame_to_random_ones(x64):
    frame, random = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 5)))[0], np.random.default_rng(1).normal(size=(8, 5))
    np.testing.assert_allclose(sensitivity.mixed(frame, random, 0.0), frame, rtol=1e-14)
    np.testing.assert_allclose(sensitivity.mixed(frame, random, 1.0), random / np.linalg.norm(random, axis=0), rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(sensitivity.mixed(frame, random, 0.3), axis=0), 1, rtol=1e-14)


def test_the_law_moves_by_the_gram_matrix_minus_the_identity(x64):
    """The equation in the module's docstring, with gradients in NumPy by hand (tanh, exp attention, ratio 0.7, temperature 1)."""
    rng, ratio = np.random.default_rng(3), 0.7
    u, q, w = rng.normal(size=(7, 4)) / 2, rng.normal(size=(7, 1)) / 2, rng.normal(size=(7, 2))
    z, a = 0.3 * rng.normal(size=(1, 4)), rng.normal(size=(2, 3))
    x, y, p = rng.dirichlet(np.ones(4), 6), rng.normal(size=(6, 3)), np.full(6, 1 / 6)
    kinds = jd.Code.of("exp", model.ATTENTIONS), jd.Code.of("tanh", model.ACTIVATIONS)
    block = model.Block(jnp.asarray(u), jnp.asarray(q), *kinds)
    batch = model.Batch(jnp.asarray(x), jnp.zeros(6, jnp.int32), jnp.asarray(y), jnp.asarray(p))
    slope = jax.jit(jax.grad(model.squared_loss))(model.Params(jnp.asarray(w), jnp.asarray(z), jnp.asarray(a)), block, batch)
    v, v_dot = u.T @ w, -u.T @ np.asarray(slope.w)
    moved = -ratio * np.asarray(slope.z)[0] - ratio * np.sum(v * v_dot, 1)
    b = x * np.exp(z[0])
    pre = b @ v + (q.T @ w)[0]
    g = -((np.tanh(pre) @ a - y) @ a.T) * (1 - np.tanh(pre) ** 2)
    inner = b @ (u.T @ u - np.eye(4)) + (u.T @ q)[:, 0]
    expected = -ratio * np.einsum("mk,n,nk,nm->m", v, p, g, inner)
    np.testing.assert_allclose(moved, expected, rtol=1e-10)


def passed(checks):
    return all(c.passed for c in checks)


def mixture_runs(power=1.0, floor=0.0, start=1e-12):
    """Runs whose residual is a power of the mean |cos|."""
    epsilon = np.array(sensitivity.EPSILONS)
    cosine = np.broadcast_to(0.2 * epsilon + floor, (3, 6))
    lost = np.where(epsilon > 0, (0.1 * cosine) ** power, start)[..., None, None] * np.array([0.0, 1.0])[:, None]
    measured = np.ones((3, 6, 2, 4))
    dims = ("seed", "epsilon", "time", "token")
    data = {"measured_flow": (dims, measured), "predicted_flow": (dims, measured - lost), "cosine": (("seed", "epsilon"), cosine)}
    return xr.Dataset(data, coords={"epsilon": epsilon})


def test_judge_of_the_mixture_wants_zero_at_zero_and_the_first_order():
    assert passed(sensitivity.judge(mixture_runs()))
    for bad in (mixture_runs(2.0), mixture_runs(0.5), mixture_runs(start=1e-6), mixture_runs(floor=0.1)):
        assert not passed(sensitivity.judge(bad))
    with pytest.raises(jd.Inconclusive):
        sensitivity.judge(mixture_runs().isel(epsilon=slice(0, 3)))
