"""Stage I and repulsion against NumPy, SciPy and finite differences; their judges; what settings refuse."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.claims import depth as depth_claims
from jaxdyn.theories.li2.claims import regimes, similar, width
from jaxdyn.theories.li2.claims import repulsion as pair_claims
from jaxdyn.theories.li2.claims import ridge as claims
from jaxdyn.theories.li2.dynamics import depth, repulsion, ridge

SHAPES = ((12, 5), (9, 14))  # more samples than nodes, and fewer
SIGMA = {
    "square": lambda x: x * x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "tanh": np.tanh,
    "cube": lambda x: x**3,
    "linear": lambda x: x,
}


def drawn(seed, shape, classes=4):
    rng = np.random.default_rng(seed)
    n, hidden = shape
    return rng.normal(size=shape), np.eye(classes)[rng.integers(classes, size=n)], rng.normal(size=(hidden, classes))


def centred(x):
    return x - x.mean(0)


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


def test_sizes_of_wide_networks_are_those_of_the_matrices(x64):
    f, y, _ = drawn(5, (9, 20))
    signal = centred(y) @ centred(y).T
    g, early = np.asarray(ridge.fixed(f, y, 0.7)), np.asarray(ridge.early(f, y))
    expected = np.sum(g * early), np.linalg.norm(g), np.linalg.norm(early)
    found = width._sizes(jnp.asarray(centred(f) @ centred(f).T), jnp.asarray(signal), 0.7)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


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


def test_features_by_number_are_those_by_name(x64):
    samples = model.pairs(5)
    w = jnp.asarray(np.random.default_rng(7).normal(size=(10, 3)))
    found = jax.jit(jax.vmap(lambda code: claims.features(code, w, samples)))(jnp.arange(len(claims.KINDS)))
    x = np.asarray(w)[np.asarray(samples)[:, 0]] + np.asarray(w)[5 + np.asarray(samples)[:, 1]]
    np.testing.assert_allclose(found, np.stack([SIGMA[name](x) for name in claims.KINDS]), atol=1e-14)


def rejects(judge, ds, name, factor):
    return not all(c.passed for c in judge(ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})))


def test_judges_of_stage_one_reject_distortions():
    ds = jd.sweep(claims.trial, jd.grid(claims.StageOne, activation=["silu"], group="4", samples=12, hidden=3), seeds=2)
    judges = {"fixed": claims.judge_fixed, "growth": claims.judge_early, "v": claims.judge_closed, "sent": claims.judge_closed}
    for name, judge in judges.items():
        assert all(c.passed for c in judge(ds)), name
        assert rejects(judge, ds, name, 0.9) and rejects(judge, ds, name, 1.1), name
    assert rejects(claims.judge_closed, ds, "rate", 1.1)


def test_judges_of_regimes_width_and_pairs_reject_distortions():
    ds = jd.sweep(regimes.trial, jd.grid(regimes.Regimes, nodes=[5, 20], group="4", most=20), seeds=2)
    for form, holds in (("derived", True), ("printed", False)):
        one = ds.sel(form=form)
        for judge in (regimes.judge_eta, regimes.judge_beta):
            assert all(c.passed for c in judge(one)) == holds, (form, judge)
    one = ds.sel(form="derived")
    for name, judge in (("small", regimes.judge_eta), ("large", regimes.judge_eta), ("scaled", regimes.judge_beta)):
        assert rejects(judge, one, name, 0.9) and rejects(judge, one, name, 1.1), name
    pairs = jd.sweep(pair_claims.trial, jd.grid(pair_claims.Pairs, activation=["silu"], nodes=[12], most=16), seeds=2)
    assert all(c.passed for c in pair_claims.judge_identity(pairs))
    assert rejects(pair_claims.judge_identity, pairs, "b", 1 + 1e-9)


def test_what_a_wide_upper_layer_sends_down_is_the_mean_over_its_nodes(x64):
    """In two dimensions the mean over a Gaussian node is twice that over its angle."""
    rng = np.random.default_rng(8)
    f, half = rng.normal(size=(5, 2)), rng.normal(size=(5, 5))
    signal = half + half.T
    angle = (np.arange(400_000) + 0.5) * 2 * np.pi / 400_000
    w = np.stack([np.cos(angle), np.sin(angle)])
    a = f @ w
    expected = 2 * ((signal @ np.maximum(a, 0)) * (a > 0)) @ w.T / len(angle)
    np.testing.assert_allclose(jax.jit(depth.received)(f, signal), expected, atol=3e-5)
    assert np.abs(depth.masked(f, signal) - expected).max() > 0.05


def test_judge_of_depth_rejects_distortions_and_the_masks_alone():
    ds = jd.sweep(depth_claims.trial, jd.grid(depth_claims.Upper, below=6), seeds=4)
    one = ds.sel(form="derived")
    assert all(c.passed for c in depth_claims.judge(one))
    assert not all(c.passed for c in depth_claims.judge(ds.sel(form="printed")))
    assert rejects(depth_claims.judge, one, "sent", 0.9) and rejects(depth_claims.judge, one, "sent", 1.1)


def test_signs_along_training_with_all_pairs_counted():
    small = {"group": "5", "samples": 12, "hidden": 8, "counted": 28, "records": 2, "every": 3}
    ds = jd.sweep(similar.trial, jd.grid(similar.Similar, activation=["square", "relu"], **small), seeds=2)
    assert set(np.unique(ds.measured_sign)) <= {-1.0, 0.0, 1.0} and list(ds.epoch) == [0, 3, 6]
    agree = (ds.measured_sign == ds.predicted_sign).mean("pair")
    np.testing.assert_allclose(agree.sel(which="most similar"), agree.sel(which="random"))
    values = {c.name: c.value for c in similar.judge(ds)}
    assert values["its excess over random pairs, at the end"] == 0


@pytest.mark.parametrize(
    "cls, fields",
    [
        (claims.StageOne, {"eta": 0.0}),
        (claims.StageOne, {"samples": 50}),
        (regimes.Regimes, {"nodes": 4}),
        (regimes.Regimes, {"eta": -1.0}),
        (width.Width, {"block": 0}),
        (pair_claims.Pairs, {"nodes": 11}),
        (pair_claims.Pairs, {"assumed": 0.0}),
        (depth_claims.Upper, {"below": 0}),
        (similar.Similar, {"counted": 40_000}),
        (similar.Similar, {"lr": 0.0}),
    ],
)
def test_settings_refuse(cls, fields):
    with pytest.raises(jd.UsageError, match=f"got .*{next(iter(fields))}="):
        cls(**fields)
