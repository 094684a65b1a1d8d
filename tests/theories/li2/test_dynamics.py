"""The equations of Li2 against definitions in NumPy, SciPy, finite differences and autodiff."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.dynamics import energy, nodes, repulsion, ridge
from jaxdyn.theories.li2.dynamics import memory as theory
from jaxdyn.theories.li2.dynamics.retention import critical_share, order_share
from tests.theories.li2.helpers import SHAPES, SIGMA, centred, drawn

# The written-out flow of both layers against autodiff of the theory's loss.

GROUP = parse("5")
field = jax.jit(ridge.field)  # as one program: by itself every operation would be compiled


def problem(rate=1.0):
    samples = model.pairs(5)[:17]  # classes are not balanced
    start = jax.jit(lambda key: model.init(key, 5, 6, "float64"))(jax.random.key(2))
    return start, ridge.Problem(samples, model.targets(GROUP, samples), *(jnp.asarray(x, jnp.float64) for x in (0.3, 0.7, rate)))


@pytest.mark.slow
def test_the_flow_descends_the_decayed_loss(x64):
    p, given = problem()

    def loss(p):
        f = model.features(p.w, given.samples)
        return model.theory_loss(p.v, f, given.y, given.eta) + given.decay / 2 * jnp.sum(p.w**2)

    for mine, theirs in zip(field(0.0, p, given), jax.jit(jax.grad(loss))(p), strict=True):
        np.testing.assert_allclose(mine, -theirs, rtol=1e-11, atol=1e-13)


def test_a_frozen_top_layer_stays_and_the_hidden_one_moves_as_before(x64):
    p, given = problem(rate=0.0)
    moved = field(0.0, p, given)
    np.testing.assert_array_equal(moved.v, 0)
    np.testing.assert_array_equal(moved.w, field(0.0, *problem()).w)


# Shares of pairs at which features are expected to be kept.


@pytest.mark.parametrize(("name", "order", "factor"), [("23", 23, 1.0), ("D12", 24, 1.0), ("A5", 60, 2.5)])
def test_shares_grow_with_half_the_largest_degree(name, order, factor):
    assert order_share(order) == pytest.approx(2.7482 * math.log(order) / order, rel=1e-12)
    assert critical_share(parse(name)) == pytest.approx(factor * order_share(order), rel=1e-12)


# The signal through one more layer against the mean over angles.


def test_what_a_wide_upper_layer_sends_down_is_the_mean_over_its_nodes(x64):
    """In two dimensions the mean over a Gaussian node is twice that over its angle."""
    rng = np.random.default_rng(8)
    f, half = rng.normal(size=(5, 2)), rng.normal(size=(5, 5))
    signal = half + half.T
    angle = (np.arange(400_000) + 0.5) * 2 * np.pi / 400_000
    w = np.stack([np.cos(angle), np.sin(angle)])
    a = f @ w
    expected = 2 * ((signal @ np.maximum(a, 0)) * (a > 0)) @ w.T / len(angle)
    np.testing.assert_allclose(jax.jit(ridge.received)(f, signal), expected, atol=3e-5)
    assert np.abs(ridge.masked(f, signal) - expected).max() > 0.05


# Strengths of memorised pairs against SciPy.

P = (0.1, 0.15, 0.2, 0.25, 0.3)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("relu", (0.298, 0.447, 0.596, 0.745, 0.894)),
        ("silu", (0.216, 0.361, 0.539, 0.749, 0.986)),
        ("tanh", (0.400, 0.534, 0.638, 0.722, 0.792)),
    ],
)
def test_strengths_of_memorised_pairs(x64, kind, expected):
    s = theory.spread(jnp.asarray(P), kind)
    np.testing.assert_allclose(s, expected, atol=6e-4)
    np.testing.assert_allclose(jnp.sum(s**2), 2, rtol=1e-12)
    act = {"relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)), "tanh": np.tanh}[kind]
    found = scipy.optimize.minimize(
        lambda x: -np.dot(P, act(x)), np.full(5, 0.6), constraints={"type": "eq", "fun": lambda x: x @ x - 2}, tol=1e-12
    )
    np.testing.assert_allclose(s, found.x, atol=1e-4)


def test_an_ascent_of_one_target_shares_between_both_weights(x64):
    group = parse("S3")
    p = jnp.asarray([0.1, 0.1, 0.2, 0.1, 0.3, 0.2])
    w = theory.ascend(jnp.abs(jax.random.normal(jax.random.key(0), (12, 2), jnp.float64)), p, group, "tanh", target=4)
    for g in range(6):
        second = next(b for b in range(6) if group.table[g, b] == 4)
        np.testing.assert_allclose(w[g], w[6 + second], atol=1e-9)
    np.testing.assert_allclose(theory.strengths(w, group, 4)[:, 0], theory.spread(p, "tanh"), atol=1e-9)


# Repulsion against the inverse Gram matrix in NumPy.

coefficients = jax.jit(jax.vmap(repulsion.coefficient, (None, 0, None)))


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 2**20), st.sampled_from(SHAPES), st.sampled_from([0.05, 2.0]))
def test_repulsion_is_the_entry_of_the_inverse(seed, shape, eta):
    with jax.enable_x64(True):
        f, _, _ = drawn(seed, shape)
        b = np.linalg.inv(centred(f).T @ centred(f) + eta * np.eye(shape[1]))
        pairs = np.array(list(itertools.combinations(range(shape[1]), 2))[:6])
        for both in (pairs, pairs[:, ::-1]):
            found = coefficients(f, both, eta)
            np.testing.assert_allclose(found, b[both[:, 0], both[:, 1]], atol=1e-11 * np.abs(b).max())


def test_nodes_that_share_a_feature_repel_and_others_do_not_act(x64):
    rng = np.random.default_rng(6)
    q = np.linalg.qr(centred(rng.normal(size=(10, 4))))[0]
    f = jnp.asarray(np.stack([q[:, 0], q[:, 0], -q[:, 0], q[:, 1]], 1))
    same, opposite, other = coefficients(f, jnp.array([(0, 1), (0, 2), (0, 3)]), 0.5)
    assert same < -0.1 and opposite == pytest.approx(-float(same)) and other == pytest.approx(0, abs=1e-14)


# Blocks made by hand: their shapes, and the energy of members of the largest irrep.


@pytest.mark.slow
def test_shapes_of_blocks_made_by_hand(x64):
    """S3: one node of rank one, one whose u has singular values 0.8 and 0.6."""
    irreps = decompose(parse("S3"))
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2, 2)))[0]
    blocks = np.stack([turn[0][:, :1] @ turn[1][:1], turn[0] @ np.diag([0.8, 0.6]) @ turn[1]])
    u = np.einsum("gab,nab->gn", irreps.matrices[2], blocks)
    values, aligned, predicted = energy.shapes(jnp.asarray(u), jnp.asarray(u), irreps, jnp.asarray([1, 1]))
    np.testing.assert_allclose(values, [[1, 0], [0.8, 0.6]], atol=1e-12)
    np.testing.assert_allclose(aligned, [1, np.sqrt(0.8**4 + 0.6**4)], atol=1e-12)
    np.testing.assert_allclose(predicted, [[1, 0], [1, 0]])


@pytest.mark.slow
def test_members_lie_in_the_largest_irrep_and_have_the_energy_of_their_singular_values(x64):
    irreps = decompose(parse("S4"))
    assert energy.largest(energy.peaks(irreps)).degree == 3
    singular, measured, formula = energy.members(jax.random.normal(jax.random.key(0), (48, 5), jnp.float64), irreps)
    np.testing.assert_allclose(np.sum(np.square(singular), 1), 1, rtol=1e-12)
    np.testing.assert_allclose(measured, formula, rtol=1e-10)
    assert np.all(np.asarray(measured) < 24 / 6)


def test_shares_sum_to_one_without_the_trivial_irrep(x64):
    irreps = decompose(parse("Q8"))
    u = np.random.default_rng(0).normal(size=(8, 3))
    share = np.asarray(energy.shares(jnp.asarray(u - u.mean(0)), irreps))
    assert share.shape == (3, len(irreps.merged) - 1)
    np.testing.assert_allclose(share.sum(1), 1, rtol=1e-12)


def loss(v, f, y, eta):
    return 0.5 * np.sum((centred(y) - centred(f) @ v) ** 2) + 0.5 * eta * np.sum(v**2)


@pytest.mark.parametrize("shape", SHAPES)
def test_solution_is_least_squares_with_further_rows(shape, x64):
    f, y, _ = drawn(0, shape)
    hidden, eta = shape[1], 0.3
    rows = np.concatenate([centred(f), np.sqrt(eta) * np.eye(hidden)])
    expected = np.linalg.lstsq(rows, np.concatenate([centred(y), np.zeros((hidden, 4))]))[0]
    np.testing.assert_allclose(jax.jit(ridge.solution)(f, y, eta), expected, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_backward_is_the_loss_derivative_by_differences(shape, x64):
    f, y, v = drawn(1, shape)
    step, expected = 1e-6, np.zeros(shape)
    for place in np.ndindex(shape):
        change = np.zeros(shape)
        change[place] = step
        expected[place] = -(loss(v, f + change, y, 0.3) - loss(v, f - change, y, 0.3)) / (2 * step)
    np.testing.assert_allclose(jax.jit(ridge.backward)(f, y, v), expected, atol=1e-7)


@jax.jit
def at_the_ridge(f, y, eta):
    """Compiled in one go: single operations would each be compiled for each shape."""
    v = ridge.solution(f, y, eta)
    return ridge.gram_inverse(f, eta), ridge.residual_operator(f, eta), ridge.fixed(f, y, eta), ridge.backward(f, y, v)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 2**20), st.sampled_from(SHAPES), st.sampled_from([1e-2, 1.0, 50.0]))
def test_both_operators_and_what_is_sent_at_the_ridge(seed, shape, eta):
    with jax.enable_x64(True):
        f, y, _ = drawn(seed, shape)
        fc, yc = centred(f), centred(y)
        b = np.linalg.inv(fc.T @ fc + eta * np.eye(shape[1]))
        p = np.eye(shape[0]) - fc @ b @ fc.T
        inverse, operator, sent, again = at_the_ridge(f, y, eta)
        np.testing.assert_allclose(inverse, b, atol=1e-10 * np.abs(b).max())
        np.testing.assert_allclose(operator, p, atol=1e-10)
        expected = p @ yc @ yc.T @ fc @ b
        np.testing.assert_allclose(sent, expected, atol=1e-10 * np.abs(expected).max())
        np.testing.assert_allclose(again, expected, atol=1e-9 * np.abs(expected).max())


def test_path_is_the_matrix_exponential(x64):
    f, y, v0 = drawn(2, SHAPES[0])
    fc, yc, eta, ts = centred(f), centred(y), 0.2, np.array([0.0, 1e-3, 0.1, 4.0])
    a = fc.T @ fc + eta * np.eye(5)
    star = np.linalg.solve(a, fc.T @ yc)
    expected = np.stack([scipy.linalg.expm(-a * t) @ (v0 - star) + star for t in ts])
    np.testing.assert_allclose(jax.jit(ridge.path)(f, y, v0, eta, ts), expected, atol=1e-12)


def test_growth_from_nothing_is_the_targets_seen_through_the_features(x64):
    f, y, v0 = drawn(3, SHAPES[0])
    t = 1e-8
    v = ridge.path(f, y, 0 * v0, 0.2, jnp.array([t]))[0]
    expected = centred(y) @ centred(y).T @ centred(f)
    np.testing.assert_allclose(ridge.backward(f, y, v) / t, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(ridge.early(f, y), expected, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_vanishing_ridge_with_targets_in_the_span_and_not(shape, x64):
    f, y, _ = drawn(4, shape)
    eta = 1e-8
    limit, slope = jax.jit(ridge.unridged)(f, y)
    found = ridge.fixed(f, y, eta)
    if shape[1] >= shape[0] - 1:
        np.testing.assert_allclose(limit, 0, atol=1e-12)
        np.testing.assert_allclose(found / eta, slope, rtol=1e-4, atol=1e-5 * np.abs(slope).max())
    else:
        assert np.linalg.norm(limit) > 0.01
        np.testing.assert_allclose(found, limit, atol=1e-6)


@pytest.mark.parametrize("name", SIGMA)
@pytest.mark.parametrize("t", [0, 1, 2])
def test_kernel_is_the_gaussian_mean_product(name, t):
    """By quadrature on quadrants, so that no kink is crossed: after rotation to independent a and b' each is cut at zero."""
    sigma, variance, spread = SIGMA[name], 2 * 0.9**2, 0.9
    rho = t / 2
    x, w = np.polynomial.legendre.leggauss(60)

    def half(low, high):
        return (high - low) / 2 * x + (high + low) / 2, (high - low) / 2 * w

    total, root = 0.0, np.sqrt(variance)
    for low, high in ((-9, -4), (-4, 0), (0, 4), (4, 9)):
        for a, weight in zip(*half(low, high), strict=True):
            if t == 2:
                inner = sigma(root * a)
            else:
                cut = np.clip(-rho * a / np.sqrt(1 - rho**2), -9, 9)  # where the second operand changes sign
                inner = 0.0
                for ends in ((-9, min(cut, 0)), (min(cut, 0), max(cut, 0)), (max(cut, 0), 9)):
                    b, v = half(*ends)
                    second = sigma(root * (rho * a + np.sqrt(1 - rho**2) * b))
                    inner += np.sum(v * second * np.exp(-(b**2) / 2)) / np.sqrt(2 * np.pi)
            total += weight * sigma(root * a) * inner * np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi)
    assert ridge.kernel(name, t, spread) == pytest.approx(total, rel=1e-9, abs=1e-12)


def test_contrasts_of_the_activations():
    assert ridge.contrast("square", 1.3) == pytest.approx(4 * 1.3**4, rel=1e-14)
    assert ridge.contrast("cube") == pytest.approx(36, rel=1e-14)
    assert ridge.contrast("linear") == 0
    assert ridge.contrast("relu") == pytest.approx(1 - 2 * (np.sqrt(3) / 2 + np.pi / 3) / np.pi + 1 / np.pi, rel=1e-13)
    assert ridge.contrast("relu") == pytest.approx(0.100314, abs=5e-7)
    assert ridge.contrast("silu") == pytest.approx(0.086823, abs=5e-7)
    assert ridge.contrast("tanh") == pytest.approx(0.0479611, abs=5e-8)


def test_the_contrast_is_the_kernels_eigenvalue_on_the_class_signal():
    order = 5
    group = parse("5")
    h = np.stack(np.divmod(np.arange(order**2), order), -1)
    shared = (h[:, None] == h).sum(-1)
    kernel = np.array([ridge.kernel("relu", t) for t in range(3)])[shared]
    signal = centred(np.eye(order)[group.table[h[:, 0], h[:, 1]]])
    np.testing.assert_allclose(kernel @ signal, ridge.contrast("relu") * signal, atol=1e-12)


def test_factors_of_great_width():
    assert float(ridge.wide(jnp.float32(10.0), 2.0, 0.5)) == pytest.approx(2 / 49)
    assert float(ridge.wide_as_printed(jnp.float32(10.0), 7, 2.0, 0.5, 1.0)) == pytest.approx(2 / (7 * 9))


@pytest.mark.parametrize(
    ("activation", "sigma"),
    [
        ("hard_tanh", lambda x: np.clip(x, -1, 1)),
        ("elu", lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
        (np.sin, np.sin),
    ],
)
@pytest.mark.parametrize("scale", [0.05, 0.9])
def test_kernels_of_any_function_are_gaussian_mean_products(activation, sigma, scale):
    """By midpoints on a fine grid, on which rows with kinks have no weight to speak of."""
    x = (np.arange(-4000, 4000) + 0.5) / 500
    weight = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) / 500
    root = np.sqrt(2) * scale
    assert ridge.kernel(activation, 2, scale) == pytest.approx(np.sum(weight * sigma(root * x) ** 2), rel=1e-5)
    mean = np.sum(weight * sigma(root * x))
    assert ridge.kernel(activation, 0, scale) == pytest.approx(mean**2, rel=1e-5, abs=1e-12)
    coarse = x[::8] + 0.007
    inner = [np.sum(weight * sigma(root * (a / 2 + np.sqrt(0.75) * x))) for a in coarse]
    outer = np.sum(8 * np.exp(-(coarse**2) / 2) / np.sqrt(2 * np.pi) / 500 * sigma(root * coarse) * inner)
    assert ridge.kernel(activation, 1, scale) == pytest.approx(outer, rel=1e-5)


@pytest.mark.parametrize("activation", ["softmax", "one_hot", "nothing", lambda x: x[:1]])
def test_kernels_need_a_function_of_each_entry(activation):
    with pytest.raises(jd.UsageError, match="activation=.* is not allowed"):
        ridge.kernel(activation, 1)
    with pytest.raises(jd.UsageError, match="t=3 is not allowed"):
        ridge.kernel("relu", 3)


PAIRS = model.pairs(5)


def start(known=None):
    known = jnp.ones(25, bool) if known is None else known
    return model.init(jax.random.key(1), 5, 6), nodes.aims(model.products(GROUP, PAIRS), known, 5)


def test_targets_are_centred_over_the_known_pairs():
    known = jnp.arange(25) % 3 > 0
    y = np.asarray(start(known)[1])
    np.testing.assert_allclose(y.sum(0), 0, atol=1e-6)
    assert np.all(y[~np.asarray(known)] == 0)


def test_velocities_are_the_gradient_of_the_overlap_with_the_targets():
    p, y = start()
    slope = jax.grad(lambda p: jnp.sum(y * model.predict(p, PAIRS, "square")))(p)
    for mine, theirs in zip(nodes.pulls(p, y, "square"), slope, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def pull(w, v, y):
    """The velocities pair by pair, in plain numpy."""
    dw, dv = np.zeros_like(w), np.zeros_like(v)
    for n in range(len(y)):
        rows = n // 5, 5 + n % 5
        a = w[rows[0]] + w[rows[1]]
        dv += np.outer(a**2, y[n])
        for row in rows:
            dw[row] += 2 * a * (v @ y[n])
    return dw, dv


def scipy_directions(w, v, y, form, length):
    """Directions of w by scipy: each node moves by its own norm per unit of time, and is not renormalised on the way."""
    k = w.shape[1]

    def split(x):
        return x[: 10 * k].reshape(10, k), x[10 * k :].reshape(k, 5)

    def field(_, x):
        w, v = split(x)
        v = v if form == "node" else pull(w, v, y)[1]
        dw, dv = pull(w, v, y)
        dv = dv if form == "node" else 0 * dv
        own = 0 if form == "energy" else (v**2).sum(1)
        speed = np.sqrt(((w**2).sum(0) + own) / ((dw**2).sum(0) + (dv**2).sum(1)))
        return np.concatenate([(dw * speed).ravel(), (dv * speed[:, None]).ravel()])

    sol = scipy.integrate.solve_ivp(field, (0, length), np.concatenate([w.ravel(), v.ravel()]), rtol=1e-9, atol=1e-10)
    w = split(sol.y[:, -1])[0]
    return w / np.linalg.norm(w, axis=0)


@pytest.mark.slow
def test_directions_are_those_of_scipy():
    with jax.enable_x64(True):
        p, y = start(jnp.arange(25) % 4 > 0)
        mine = nodes.follow(p, [("node", y), ("energy", y)], length=2.0, tolerance=1e-9)
        w, v, y = (np.asarray(a, np.float64) for a in (*p, y))
        for form, found in zip(nodes.FORMS, mine, strict=True):
            np.testing.assert_allclose(found, scipy_directions(w, v, y, form, 2.0), atol=1e-6)


@pytest.mark.slow
def test_every_node_ends_in_one_irrep():
    with jax.enable_x64(True):
        p, y = start()
        irreps = decompose(GROUP)
        for end in nodes.follow(p, [(form, y) for form in nodes.FORMS], length=40.0):
            share = nodes.shares(end, irreps)
            assert np.median(np.max(share, 1)) > 0.95
            np.testing.assert_allclose(np.sum(share, 1), 1, rtol=1e-4)


def test_growth_and_alignment_are_those_of_magnitudes_and_phases():
    """By discrete Fourier transforms: three magnitudes times the cosine of both operands' phases minus that of the top layer."""
    p, _ = start()
    u, v, top = (np.fft.fft(np.asarray(x, float), axis=0)[1:3] for x in (p.w[:5], p.w[5:], p.v.T))
    angle = np.cos(np.angle(u) + np.angle(v) - np.angle(top))
    rate, aligned = (np.asarray(x) for x in nodes.lots(p, decompose(GROUP)))
    np.testing.assert_allclose(aligned.T, angle, atol=1e-4)
    np.testing.assert_allclose(rate.T, 0.8 * abs(u * v * top) * angle, rtol=1e-3, atol=1e-4)


KNOWN = np.arange(25) % 4 > 0
RATE, DECAY, MOMENTUM = 0.4, 0.02, 0.8


def rise_start(known=KNOWN):
    """A few nodes, larger than in training, and the centred targets of the known pairs; float64."""
    p = model.init(jax.random.key(1), 5, 6, "float64")
    y = nodes.aims(model.products(GROUP, model.pairs(5)), jnp.asarray(known), 5)
    return model.Params(1.5 * p.w, p.v), y.astype(jnp.float64)


def scipy_rise(w, v, y, ts, inertia):
    """The same flow by scipy, one equation at a time; states [t, 2, entries]."""
    k, count = w.shape[1], KNOWN.sum()

    def field(_, x):
        at, moving = x.reshape(2, -1)
        w, v = at[: 10 * k].reshape(10, k), at[10 * k :].reshape(k, 5)
        force = 2 / count * np.concatenate([part.ravel() for part in pull(w, v, y)]) - DECAY * at
        speed = RATE * moving if inertia else RATE / (1 - MOMENTUM) * force
        return np.concatenate([speed, force - (1 - MOMENTUM) * moving])

    at = np.concatenate([w.ravel(), v.ravel()])
    sol = scipy.integrate.solve_ivp(field, (0, ts[-1]), np.concatenate([at, 0 * at]), t_eval=ts, rtol=1e-9, atol=1e-11)
    return sol.y.T.reshape(len(ts), 2, -1)


@pytest.mark.thinned
@pytest.mark.parametrize("inertia", [True, False])
def test_the_flow_is_that_of_scipy(inertia):
    ts = np.linspace(0, 4 if inertia else 1.2, 4)
    with jax.enable_x64(True):
        p, y = rise_start()
        by = nodes.Trainer(RATE, DECAY, MOMENTUM, inertia)
        sol = nodes.rise(p, y, jnp.asarray(ts), by, tolerance=1e-8)
        mine = np.concatenate([np.asarray(leaf).reshape(4, -1) for leaf in sol.ys[0]], 1)
        theirs = scipy_rise(*(np.asarray(a) for a in (*p, y)), ts, inertia)[:, 0]
    np.testing.assert_allclose(mine, theirs, atol=1e-5)
    assert np.max(np.abs(mine[-1] - mine[0])) > 0.1


def test_outputs_are_centred_and_those_of_the_training_pairs():
    with jax.enable_x64(True):
        p, y = rise_start()
        w, v = (np.asarray(a) for a in p)
        out = np.array([(w[n // 5] + w[5 + n % 5]) ** 2 @ v for n in range(25) if KNOWN[n]])
        size = np.linalg.norm(out - out.mean(1, keepdims=True)) / np.linalg.norm(np.asarray(y))
        assert float(nodes.outputs(p, y, "square")) == pytest.approx(size, rel=1e-12)


@pytest.mark.slow
def test_the_solve_stops_where_outputs_are_no_longer_small():
    with jax.enable_x64(True):
        p, y = rise_start()
        sol = nodes.rise(p, y, jnp.linspace(0, 1000, 3), nodes.Trainer(RATE, 0.0, MOMENTUM), tolerance=1e-6)
        assert bool(sol.event) and not np.isfinite(sol.ts[-1])
        assert float(nodes.outputs(sol.y_end[0], y, "square")) == pytest.approx(nodes.END, rel=1e-3)


@pytest.mark.slow
def test_the_force_is_that_of_the_trainer_where_outputs_vanish():
    """On all pairs, where centring over samples and over outputs agree; outputs are of third order in the weights."""
    s = training.Training(group="5", hidden=6, share=0.8, dtype="float64")
    with jax.enable_x64(True):
        d = training.data(s, jax.random.key(0))._replace(used=jnp.asarray(25))
        p, y = rise_start(np.ones(25, bool))
        p = jax.tree.map(lambda a: 1e-3 * a, p)
        slope = training.gradient(p, d, s)
        force = nodes.force(p, y, 0.0, "square")
        for mine, theirs in zip(force, slope, strict=True):
            theirs = np.asarray(theirs)
            np.testing.assert_allclose(mine, -theirs, atol=1e-6 * np.abs(theirs).max())


@pytest.mark.slow
def test_momentum_is_inertia_of_order_one_in_the_rate():
    """Heavy-ball descent in plain numpy comes closer to the flow as the rate falls, in proportion."""
    errors = []
    with jax.enable_x64(True):
        p, y = rise_start()
        w0, v0, yn = (np.asarray(a) for a in (*p, y))
        for parts in (4, 8, 16):  # steps per unit of time; the drag per step falls with them, as the rate does
            rate, drag = RATE / parts**2, (1 - MOMENTUM) / parts
            at, moving = [w0.copy(), v0.copy()], [0 * w0, 0 * v0]
            for _ in range(4 * parts):
                force = [2 / KNOWN.sum() * g for g in pull(*at, yn)]
                moving = [(1 - drag) * m + g for m, g in zip(moving, force, strict=True)]
                at = [a + rate * m for a, m in zip(at, moving, strict=True)]
            sol = nodes.rise(p, y, jnp.array([0.0, 4.0]), nodes.Trainer(RATE, 0.0, MOMENTUM), tolerance=1e-8)
            errors.append(np.abs(np.asarray(sol.ys[0].w[-1]) - at[0]).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    assert np.all((ratios > 1.7) & (ratios < 2.4)), errors
