"""Formulas of the hierarchical latent tree against published numbers, each other and independent integration."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxdyn.data import trees
from jaxdyn.theories.joma.dynamics import hblt as theory

pytestmark = pytest.mark.usefixtures("x64")
start_saliencies = jax.jit(theory.start_saliencies, static_argnums=3)
arrival_times = jax.jit(theory.arrival_times)


@jax.jit
def saliency_forms(prior, p, rho, heights):
    joint = theory.class_joint(prior, p, rho, 5, heights)
    posterior = joint[:, 0]  # at H = 0 the token is the query
    return {
        "joint": joint,
        "together": theory.conditional(rho, theory.mean_polarity(prior, p), 5, heights),
        "prior": (theory.saliency(prior, p, rho, 5, heights, prior), theory.saliency_at_prior(prior, p, rho, 5)[:, None]),
        "posterior": (
            theory.saliency(prior, p, rho, 5, heights, posterior),
            theory.saliency_at_posterior(prior, p, rho, 5, heights),
        ),
    }


def test_numbers_of_the_sparse_limit():
    heights = jnp.arange(1.0, 8.0)
    values = theory.conditional(0.99, 0.99, 8, heights)
    np.testing.assert_allclose(values, [0.871, 0.745, 0.621, 0.500, 0.381, 0.265, 0.151], atol=5e-4)
    np.testing.assert_allclose(theory.limit(8, heights), np.arange(7, 0, -1) / 8)


def test_what_a_misread_constant_does():
    height = jnp.array([1.0])
    assert theory.conditional(0.93, 0.8082, 6, height)[0] == pytest.approx(0.8457, abs=5e-5)
    assert theory.conditional(0.93, (1 + 0.8082) / 2, 6, height)[0] == pytest.approx(0.8179, abs=5e-5)
    assert theory.conditional(0.93, 0.9, 6, jnp.array([5.0]))[0] == pytest.approx(0.310, abs=5e-4)


def test_formula_in_high_precision():
    with mpmath.workdps(40):
        rho, rho0 = mpmath.mpf("0.83"), mpmath.mpf("0.37")
        c = rho**6
        expected = [(1 + rho ** (2 * h) - 2 * c * rho0) / (2 * (1 - c * rho0)) for h in range(1, 7)]
    np.testing.assert_allclose(theory.conditional(0.83, 0.37, 7, jnp.arange(1.0, 7.0)), [float(e) for e in expected], rtol=1e-14)


@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 10**6), rho=st.floats(0.3, 0.98))
def test_saliency_forms_agree(seed, rho):
    rng = np.random.default_rng(seed)
    prior, p = rng.dirichlet(np.ones(4)), rng.uniform(-1, 1, 4)
    with jax.enable_x64(True):
        forms = jax.device_get(saliency_forms(prior, p, rho, np.arange(5.0)))
    np.testing.assert_allclose(forms["joint"].sum(0), forms["together"], rtol=1e-12)
    for name in ("prior", "posterior"):
        general, closed = forms[name]
        np.testing.assert_allclose(general, np.broadcast_to(closed, general.shape), atol=1e-14)
    assert np.all(np.diff(np.abs(general).sum(0)) > 0)  # at the posterior it grows with H


def start(depth: int = 3, outputs: int = 6, classes: int = 2, shallow: bool = False, allowed: int | None = None) -> tuple:
    prior = jnp.full(classes, 1 / classes)
    polarity = 1 - 2 * jnp.eye(classes)
    mask = jnp.arange(outputs) < (allowed or outputs)
    return start_saliencies(prior, polarity, 0.7, depth, mask, jnp.bool_(shallow)), prior, polarity, mask


def test_start_saliencies_are_those_of_the_tree():
    saliency, prior, polarity, mask = start(depth=4, outputs=5, classes=3)
    tree = trees.Tree(prior, polarity, trees.symmetric(0.7, 3))
    _, joint = jax.jit(trees.leaf_joint)(tree, 1, 0)
    full = np.zeros((5, 3, 8))
    full[:3] = joint
    expected = full - full.sum(0) / 5
    np.testing.assert_allclose(saliency.near[1], expected[:, 1, [1, 2, 4]], atol=1e-14)
    np.testing.assert_allclose(saliency.far[1, 2], expected[:, 2, 0], atol=1e-14)
    np.testing.assert_allclose(jnp.sum(saliency.query), 1.0)


def test_start_saliencies_without_latents_and_at_the_prior_do_not_depend_on_height():
    shallow = start(depth=4, shallow=True)[0].near
    at_prior = start(depth=4, outputs=6, classes=2, allowed=2)[0].near
    for near in (shallow, at_prior):
        np.testing.assert_allclose(near, np.repeat(near[..., :1], 3, -1), atol=1e-14)
    assert np.all(np.asarray(at_prior)[:, 2:] == 0)


def integrate(
    saliency: theory.Saliencies,
    lr: float,
    ratio: float,
    slope: float,
    a: float,
    threshold: float,
    steps: int,
    upper: np.ndarray | None = None,
) -> np.ndarray:
    """Arrival of every (query, token) by fourth-order steps on all tokens and nodes, in NumPy."""
    near, far, query = (np.asarray(x) for x in saliency)
    subtrees, outputs, heights = near.shape
    n = 2**heights
    height = trees.cla_heights(heights)
    delta = np.zeros((subtrees * n, subtrees * n, outputs))
    for q in range(subtrees):
        for s in range(subtrees):
            for i in range(n):
                for j in range(n):
                    if q != s:
                        delta[q * n + i, s * n + j] = far[q, s]
                    elif i != j:
                        delta[q * n + i, s * n + j] = near[s, :, height[i, j] - 1]
    share, k = np.repeat(query, n) / n, lr * slope / a
    if upper is not None:  # gradients at the hidden nodes in place of those at the outputs
        delta = delta @ upper.T

    def field(z: np.ndarray, v: np.ndarray) -> tuple:
        e = share[:, None] * np.exp(z)
        return k * ratio * e * np.einsum("mlo,lo->ml", delta, v), k * np.einsum("ml,mlo->lo", e, delta)

    z, v, arrival = np.zeros(delta.shape[:2]), np.zeros(delta.shape[1:]), np.full(delta.shape[:2], np.inf)
    for t in range(steps):
        a1 = field(z, v)
        a2 = field(z + a1[0] / 2, v + a1[1] / 2)
        a3 = field(z + a2[0] / 2, v + a2[1] / 2)
        a4 = field(z + a3[0], v + a3[1])
        new = z + (a1[0] + 2 * a2[0] + 2 * a3[0] + a4[0]) / 6
        v = v + (a1[1] + 2 * a2[1] + 2 * a3[1] + a4[1]) / 6
        hit = np.isinf(arrival) & (new >= threshold)
        arrival[hit] = t + ((threshold - z[hit]) / (new - z)[hit])
        z = new
        if z[:n, :n][height > 0].min() > threshold:
            break
    return np.array([arrival[:n, :n][height == h].mean() for h in range(1, heights + 1)])


@pytest.mark.parametrize("shallow", [False, True])
def test_arrival_times_are_those_of_all_tokens_integrated(shallow):
    saliency = start(shallow=shallow)[0]
    times = arrival_times(saliency, theory.Speeds(0.1, 8.0, 0.5, 8.0), 0.5, 600.0)
    expected = integrate(saliency, 0.1, 8.0, 0.5, 8.0, 0.5, 600)
    np.testing.assert_allclose(times, np.broadcast_to(expected, times.shape), rtol=2e-4)
    assert shallow or np.all(np.diff(expected) > 0)


@pytest.mark.slow
def test_arrival_times_with_an_upper_layer_are_those_of_all_hidden_nodes_integrated():
    saliency = start()[0]
    upper = np.random.default_rng(0).normal(size=(5, 6)) / 5**0.5
    times = arrival_times(saliency, theory.Speeds(0.1, 8.0, 0.5, 8.0), 0.3, 600.0, upper.T @ upper)
    expected = integrate(saliency, 0.1, 8.0, 0.5, 8.0, 0.3, 600, upper)
    np.testing.assert_allclose(times[0], expected, rtol=2e-4)
    assert abs(expected[0] / arrival_times(saliency, theory.Speeds(0.1, 8.0, 0.5, 8.0), 0.3, 600.0)[0, 0] - 1) > 0.02


def test_logits_that_do_not_arrive_are_infinite():
    times = arrival_times(start()[0], theory.Speeds(0.1, 8.0, 0.5, 8.0), 0.5, 10.0)
    assert np.all(np.isinf(times))
