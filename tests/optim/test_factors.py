"""LoRA, ReLoRA and factorisations against training of the factors themselves, and the spectral start."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.axes import Matrix
from jaxdyn.optim.factors import factorised, lora, low_rank, relora, spectral_start

DIMS = {"w": Matrix(), "v": None}
KEY = jax.random.key(3)


def start(shape=(5, 7)):
    rng = np.random.default_rng(0)
    return {"w": jnp.asarray(rng.normal(size=shape)), "v": jnp.asarray(rng.normal(size=shape[-1]))}


def loss(params):
    return jnp.sum(jnp.sin(jnp.square(params["w"]) + params["v"]))


def train(tx, params, steps):
    def step(carry, _):
        params, state = carry
        updates, state = tx.update(jax.grad(loss)(params), state, params)
        params = optax.apply_updates(params, updates)
        return (params, state), params

    (_, state), path = jax.jit(lambda p: jax.lax.scan(step, (p, tx.init(p)), None, length=steps))(params)
    return path, state


def train_factors(tx, weights, factors, v, steps):
    """Ordinary training of (b, a, v) where w = weights(b, a)."""

    def of(trained):
        return loss({"w": weights(*trained[:2]), "v": trained[2]})

    @jax.jit
    def step(trained, state):
        updates, state = tx.update(jax.grad(of)(trained), state, trained)
        trained = optax.apply_updates(trained, updates)
        return trained, state, weights(*trained[:2])

    trained = (*factors, v)
    state, path = tx.init(trained), []
    for _ in range(steps):
        trained, state, w = step(trained, state)
        path.append(w)
    return np.stack(path), trained


@pytest.mark.parametrize("tx", [optax.adamw(0.02, weight_decay=0.1), optax.sgd(0.01, momentum=0.9)])
def test_lora_is_training_of_its_factors(tx, x64):
    params = start()
    method = lora(tx, 2, alpha=6.0, dims=DIMS, key=KEY)
    first = method.init(params).factors["w"]
    assert not first.b.any() and first.a.shape == (2, 7) and float(jnp.max(jnp.abs(first.a))) <= 7**-0.5
    ours, _ = train(method, params, 10)
    theirs, (_, _, v) = train_factors(tx, lambda b, a: params["w"] + 3.0 * b @ a, first, params["v"], 10)
    np.testing.assert_allclose(ours["w"], theirs, atol=1e-12)
    np.testing.assert_allclose(ours["v"][-1], v, atol=1e-12)
    assert np.linalg.matrix_rank(ours["w"][-1] - params["w"], tol=1e-9) == 2


@pytest.mark.slow
def test_low_rank_is_training_of_its_factors_and_keeps_the_rank(x64):
    params, tx = spectral_start(start(), 2, DIMS), optax.adam(0.02)
    ours, state = train(low_rank(tx, 2, dims=DIMS), params, 10)
    theirs, _ = train_factors(tx, lambda b, a: b @ a, factorised(params["w"], 2), params["v"], 10)
    np.testing.assert_allclose(ours["w"], theirs, atol=1e-12)
    np.testing.assert_allclose(ours["w"][-1], state.factors["w"].b @ state.factors["w"].a, atol=1e-12)
    assert np.linalg.matrix_rank(ours["w"][-1], tol=1e-9) == 2


@pytest.mark.slow
def test_relora_merges_restarts_and_prunes(x64):
    params = start((20, 30))
    method = relora(optax.adam(0.02), 2, every=4, alpha=2.0, dims=DIMS, key=KEY)
    path, state = train(method, params, 12)
    change = [np.asarray(path["w"])[i] - np.asarray(params["w"]) for i in (3, 7, 11)]
    assert [np.linalg.matrix_rank(c, tol=1e-8) for c in change] == [2, 4, 6]  # two more with each merge
    plain, _ = train(lora(optax.adam(0.02), 2, alpha=2.0, dims=DIMS, key=KEY), params, 12)
    np.testing.assert_allclose(np.asarray(path["w"])[:4], np.asarray(plain["w"])[:4], atol=1e-12)
    # just after the merge, the moments of the factors are those of one step on 1% of the old ones
    _, before = train(method, params, 4)
    merged_gradient = {"w": jnp.zeros((20, 30)), "v": jnp.zeros(30)}
    _, after = jax.jit(method.update)(merged_gradient, before, params)
    mu = jax.device_get(optax.tree.get(after, "mu")["w"])
    assert np.sum(mu.b != 0) <= 1 + 0.01 * mu.b.size and np.sum(mu.a != 0) <= 1 + 0.01 * mu.a.size
    nu = jax.device_get(optax.tree.get(after, "nu")["w"])
    assert not (mu.b[nu.b == 0]).any() and not (mu.a[nu.a == 0]).any()
    assert state.steps == 12


def test_the_spectral_start_has_the_rank_the_size_and_the_directions(x64):
    params = {"w": jnp.asarray(np.random.default_rng(0).normal(0, 0.02, (3, 40, 60))), "v": jnp.ones(4)}
    low = spectral_start(params, 4, DIMS)
    np.testing.assert_array_equal(low["v"], params["v"])
    np.testing.assert_allclose(jnp.sqrt(jnp.mean(low["w"] ** 2, (1, 2))), jnp.sqrt(jnp.mean(params["w"] ** 2, (1, 2))), rtol=1e-12)
    for ours, w in zip(low["w"], params["w"], strict=True):
        u, s, vt = np.linalg.svd(w)
        near = u[:, :4] * s[:4] @ vt[:4]
        np.testing.assert_allclose(ours / np.linalg.norm(ours), near / np.linalg.norm(near), atol=1e-12)
    f = factorised(low["w"], 4)
    np.testing.assert_allclose(f.b @ f.a, low["w"], atol=1e-14)
    np.testing.assert_allclose(jnp.swapaxes(f.b, 1, 2) @ f.b, f.a @ jnp.swapaxes(f.a, 1, 2), atol=1e-12)  # balanced


@pytest.mark.thinned
@pytest.mark.parametrize("rank", [2, 4, 16])
@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (3, 1)])
def test_the_factor_is_alpha_over_the_rank_that_is_used(rank, shape, x64):
    g, tx = {"w": start(shape)["w"]}, lora(optax.sgd(1.0), rank, alpha=32.0)
    first = tx.init(g).factors["w"]
    updates, state = tx.update(g, tx.init(g), g)
    factor = 32 / min(rank, *shape)
    np.testing.assert_allclose(state.factors["w"].b, -factor * g["w"] @ first.a.T, rtol=1e-12)
    np.testing.assert_allclose(updates["w"], -(factor**2) * g["w"] @ first.a.T @ first.a, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-20, 1e15])
def test_low_rank_starts_from_weights_of_any_size(scale):
    params = {"w": jnp.asarray(start((2, 5, 7))["w"] * scale, jnp.float32)}
    low = spectral_start(params, 2)
    np.testing.assert_allclose(np.linalg.norm(np.float64(low["w"])), np.linalg.norm(np.float64(params["w"])), rtol=1e-5)


def test_zero_weights_are_trained_at_low_rank():
    """Both factors of zero would be zero, and their gradients, too."""
    target = start((2, 5, 7))["w"] / 5
    params = {"w": jnp.zeros((2, 5, 7)), "v": jnp.asarray(target[:, 0])}
    dims = {"w": Matrix(), "v": None}
    tx = low_rank(optax.adam(0.02), 2, dims=dims, key=KEY)
    params = spectral_start(params, 2, dims)
    assert not params["w"].any()
    state = tx.init(params)

    @jax.jit
    def step(params, state):
        gradient = jax.grad(lambda p: jnp.sum(jnp.square(p["w"] - target)) + 0 * jnp.sum(p["v"]))(params)
        updates, state = tx.update(gradient, state, params)
        return optax.apply_updates(params, updates), state

    for _ in range(300):
        params, state = step(params, state)
    for w, goal in zip(params["w"], target, strict=True):
        rest = np.linalg.svd(goal, compute_uv=False)[2:]
        assert np.linalg.matrix_rank(w, tol=1e-4) == 2
        np.testing.assert_allclose(np.linalg.norm(w - goal), np.linalg.norm(rest), rtol=0.02)


@pytest.mark.slow
def test_a_merge_does_not_hide_moments_that_are_nan():
    params = {"w": start((6, 8))["w"].astype(jnp.float32)}
    tx = relora(optax.scale_by_adam(), 2, every=2)
    state = tx.init(params)
    for k in range(3):
        g = params["w"].at[1, 2].set(jnp.nan) if k == 0 else params["w"]
        _, state = tx.update({"w": g}, state, params)
    assert np.isnan(state.inner.mu["w"].b).any() and np.isnan(state.inner.mu["w"].a).any()


@pytest.mark.parametrize("rank", [0, -1, 2.5, 2.0, True, np.int64(0), None, "2", jnp.float32(2)])
def test_wrong_ranks_are_refused(rank):
    for make in (lora, low_rank, lambda tx, r: relora(tx, r, every=2), lambda tx, r: spectral_start({"w": jnp.ones((3, 3))}, r)):
        with pytest.raises(UsageError, match="rank=.* is not allowed: rank is (a whole number, )?at least 1"):
            make(optax.adam(1e-3), rank)


def test_wrong_numbers_and_gradients_are_refused():
    wrong = [
        {"prune": 2.0},
        {"prune": np.nan},
        {"alpha": 0.0},
        {"alpha": np.inf},
        {"every": 0},
        {"every": np.int64(0)},
        {"every": 1.5},
    ]
    for one in wrong:
        with pytest.raises(UsageError, match=next(iter(one))):
            relora(optax.adam(1e-3), 2, **{"every": 3, **one})
    tx = lora(optax.adam(1e-3), np.int64(2))
    with pytest.raises(UsageError, match="is that of a parameter of shape"):
        tx.update({"w": jnp.ones((3, 5))}, tx.init({"w": jnp.ones((3, 4))}))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_updates_add_up_to_the_change_of_the_product(dtype):
    """In float64, whatever the dtype: each update is rounded, the products whose difference it is are not."""
    params = jax.tree.map(lambda x: x.astype(dtype), start())
    tx = low_rank(optax.sgd(1e-3), 3, dims=DIMS)
    state, sums, sizes = tx.init(params), 0.0, 0.0
    products = [np.asarray(state.factors["w"].b, float) @ np.asarray(state.factors["w"].a, float)]
    step = jax.jit(tx.update)
    for _ in range(50):
        updates, state = step(jax.grad(loss)(params), state, params)
        sums, sizes = sums + np.asarray(updates["w"], float), sizes + np.abs(np.asarray(updates["w"], float))
        params = optax.apply_updates(params, updates)
    products.append(np.asarray(state.factors["w"].b, float) @ np.asarray(state.factors["w"].a, float))
    bound = float(jnp.finfo(dtype).eps) * sizes + 50 * 2**-21 * np.abs(products).max()
    assert (np.abs(products[1] - products[0] - sums) < bound).all()
