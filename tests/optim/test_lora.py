"""LoRA, ReLoRA and factorisations against training of the factors themselves, and the spectral start."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.optim.axes import Matrix
from jaxdyn.optim.lora import factorised, lora, low_rank, relora, spectral_start

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


def test_low_rank_is_training_of_its_factors_and_keeps_the_rank(x64):
    params, tx = spectral_start(start(), 2, DIMS), optax.adam(0.02)
    ours, state = train(low_rank(tx, 2, dims=DIMS), params, 10)
    theirs, _ = train_factors(tx, lambda b, a: b @ a, factorised(params["w"], 2), params["v"], 10)
    np.testing.assert_allclose(ours["w"], theirs, atol=1e-12)
    np.testing.assert_allclose(ours["w"][-1], state.factors["w"].b @ state.factors["w"].a, atol=1e-12)
    assert np.linalg.matrix_rank(ours["w"][-1], tol=1e-9) == 2


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
    assert state.count == 12


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


def test_wrong_ranks_are_refused():
    with pytest.raises(UsageError, match="rank=0"):
        lora(optax.adam(1e-3), 0)
    with pytest.raises(UsageError, match="prune"):
        relora(optax.adam(1e-3), 2, every=3, prune=2.0)
