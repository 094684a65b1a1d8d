"""Closed gradients against finite differences, mpmath and NumPy, and the claims on gradients, lengths and invariants."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.theories.snap.claims import clock as frozen
from jaxdyn.theories.snap.claims import gradient as claims
from jaxdyn.theories.snap.claims import invariants, length
from jaxdyn.theories.snap.dynamics import clock
from jaxdyn.theories.snap.dynamics import gradient as theory

M, K, R = 6, 3, 2
ascent = jax.jit(theory.ascent)


def objective(y, z, p, query, label, weight):
    """J at infinite length, in NumPy."""
    total = 0.0
    for n in range(len(p)):
        c = p[n] * np.exp(z[query[n]])
        f = c / np.sqrt((c**2).sum())
        logits = y.T @ f
        total += weight[n] * (logits[label[n]] - np.log(np.exp(logits).sum()))
    return total


def case(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(M), K)
    p[0, 3] = 0.0
    query, label, weight = np.array([0, 1, 0]), np.array([2, 3, 4]), rng.dirichlet(np.ones(K))
    return rng.normal(size=(M, M)), rng.normal(size=(R, M)), p / p.sum(1, keepdims=True), query, label, weight


def slope(f, x, h=1e-6):
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = h
        out[i] = (f(x + step) - f(x - step)) / (2 * h)
    return out


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6))
def test_ascent_is_the_slope_of_the_objective(seed):
    y, z, *rest = case(seed)
    with jax.enable_x64(True):
        dy, dz = ascent(y, z, *rest)
    assert np.allclose(dy, slope(lambda a: objective(a, z, *rest), y), atol=2e-9)
    assert np.allclose(dz, slope(lambda a: objective(y, a, *rest), z), atol=2e-9)
    assert np.allclose(np.asarray(dy).sum(1), 0, atol=1e-14) and np.allclose(np.asarray(dz).sum(1), 0, atol=1e-14)


def test_one_sequence_is_its_counts(x64):
    y, z, *_ = (jnp.asarray(a) for a in case(1))
    ids = np.array([0, 3, 3, 1, 5, 3])
    by_position = jax.jit(theory.sample_ascent)(y, z, jnp.asarray(np.eye(M)[ids]), 1, 4)
    counts = jnp.asarray(np.bincount(ids, minlength=M), jnp.float64)[None]
    one = jnp.asarray([1])
    by_count = ascent(y, z, counts, one, jnp.asarray([4]), jnp.ones(1))
    for a, b in zip(by_position, by_count, strict=True):
        assert np.allclose(a, b, rtol=1e-12, atol=1e-15)


def test_theorem_1_from_a_decoder_that_is_a_clock(x64):
    """The gradient of the decoder Y = F h (M E - 1) has the form of Theorem 1, with gamma, iota and beta as derived."""
    size, u = 12, 1.7
    f = theory.unit(jnp.asarray(np.kron(np.eye(3), [[1.0, 2.0, 0.5]])))
    f = jnp.concatenate([f, jnp.zeros((3, size - 9))], 1)
    label = np.array([9, 10, 11])
    y = f.T @ (u / size * (size * np.eye(size)[label] - 1))
    got = theory.backpropagated(y, f, label)
    assert np.allclose(got, theory.gradient_form(f, jnp.float64(u), size), rtol=1e-12, atol=1e-15)
    assert float(theory.excess(f)) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("size", [2, 40, 10_000])
def test_peak_of_gamma(x64, size):
    with mpmath.workdps(30):
        u = mpmath.findroot(lambda u: mpmath.exp(u) * (u - 1) - (size - 1), mpmath.log(size) + 0.3)
    assert theory.peak(size) == pytest.approx(float(u), rel=1e-13)
    near = theory.gamma(theory.peak(size) + jnp.asarray([-1e-3, 0.0, 1e-3]), size)
    assert near[1] > near[0] and near[1] > near[2]


def test_published_numbers_of_the_peak(x64):
    u = theory.peak(10_000)
    assert u == pytest.approx(7.3602, abs=5e-5)
    assert float(theory.time_at(u, 10_000.0, 1.0, 1.0)) == pytest.approx(7.5166, abs=5e-5)
    assert float(theory.gamma(jnp.float64(u), 10_000.0)) == pytest.approx(6.3595, abs=5e-5)


def test_integral_of_gamma_and_the_inverse_clock(x64):
    size, classes, eta, t = 40.0, 3.0, 0.7, 25.0
    with mpmath.workdps(20):

        def gamma(time):
            u = mpmath.findroot(lambda u: (size - 1) * u + mpmath.expm1(u) - size * eta * time / classes, 1.0 + mpmath.log1p(time))
            return (size - 1) ** 2 / size * u / (size - 1 + mpmath.exp(u))

        want = float(mpmath.quad(gamma, [0, 5, 12, t]))
    u = clock.clock(size * eta * t / classes, size)
    assert float(theory.gamma_integral(u, size, classes, eta)) == pytest.approx(want, rel=1e-10)
    assert float(theory.time_at(u, size, classes, eta)) == pytest.approx(t, rel=1e-13)


def test_xi_counts_the_other_classes(x64):
    f = theory.unit(jnp.asarray(np.random.default_rng(0).random((3, 5))))
    u = jnp.float64(2.0)
    brute = [sum(f[n] @ f[k] for k in range(3) if k != n) for n in range(3)]
    assert np.allclose(theory.xi(f, u, 30.0), theory.gamma(u, 30.0) * 30 / 29**2 * np.array(brute), rtol=1e-13)


def test_spread_is_the_variance_of_all_short_sequences(x64):
    """Leading order against the exact mean over every multinomial count, at two lengths: the error falls like 1/T."""
    p, z = np.array([0.5, 0.3, 0.2]), np.array([0.3, -0.5, 0.1])
    c = np.asarray(theory.attention(jnp.asarray(z), jnp.asarray(p)))
    assert np.allclose(c, p * np.exp(z) / (p * np.exp(z)).sum(), rtol=1e-14)
    errors = []
    for total in (20, 40):
        exact = 0.0
        for a, b in itertools.product(range(total + 1), repeat=2):
            if a + b <= total:
                k = np.array([a, b, total - a - b])
                log_chance = float(mpmath.loggamma(total + 1) - sum(mpmath.loggamma(x + 1) for x in k)) + k @ np.log(p)
                e = k * np.exp(z)
                exact += np.exp(log_chance) * ((e / e.sum() - c) ** 2).sum()
        errors.append(float(theory.spread(jnp.asarray(z), jnp.asarray(p), jnp.asarray([float(total)]))[0]) ** 2 / exact - 1)
    assert abs(errors[0]) < 0.1 and abs(errors[1]) == pytest.approx(abs(errors[0]) / 2, rel=0.2)


def test_prefix_counts_remember(x64):
    p = jnp.asarray([0.2, 0.3, 0.5])
    for memory in (0.0, 0.6, 1.0):
        counts = np.asarray(length.prefix_counts(jax.random.key(1), p, jnp.float64(memory), 4000, (1, 2, 8)))
        assert np.array_equal(counts.sum(-1), np.broadcast_to([[1], [2], [8]], (3, 4000)))
        assert np.all(np.diff(counts, axis=0) >= 0)
        assert np.allclose(counts[2].mean(0) / 8, p, atol=0.04)
        same = np.mean(counts[1].max(1) == 2)
        assert same == pytest.approx(memory + (1 - memory) * float((p**2).sum()), abs=4 * 0.5 / np.sqrt(4000))


def passed(checks):
    return all(c.passed for c in checks)


def test_judge_of_the_gradient():
    ds = jd.sweep(claims.reparam_trial, jd.grid(claims.Random, tokens=8, classes=2, queries=1, query_share=[0.0, 1.0]), seeds=2)
    good = ds.sel(query_share=0.0)
    assert passed(claims.judge_reparam(good))
    assert not passed(claims.judge_reparam(ds.sel(query_share=1.0)))
    assert not passed(claims.judge_reparam(claims.no_projector(good)))
    for name in ("law_y", "law_z", "batch_y", "batch_z"):
        assert not passed(claims.judge_reparam(good.assign({f"predicted_{name}": 1.1 * good[f"predicted_{name}"]})))


def test_judge_of_the_length():
    grid = jd.grid(length.Context, memory=[0.0, 0.9, 1.0], logits=1.0, longest=12)
    ds = jd.sweep(length.trial, grid, seeds=8)
    good = ds.sel(memory=0.0)
    assert passed(length.judge(good))
    assert not passed(length.judge(ds.sel(memory=0.9))) and not passed(length.judge(ds.sel(memory=1.0)))
    for name in ("attention", "spread"):
        assert not passed(length.judge(good.assign({f"predicted_{name}": 1.1 * good[f"predicted_{name}"]})))


def pressure(felt, closed):
    dims = ("seed", "time", "class", "own")
    return xr.Dataset(
        {"measured_xi": (dims, felt), "predicted_xi": (dims[:3], closed), "gamma": (dims[:2], np.ones(closed.shape[:2]))}
    )


def test_judge_of_the_pressure():
    closed = np.full((2, 4, 3), 0.2)
    felt = np.full((2, 4, 3, 2), 0.2)
    felt[:, 1:] *= 3  # only the first time is compared
    assert passed(claims.judge_xi(pressure(felt, closed)))
    assert not passed(claims.judge_xi(pressure(felt, 1.1 * closed)))
    for value in (0.0, -1e-3):
        broken = felt.copy()
        broken[0, 2, 1, 0] = value
        assert not passed(claims.judge_xi(pressure(broken, closed)))


def test_still_entries_are_those_without_gradient(x64):
    s = invariants.Learning()
    one = frozen.task(jax.random.key(0), s.tokens, s.classes, s.distinct, s.common, queries=s.queries)
    rng = np.random.default_rng(0)
    y, z = rng.normal(size=(s.tokens, s.tokens)), rng.normal(size=(s.queries + 1, s.tokens))
    push = ascent(y, z, *one)[1]
    assert np.array_equal(np.asarray(push) == 0, invariants.still_entries(s))


def test_linear_attention_sees_shifts(x64):
    y, z, *task = (jnp.asarray(a) for a in case(3))
    kinds = [invariants.loss(invariants.model.Params(y, 0.1 * z), invariants.model.Task(*task), k, 0.0) for k in (0, 1)]
    p, query, label, weight = (np.asarray(a) for a in task)
    want = 0.0
    for n in range(K):
        c = p[n] * (1 + 0.1 * np.asarray(z)[query[n]])
        logits = np.asarray(y).T @ (c / np.sqrt((c**2).sum()))
        want -= weight[n] * (logits[label[n]] - np.log(np.exp(logits).sum()))
    assert float(kinds[1]) == pytest.approx(want, rel=1e-12) and float(kinds[0]) != float(kinds[1])
    decayed = invariants.loss(invariants.model.Params(y, 0.1 * z), invariants.model.Task(*task), 0, 0.5)
    assert float(decayed - kinds[0]) == pytest.approx(0.25 * float((y**2).sum() + 0.01 * (z**2).sum()), rel=1e-12)


def test_settings_refuse_what_cannot_be():
    with pytest.raises(jd.UsageError, match="probability"):
        length.Context(memory=1.5)
    with pytest.raises(jd.UsageError, match="three lengths"):
        length.Context(longest=5)
    with pytest.raises(jd.UsageError, match="positive"):
        claims.Overlapping(ratio=0.0)
    with pytest.raises(jd.UsageError, match="queries <= classes"):
        claims.Random(queries=9)
    with pytest.raises(jd.UsageError, match="momentum"):
        invariants.Learning(momentum=1.0)
