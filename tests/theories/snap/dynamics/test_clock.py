"""The decoder's clock against mpmath and brute force."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.theories.snap.dynamics import clock as theory

SIZES = (2, 3, 50, 1000, 10**6)


def lambert_clock(s, size):
    """The printed closed form, with 60 digits: u = a - W0(e^a / (M - 1)), a = (s + 1) / (M - 1)."""
    with mpmath.workdps(60):
        a = (mpmath.mpf(s) + 1) / (size - 1)
        return a - mpmath.lambertw(mpmath.exp(a) / (size - 1)).real


@settings(deadline=None, max_examples=15)
@given(exponent=st.floats(-12, 14), size=st.sampled_from(SIZES))
def test_clock_is_lamberts_function(exponent, size):
    s = 10.0**exponent
    want = lambert_clock(s, size)
    with jax.enable_x64(True):
        u = theory.clock(s, float(size))
        assert abs(float(u) - float(want)) <= 4e-15 * float(want)
        for name, exact in (("hit", mpmath.exp(want) / (mpmath.exp(want) + size - 1)), ("miss", 1 / (mpmath.exp(want) + size - 1))):
            assert float(getattr(theory, name)(jnp.float64(float(want)), float(size))) == pytest.approx(float(exact), rel=1e-13)


def test_clock_batches_and_its_edges(x64):
    s = jnp.asarray([0.0, 1e-300, 1e-3, 7.0, 1e3, 1e18, 1e300])
    size = jnp.asarray([2.0, 40.0, 40.0, 1e4, 2.0, 1e9, 1e3])
    batch = jax.jit(jax.vmap(theory.clock))(s, size)
    assert np.allclose(batch, [theory.clock(a, b) for a, b in zip(s, size, strict=True)], rtol=1e-15, atol=0)
    assert np.allclose(batch, theory.clock(s, size), rtol=1e-15, atol=0)
    assert float(batch[0]) == 0 and np.all(np.isfinite(batch))
    assert np.allclose((size - 1) * batch + np.expm1(batch), s, rtol=1e-12)


@pytest.mark.parametrize(("s", "size"), [(0.0, 5.0), (3.0, 40.0), (1e4, 40.0)])
def test_clock_derivatives(x64, s, size):
    u = theory.clock(s, size)
    by_s, by_size = jax.grad(theory.clock, (0, 1))(jnp.float64(s), jnp.float64(size))
    assert float(by_s) == pytest.approx(1 / (size - 1 + np.exp(float(u))), rel=1e-14)
    with mpmath.workdps(40):
        difference = (lambert_clock(s, size + mpmath.mpf("1e-12")) - lambert_clock(s, size - mpmath.mpf("1e-12"))) / mpmath.mpf(
            "2e-12"
        )
    assert float(by_size) == pytest.approx(float(difference), rel=1e-9, abs=1e-12)
    assert float(jax.jvp(theory.clock, (s, size), (1.0, 0.0))[1]) == pytest.approx(float(by_s), rel=1e-15)


def test_visits_are_the_recursion(x64):
    u = theory.visits(6, 0.7, 30.0)
    want = [mpmath.mpf(0)]
    for _ in range(6):
        want.append(want[-1] + mpmath.mpf("0.7") * 30 / (29 + mpmath.exp(want[-1])))
    assert np.allclose(u, [float(w) for w in want], rtol=1e-14)
    assert theory.visits(0, 0.7, 30.0).shape == (1,)


def test_visits_are_the_row_of_a_network(x64):
    size, y, alpha = 7, np.zeros(7), np.full(7, 1 / 7)
    for k in range(5):
        assert float(theory.visits(k, 0.9, float(size))[-1]) == pytest.approx(y[2] - y[0], rel=1e-13, abs=1e-15)
        alpha = np.exp(y) / np.exp(y).sum()
        y = y + 0.9 * (np.eye(size)[2] - alpha)


@pytest.mark.parametrize(("steps", "rows"), [(1, 2), (4, 3), (6, 2)])
def test_expected_is_the_mean_over_all_orders(x64, steps, rows):
    f = np.random.default_rng(0).random(steps + 1)
    brute = np.mean([f[order.count(0)] for order in itertools.product(range(rows), repeat=steps)])
    assert float(theory.expected(jnp.asarray(f), steps, float(rows))) == pytest.approx(brute, rel=1e-13)
    short = np.append(f[:-1], f[-2])
    assert float(theory.expected(jnp.asarray(f[:-1]), steps, float(rows))) == pytest.approx(
        np.mean([short[order.count(0)] for order in itertools.product(range(rows), repeat=steps)]), rel=1e-13
    )


def test_published_check_values(x64):
    """The mixture for N = 100 rows and M = 1000 tokens at eta = 0.5, which the theory's notes list to eight digits."""
    for steps, hit in ((1000, 0.16575979), (10_000, 0.97549390)):
        values = theory.hit(theory.visits(400, 0.5, 1000.0), 1000.0)
        assert float(theory.expected(values, steps, 100.0)) == pytest.approx(hit, abs=6e-9)
