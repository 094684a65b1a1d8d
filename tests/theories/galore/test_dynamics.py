"""GaLore's equations: gradients that decay, projected runs, noise, varying coefficients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import metrics
from jaxdyn.theories.galore import dynamics, model
from jaxdyn.theories.galore.dynamics import distance_left, within

# Modes, descent and both bounds; the counterexample to the printed bound with its published numbers.

MODES, LOWEST, LARGEST_STEP = map(jax.jit, (dynamics.modes, dynamics.lowest, dynamics.largest_step))


BOUNDS, GRADIENTS, STABLE_RANK = map(jax.jit, (dynamics.bounds, dynamics.gradients, metrics.stable_rank))


def wishart(rng, n, d):
    x = rng.normal(size=(n, d, 2 * d))
    return x @ x.transpose(0, 2, 1)


def test_modes_are_those_of_the_kronecker_product(x64):
    rng = np.random.default_rng(0)
    b, c, g = wishart(rng, 3, 4), wishart(rng, 3, 5), rng.normal(size=(4, 5))
    modes = MODES(b, c)
    for value, matrix in zip(modes.values[::7], modes.matrices[::7], strict=True):
        image = np.mean([b[i] @ matrix @ c[i] for i in range(3)], 0)
        np.testing.assert_allclose(image, value * matrix, atol=1e-9)
    np.testing.assert_allclose(np.einsum("kmn,lmn->kl", modes.matrices, modes.matrices), np.eye(20), atol=1e-12)
    expected = np.linalg.eigvalsh(np.mean([np.kron(c[i], b[i]) for i in range(3)], 0))
    np.testing.assert_allclose(modes.values, expected, rtol=1e-9)
    eta, now = 0.3 / modes.values[-1], g
    for _ in range(4):
        now = now - eta * np.mean([b[i] @ now @ c[i] for i in range(3)], 0)
    np.testing.assert_allclose(GRADIENTS(modes, g, eta, jnp.array([0, 4]))[1], now, atol=1e-12)


def counterexample(sign=1.0):
    same = np.array([[1, 0.9], [0.9, 2]])
    b = np.stack([same, same * np.array([[1, -1], [-1, 1]])])
    return b, np.diag([1, -0.25275]) + sign * 0.3 * np.diag([-0.25275, -1])


def test_the_counterexample_breaks_the_printed_bound_alone(x64):
    b, g = counterexample()
    modes = MODES(b, b)
    np.testing.assert_allclose(modes.values, [0.79527, 1.19, 2.81, 4.20473], atol=5e-6)
    kept, first, second = LOWEST(modes, g)
    np.testing.assert_allclose(kept / kept[0, 0], np.diag([1, -0.25275]), atol=1e-5)
    eta = 0.2
    assert eta < LARGEST_STEP(modes, second)[0]
    printed, corrected, *_ = BOUNDS(modes, g, eta, jnp.arange(6))
    path = GRADIENTS(modes, g, eta, jnp.arange(6))
    ranks = STABLE_RANK(path)
    np.testing.assert_allclose([ranks[0], printed[0]], [1.3577, 1.1596], atol=1e-4)
    assert np.all(ranks <= corrected + 1e-12)
    excess = np.asarray(ranks - STABLE_RANK(kept))
    np.testing.assert_allclose(excess[5] / excess[4], 0.1891, atol=1e-3)
    np.testing.assert_allclose(dynamics.ratio(eta, first, modes.values[-1]), 0.1891, atol=1e-4)
    _, flipped = counterexample(-1.0)
    assert np.all(STABLE_RANK(GRADIENTS(modes, flipped, eta, jnp.arange(6)))
                  <= BOUNDS(modes, flipped, eta, jnp.arange(6))[0] + 1e-12)  # fmt: skip


def test_beyond_the_step_size_another_eigenvalue_decays_last(x64):
    values = np.ones((4, 4)) + 2 * np.eye(4)
    values[0, 3] = 0.05
    b = 4 * np.einsum("ia,ib->iab", np.eye(4), np.eye(4))
    c = np.stack([np.diag(row) for row in values])
    modes, g = MODES(b, c), np.random.default_rng(0).normal(size=(4, 4))
    limit, stable = LARGEST_STEP(modes, LOWEST(modes, g)[2])
    np.testing.assert_allclose([limit, stable], [0.5, 2 / 3])
    steps = jnp.arange(0, 200)
    for eta, broken in ((0.3, False), (0.6, True)):
        ranks = STABLE_RANK(GRADIENTS(modes, g, eta, steps))
        assert (float(jnp.max(ranks - BOUNDS(modes, g, eta, steps)[1])) > 0.1) == broken


# The gradient's form against numerical Jacobians of the frozen network.

gates, squared_parts, softmax_parts, chain = map(
    jax.jit, (dynamics.gates, dynamics.squared_parts, dynamics.softmax_parts, model.chain)
)


squared_gradient, cross_gradient = (jax.jit(jax.grad(f)) for f in (model.squared, model.cross_entropy))


def given(depth=3, width=4):
    rng = np.random.default_rng(0)
    w, (x, y) = rng.normal(size=(depth, width, width)), rng.normal(size=(2, 5, width))
    return jnp.asarray(w), jnp.asarray(x), jnp.asarray(y)


@pytest.mark.parametrize("kind", model.LAYERS)
def test_gates_times_inputs_are_the_layers(kind, x64):
    w, x, _ = given()
    bias = jnp.asarray(np.random.default_rng(1).normal(size=(3, 4))) * (kind == "bias")
    k, f = gates(w, x[0], model.LAYERS.index(kind), bias)
    out = k[-1] @ w[-1] @ f[-1]
    np.testing.assert_allclose(out, chain(w, x[0], model.LAYERS.index(kind), bias), atol=1e-12)


def test_terms_are_those_of_frozen_jacobians(x64):
    w, x, y = given()
    zero = jnp.zeros((3, 4))
    a, b = squared_parts(w, x, y, jnp.int32(0), zero)
    for layer in range(3):
        by_hand_a, by_hand_b = [], []
        for one, target in zip(x, y, strict=True):
            f = np.asarray(one)
            for i in range(layer):
                f = np.maximum(w[i] @ f, 0)
            j, z = np.eye(4), np.asarray(w[layer] @ f)
            for i in range(layer, 3):
                gate = np.diag((z > 0).astype(float)) if i < 2 else np.eye(4)
                j = gate @ j
                z = gate @ z
                if i < 2:
                    j, z = w[i + 1] @ j, w[i + 1] @ z
            by_hand_a.append(np.outer(j.T @ target, f))
            by_hand_b.append(np.outer(j.T @ j @ w[layer] @ f, f))
        np.testing.assert_allclose(a[layer], np.mean(by_hand_a, 0), atol=1e-12)
        np.testing.assert_allclose(b[layer], np.mean(by_hand_b, 0), atol=1e-12)


def test_their_difference_is_the_gradient_of_reversible_networks_only(x64):
    w, x, y = given()
    bias = jnp.ones((3, 4))
    for kind in range(len(model.LAYERS)):
        a, b = squared_parts(w, x, y, jnp.int32(kind), bias * (model.LAYERS[kind] == "bias"))
        true = -squared_gradient(w, x, y, jnp.int32(kind), bias)
        error = float(jnp.linalg.norm(a - b - true) / jnp.linalg.norm(true))
        assert error < 1e-12 if kind < 2 else error > 1e-2


def test_softmax_terms_are_the_gradient_at_vanishing_logits(x64):
    w, x, _ = given()
    y = jnp.eye(4)[jnp.array([0, 1, 2, 3, 0])]
    errors = []
    for size in (1e-2, 1e-3):
        small = w.at[-1].multiply(size)
        a, b = softmax_parts(small, x, y)
        true = -cross_gradient(small, x, y)
        errors.append(float(jnp.linalg.norm(a - b - true) / jnp.linalg.norm(b)))
    assert 5 < errors[0] / errors[1] < 20 and errors[1] < 1e-2


# The noise example's formulas: starts, limits and an average over directions.


def test_limits(x64):
    steps = jnp.array([0, 10**7])
    np.testing.assert_allclose(distance_left("svd", steps, 1e-3, 5.0, 20, 20), [1, 0], atol=1e-9)
    floor = np.sqrt(1e-3 * 20 * 25 / 8)
    np.testing.assert_allclose(distance_left("orthonormal", steps, 1e-3, 5.0, 20, 20), [1, floor], rtol=1e-9)


def test_published_figures_are_met(x64):
    # independent runs in NumPy: .976 and .242 at eta = 1e-3 after 10 000 steps; .974 and .118 at 2e-4 after 50 000
    for eta, steps, svd, random in ((1e-3, 10_000, 0.976, 0.242), (2e-4, 50_000, 0.974, 0.118)):
        k = jnp.array([steps])
        np.testing.assert_allclose(distance_left("svd", k, eta, 5.0, 20, 20), svd, atol=0.004)
        np.testing.assert_allclose(distance_left("orthonormal", k, eta, 5.0, 20, 20), random, rtol=0.1)


def test_rows_of_noise_take_as_many_directions(x64):
    # gradient descent in NumPy, along the leading singular vectors of a gradient that is looked at every fourth step
    rng, n, rows, steps = np.random.default_rng(3), 12, 5, 400
    for rank, noisy in ((1, 2), (2, 2), (3, 2), (3, 3)):
        ends = []
        for _ in range(12):
            gap = rng.normal(size=n)
            gap /= np.linalg.norm(gap)
            for k in range(steps):
                noise = np.where(np.arange(rows - 1)[:, None] < noisy, 30.0, 0.0) * rng.normal(size=(rows - 1, n))
                gradient = np.vstack([gap, noise])
                if k % 4 == 0:
                    basis = np.linalg.svd(gradient)[0][:, :rank]
                gap = gap - 0.01 * (basis @ basis.T @ gradient)[0]
            ends.append(np.linalg.norm(gap))
        law = distance_left("svd", jnp.array([steps]), 0.01, 30.0, n, 4, rank, rows, noisy)
        np.testing.assert_allclose(np.mean(ends), law, atol=0.02)


def test_random_bases_pass_these_shares_of_gradient_and_noise(x64):
    rng, rows, rank, k = np.random.default_rng(0), 5, 3, jnp.array([0, 100, 10**7])
    q, _ = np.linalg.qr(rng.normal(size=(40_000, rows, rank)))
    p = q @ q.transpose(0, 2, 1)
    through, passed = np.mean(p[:, 0, 0]), np.mean(p[:, 0, 1] ** 2)
    kept, floor = np.exp(-2e-3 * through * np.asarray(k)), 1e-3 * 20 * 2 * 25 * passed / (2 * through)
    expected = np.sqrt(kept + floor * (1 - kept))
    np.testing.assert_allclose(distance_left("orthonormal", k, 1e-3, 5.0, 20, 20, rank, rows, 2), expected, rtol=0.01)


def test_directions_pass_half_of_the_gradient_and_an_eighth_of_the_noise():
    angle = np.linspace(0, 2 * np.pi, 100_000, endpoint=False)
    first, second = np.cos(angle), np.sin(angle)
    np.testing.assert_allclose([np.mean(first**2), np.mean((first * second) ** 2)], [1 / 2, 1 / 8], rtol=1e-9)


# Descent within fixed subspaces: rates, their order, and the end, against iteration by hand.


def test_rates_and_end(x64):
    rng = np.random.default_rng(0)
    b, c = (np.stack([m @ m.T / 6 + 0.3 * np.eye(6) for m in rng.normal(size=(3, 6, 6))]) for _ in range(2))
    g = rng.normal(size=(6, 6))
    p, q = (np.linalg.qr(rng.normal(size=(6, r)))[0] for r in (2, 3))
    theory = within(b, c, g, p, q)
    small = np.mean([np.kron(q.T @ c[i] @ q, p.T @ b[i] @ p) for i in range(3)], 0)
    values = np.linalg.eigvalsh(small)
    np.testing.assert_allclose([theory.slowest, theory.fastest], values[[0, -1]], rtol=1e-10)
    kappa = np.mean([np.linalg.eigvalsh(p.T @ b[i] @ p)[0] * np.linalg.eigvalsh(q.T @ c[i] @ q)[0] for i in range(3)])
    np.testing.assert_allclose(theory.kappa, kappa, rtol=1e-10)
    assert kappa <= values[0]
    w = np.zeros((6, 6))
    for _ in range(4000):
        now = g - np.mean([b[i] @ w @ c[i] for i in range(3)], 0)
        w = w + p @ (p.T @ now @ q) @ q.T / values[-1]
    np.testing.assert_allclose(theory.rest, now, atol=1e-9)
    np.testing.assert_allclose(p.T @ theory.rest @ q, 0, atol=1e-12)


# Bounds with changing coefficients, and where descent ends if inputs lack dimensions.


def test_factors_by_hand(x64):
    found = dynamics.factors(
        jnp.float64(0.1), jnp.array([2.0, 3.0]), (jnp.float64(0.5), jnp.float64(2), jnp.float64(3)), jnp.float64(2)
    )
    np.testing.assert_allclose(found, [1 - 0.1 * (np.array([2, 3]) - 0.5 - c * 6 * 4) for c in (1, 2)] + [[0.8, 0.7]])


def test_kappa_is_the_mean_product_of_smallest_eigenvalues(x64):
    rng = np.random.default_rng(0)
    b, c = (np.stack([m @ m.T for m in rng.normal(size=(3, 5, 5))]) for _ in range(2))
    p, q = (np.linalg.qr(rng.normal(size=(5, r)))[0] for r in (2, 3))
    each = [np.linalg.eigvalsh(p.T @ x @ p)[0] * np.linalg.eigvalsh(q.T @ y @ q)[0] for x, y in zip(b, c, strict=True)]
    np.testing.assert_allclose(dynamics.kappa(b, c, p, q), np.mean(each), rtol=1e-10)


def test_the_remainder_is_what_no_input_meets(x64):
    rng = np.random.default_rng(1)
    inputs, a = rng.normal(size=(9, 2)) @ rng.normal(size=(2, 6)), rng.normal(size=(4, 6))
    left = dynamics.remainder(a, inputs, 2)
    np.testing.assert_allclose(left @ inputs.T, 0, atol=1e-10)
    assert np.linalg.matrix_rank(a - left, tol=1e-9) == 2
