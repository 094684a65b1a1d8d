"""Muon against SciPy's polar factor, the recipe on singular values, and steps by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib
import pytest
import scipy.linalg

from jaxdyn.errors import UsageError
from jaxdyn.optim.axes import HEADS_IN, Matrix
from jaxdyn.optim.muon import NEWTON_SCHULZ, muon, muon_direction, newton_schulz, polar


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5)])
def test_polar_is_scipys_and_newton_schulz_the_recipe(shape, x64):
    g = np.random.default_rng(0).normal(size=shape)
    np.testing.assert_allclose(jax.jit(polar)(g), scipy.linalg.polar(g)[0], atol=1e-12)
    u, s, vt = np.linalg.svd(g, full_matrices=False)
    scaled = s / (np.linalg.norm(s) + 1e-7)
    for a, b, c in ((4.01, -9.22, 5.80), (3.49, -6.38, 3.23), (3.34, -6.21, 3.20), (3.64, -7.48, 4.43), (3.46, -5.35, 2.85)):
        scaled = a * scaled + b * scaled**3 + c * scaled**5  # singular vectors stay
    np.testing.assert_allclose(jax.jit(newton_schulz)(g), u * scaled @ vt, atol=1e-9)


def test_singular_values_after_newton_schulz_are_near_one():
    s = np.linspace(0.02, 1, 4000)
    for a, b, c in NEWTON_SCHULZ:
        s = a * s + b * s**3 + c * s**5
    assert 0.6 < s.min() < s.max() < 1.2


@pytest.mark.parametrize(("orthogonal", "turn"), [("polar", polar), ("newton_schulz", newton_schulz)])
def test_steps_are_momentum_turned_and_decay_apart(orthogonal, turn, x64):
    rng = np.random.default_rng(1)
    w, gradients, lr, decay, beta = rng.normal(size=(3, 2)), rng.normal(size=(3, 3, 2)), 0.1, 0.2, 0.9
    tx = muon(jnp.float64(lr), decay, beta, orthogonal)
    params, momentum = {"w": jnp.asarray(w)}, np.zeros_like(w)
    state, update = tx.init(params), jax.jit(tx.update)
    for g in gradients:
        updates, state = update({"w": jnp.asarray(g)}, state, params)
        params = optax.apply_updates(params, updates)
        momentum = beta * momentum + (1 - beta) * g
        w = (1 - lr * decay) * w - lr * np.asarray(turn(jnp.asarray(momentum)))
        np.testing.assert_allclose(params["w"], w, atol=1e-12)


def one_step(gradient, params=None, **more):
    tx = muon(0.1, beta=0.0, **more)
    params = gradient if params is None else params
    return tx.update(gradient, tx.init(params), params)[0]


@pytest.mark.thinned
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (1, 4)])
def test_optaxs_muon_with_these_coefficients_is_ours(shape, x64):
    gradients = np.random.default_rng(0).normal(size=(4, *shape))
    theirs = optax.contrib.scale_by_muon(ns_coeffs=NEWTON_SCHULZ, beta=0.9, nesterov=False)
    ours, params = muon(0.1, beta=0.9), jnp.zeros(shape)
    states = [tx.init(params) for tx in (ours, theirs)]
    for g in gradients:
        (mine, states[0]), (other, states[1]) = (
            tx.update(jnp.asarray(g), s, params) for tx, s in zip((ours, theirs), states, strict=True)
        )
        np.testing.assert_allclose(mine, -0.1 * other, atol=1e-5)  # numbers added to the norm: 1e-7 and 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("orthogonal", [pytest.param("polar", marks=pytest.mark.slow), "newton_schulz"])
def test_leading_axes_are_batches_and_sides_may_be_0_or_1(orthogonal):
    g = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 4, 6)), jnp.float32)
    together = one_step({"w": g}, orthogonal=orthogonal)["w"]
    single = jnp.stack([jnp.stack([one_step({"w": w}, orthogonal=orthogonal)["w"] for w in row]) for row in g])
    np.testing.assert_allclose(together, single, atol=1e-6)
    for shape in ((0, 3), (3, 0), (2, 0, 3), (1, 1), (1, 5), (5, 1)):
        turned = one_step({"w": jnp.ones(shape)}, orthogonal=orthogonal)["w"]
        assert turned.shape == shape and np.isfinite(turned).all()


@pytest.mark.thinned
@pytest.mark.parametrize("orthogonal", ["polar", "newton_schulz"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_dtype_turns_by_the_same_and_keeps_its_own(orthogonal, dtype, x64):
    g = 20 * np.random.default_rng(0).normal(size=(20, 18))  # the square of its norm is beyond float16
    wide = one_step({"w": jnp.asarray(g)}, orthogonal=orthogonal)["w"]
    turned = one_step({"w": jnp.asarray(g, dtype)}, orthogonal=orthogonal)["w"]
    assert turned.dtype == dtype
    np.testing.assert_allclose(turned.astype(jnp.float64), wide, atol=3 * float(jnp.finfo(dtype).eps) + 1e-5)


@pytest.mark.parametrize("orthogonal", ["polar", "newton_schulz"])
def test_zero_huge_tiny_and_nan_gradients(orthogonal):
    g = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)), jnp.float32)
    plain = one_step({"w": g}, orthogonal=orthogonal)["w"]
    np.testing.assert_array_equal(one_step({"w": 0 * g}, orthogonal=orthogonal)["w"], 0 * g)
    np.testing.assert_allclose(one_step({"w": 1e30 * g}, orthogonal=orthogonal)["w"], plain, atol=1e-4)
    assert np.isfinite(one_step({"w": 1e-30 * g}, orthogonal=orthogonal)["w"]).all()
    for bad in (jnp.nan, jnp.inf):
        assert np.isnan(one_step({"w": g.at[1, 2].set(bad)}, orthogonal=orthogonal)["w"]).all()


def test_momentum_keeps_its_dtype_whatever_the_gradients(x64):
    for dtype, wide in (("bfloat16", "float32"), ("float16", "float32"), ("float32", "float32"), ("float64", "float64")):
        tx, params = muon(0.1), {"w": jnp.ones((3, 4), dtype)}
        for kind in ("bfloat16", "float32", "float64"):
            updates, state = tx.update({"w": jnp.ones((3, 4), kind)}, tx.init(params), params)
            assert updates["w"].dtype == dtype and tx.init(params).momentum["w"].dtype == state.momentum["w"].dtype == wide


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_momentum_reaches_its_gradient(dtype):
    """Numpy's average in float64, 300 steps: stored in bfloat16 it would stop a quarter below."""
    tx, g = muon(0.0, beta=0.99), np.random.default_rng(0).normal(size=(3, 4))
    params = {"w": jnp.zeros((3, 4), dtype)}
    gradient = {"w": jnp.asarray(g, dtype)}
    step = lambda _, state: tx.update(gradient, state, params)[1]  # noqa: E731
    found = jax.jit(lambda s: jax.lax.fori_loop(0, 300, step, s))(tx.init(params)).momentum["w"]
    exact = (1 - 0.99**300) * np.asarray(gradient["w"], float)
    np.testing.assert_allclose(found, exact, rtol=300 * 2**-24)


def test_biases_go_to_another_optimizer_and_wrong_use_is_refused():
    params = {"w": jnp.ones((3, 4)), "b": jnp.ones(4)}
    with pytest.raises(UsageError, match=r"a leaf of shape \(4,\) is not allowed: Muon is for matrices"):
        muon(0.1).init(params)
    both = optax.partition({"muon": muon(0.1), "sgd": optax.sgd(0.1)}, {"w": "muon", "b": "sgd"})
    updates, _ = both.update(params, both.init(params), params)
    np.testing.assert_allclose(updates["b"], -0.1 * params["b"])
    for wrong in ({"orthogonal": "svd"}, {"lr": np.nan}, {"lr": -1.0}, {"decay": True}, {"beta": 1.0}):
        with pytest.raises(UsageError, match=f"{next(iter(wrong))}=.* is not allowed"):
            muon(**{"lr": 0.1, **wrong})
    tx = muon(0.1)
    with pytest.raises(UsageError, match="without the parameters"):
        tx.update({"w": params["w"]}, tx.init({"w": params["w"]}))
    with pytest.raises(UsageError, match="of a parameter of shape"):
        tx.update({"w": jnp.ones((1, 4))}, tx.init({"w": params["w"]}), {"w": params["w"]})


def network(rng):
    """Two stacked matrices, one split into heads, an embedding and a vector."""
    shapes = {"embed": (7, 4), "up": (2, 4, 6), "query": (4, 2, 3), "bias": (6,)}
    return {name: jnp.asarray(rng.normal(size=shape)) for name, shape in shapes.items()}


def dims(params):
    return {"embed": None, "up": Matrix(), "query": HEADS_IN, "bias": None}


def turned(matrix):
    u, _, vt = np.linalg.svd(matrix, full_matrices=False)
    return u @ vt


@pytest.mark.parametrize("rms", [0.2, None])
def test_a_network_by_hand(rms, x64):
    """Numpy's singular vectors, in float64: Nesterov, the factor by the sides, Adam on all else by optax."""
    rng = np.random.default_rng(0)
    given = [network(rng) for _ in range(10)]
    tx = muon_direction(optax.scale_by_adam(), 0.9, "polar", rms=rms, dims=dims)
    adam, state = optax.scale_by_adam(), tx.init(given[0])
    theirs, update = adam.init(given[0]), jax.jit(tx.update)
    momentum = {"up": np.zeros((2, 4, 6)), "query": np.zeros((4, 2, 3))}
    factor = 0.2 * 6**0.5 if rms else (6 / 4) ** 0.5
    for g in given:
        found, state = update(g, state)
        expected, theirs = adam.update(g, theirs)
        for name in ("embed", "bias"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)
        for name, m in momentum.items():
            momentum[name] = 0.9 * m + 0.1 * np.asarray(g[name])
            ahead = (0.9 * momentum[name] + 0.1 * np.asarray(g[name])).reshape(-1, 4, 6)
            by_hand = factor * np.stack([turned(x) for x in ahead])
            np.testing.assert_allclose(found[name].reshape(-1, 4, 6), by_hand, rtol=1e-6, atol=1e-9)
    if rms:
        np.testing.assert_allclose(np.sqrt(np.mean(np.square(found["up"]))), 0.2, rtol=1e-6)


def test_optaxs_muon_at_late_steps_is_ours(x64):
    """Optax corrects its momentum's start; after 150 steps with beta 0.8 both are the same."""
    rng = np.random.default_rng(1)
    given = [{"w": jnp.asarray(rng.normal(size=(5, 8)))} for _ in range(150)]
    numbers = optax.contrib.MuonDimensionNumbers()
    ours = muon_direction(optax.identity(), 0.8, rms=None, dims=Matrix())
    theirs = optax.contrib.scale_by_muon(NEWTON_SCHULZ, beta=0.8, weight_dimension_numbers={"w": numbers})
    states = [tx.init(given[0]) for tx in (ours, theirs)]
    updates = [jax.jit(tx.update) for tx in (ours, theirs)]
    for g in given:
        (mine, states[0]), (other, states[1]) = (update(g, s) for update, s in zip(updates, states, strict=True))
    # ours is the factor for 5 inputs and 8 outputs; numbers added to the norm: 1e-7 and 1e-8
    np.testing.assert_allclose(mine["w"], (8 / 5) ** 0.5 * other["w"], atol=1e-5)


def test_wrong_numbers_of_a_network_are_refused():
    adam = optax.scale_by_adam()
    for wrong in ({"orthogonal": "svd"}, {"beta": 1.0}, {"rms": 0.0}, {"rms": np.nan}):
        with pytest.raises(UsageError, match=f"{next(iter(wrong))}=.* is not allowed"):
            muon_direction(adam, **wrong)
    tx, params = muon_direction(adam), {"w": jnp.ones((3, 4)), "b": jnp.ones(4)}
    with pytest.raises(UsageError, match="of a parameter of shape"):
        tx.update({"w": jnp.ones((1, 4)), "b": jnp.ones(4)}, tx.init(params), params)
