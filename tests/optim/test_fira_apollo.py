"""Fira and APOLLO against their formulas in NumPy, the limiter, and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.adam import adam_direction
from jaxdyn.optim.fira_apollo import apollo, fira, limit_growth
from jaxdyn.optim.subspace import Subspace


def steps(tx, gradients):
    state, out = tx.init({"w": gradients[0]}), []
    update = jax.jit(tx.update)
    for g in gradients:
        n, state = update({"w": g}, state)
        out.append(np.asarray(n["w"]))
    return out, state


def given(shape, count=6):
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=shape) * 3**k) for k in range(count)]


@pytest.mark.thinned
@pytest.mark.parametrize("shape", [(4, 7), (7, 4)])
@pytest.mark.parametrize("method", ["fira", "apollo", "mini"])
def test_numpy_from_the_formulas(shape, method, x64):
    gradients, left = given(shape), shape[0] < shape[1]
    if method == "fira":
        tx = fira(adam_direction(), Subspace(rank=2), every=3, scale=0.5)
    else:
        tx = apollo(adam_direction(), Subspace(rank=2, finder="gaussian"), every=3, scale=0.5, tensor=method == "mini")
    ours, _ = steps(tx, gradients)
    m = v = last = 0.0
    for k, g in enumerate(gradients):
        _, state = steps(tx, gradients[: k + 1])
        basis = np.asarray(state.bases["w"].left if left else state.bases["w"].right)
        g = np.asarray(g) if left else np.asarray(g).T  # in NumPy always from the left
        r = basis.T @ g
        low = r if left else r.T
        m, v = 0.9 * m + 0.1 * low, 0.999 * v + 0.001 * low**2
        n = np.sqrt(1 - 0.999 ** (k + 1)) / (1 - 0.9 ** (k + 1)) * m / (np.sqrt(v) + 1e-6)
        n = n if left else n.T
        if method == "mini":
            change = np.linalg.norm(n) / np.linalg.norm(r) * g
        else:
            factors = np.linalg.norm(n, axis=0) / np.linalg.norm(r, axis=0)
            change = factors * (g - basis @ r if method == "fira" else g)
        norm = np.linalg.norm(change)
        if k and norm > 1.01 * last:
            change = change * 1.01 * last / norm
        last = np.linalg.norm(change)
        change = 0.5 * (change + basis @ n if method == "fira" else change)
        np.testing.assert_allclose(ours[k], change if left else change.T, atol=1e-11)


def test_the_limiter_lets_norms_fall_freely_and_grow_slowly():
    x = jnp.ones((2, 3, 3))
    cut, norms = limit_growth(x, jnp.array([0.0, 1.0]), 1.01)
    np.testing.assert_allclose(norms, [3, 1.01], rtol=1e-6)
    np.testing.assert_allclose(jnp.linalg.norm(cut, axis=(-2, -1)), [3, 1.01], rtol=1e-6)
    np.testing.assert_array_equal(limit_growth(x, jnp.array([9.0, 9.0]), 1.01)[0], x)


@pytest.mark.slow
def test_full_rank_fira_is_galore_and_zero_gradients_move_nothing(x64):
    g = given((4, 6), 4)
    ours, _ = steps(fira(adam_direction(), Subspace(rank=4), scale=1.0), g)
    assert all(np.isfinite(n).all() for n in ours)
    for tx in (fira(adam_direction(), Subspace(rank=2)), apollo(adam_direction(), Subspace(rank=2, finder="gaussian"))):
        np.testing.assert_array_equal(steps(tx, [jnp.zeros((4, 6))] * 3)[0][-1], np.zeros((4, 6)))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_tiny_and_huge_gradients_are_scaled_by_norms_that_exist(scale):
    """The direction of SGD: N is R, so that all factors are 1 and the update is the gradient."""
    g = [jnp.asarray(np.asarray(x) * scale, jnp.float32) for x in given((4, 6), 1)]
    for make in (fira, apollo):
        (update,), _ = steps(make(optax.identity(), Subspace(rank=2), scale=1.0), g)
        np.testing.assert_allclose(update, g[0], rtol=1e-4)


def test_wrong_numbers_are_refused():
    for make in (fira, apollo):
        for wrong in ({"scale": np.nan}, {"scale": -1.0}, {"growth": 0}, {"growth": np.inf}, {"every": 0}, {"every": np.int64(0)}):
            with pytest.raises(UsageError, match=next(iter(wrong))):
                make(adam_direction(), Subspace(rank=2), **wrong)


@pytest.mark.slow
def test_batches_and_plain_leaves():
    params = {"w": jnp.ones((2, 4, 6)) * jnp.arange(1.0, 7.0), "embed": jnp.ones((3, 4))}
    tx = fira(optax.scale_by_adam(), Subspace(rank=2))
    updates, state = tx.update(params, tx.init(params))
    assert state.norms["w"].shape == (2,) and state.norms["embed"] is None
    plain, _ = optax.scale_by_adam().update(params, optax.scale_by_adam().init(params))
    np.testing.assert_array_equal(updates["embed"], plain["embed"])


def test_two_sides_are_refused():
    for make in (fira, apollo):
        with pytest.raises(UsageError, match="side='full'"):
            make(adam_direction(), Subspace(rank=2, side="full"))
