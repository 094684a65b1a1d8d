"""Gradient ascent and the flow on the sphere against finite differences and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import ascent, energy

from ..energy_oracle import dense, oracle

pytestmark = pytest.mark.usefixtures("x64")


energy_of = jax.jit(energy.energy, static_argnums=(1, 2))
directions = jax.jit(ascent.directions, static_argnums=(1, 2, 3, 4))
ascend = jax.jit(ascent.ascend, static_argnums=(1, 2), static_argnames=("steps", "block"))
ascend_spectra = jax.jit(ascent.ascend_spectra, static_argnums=1, static_argnames=("steps", "block"))
curvatures = jax.jit(ascent.curvatures, static_argnums=1)


def test_the_hessian_on_the_sphere_is_that_of_finite_differences():
    group, rng = parse("S3"), np.random.default_rng(5)
    w = rng.normal(size=12)
    w /= np.linalg.norm(w)
    x, y = dense(group)
    basis = np.linalg.svd(w[None])[2][1:]  # the tangent space

    def along(t):
        """The gradient on the sphere at the point reached from w along a great circle."""
        size = np.linalg.norm(t)
        p = np.cos(size) * w + np.sin(size) * t / size
        g = oracle(p[:, None], x, y, "square")[1][:, 0]
        return g - p * (p @ g)

    h = 1e-5
    hessian = np.array([(along(h * b) - along(-h * b)) @ basis.T / (2 * h) for b in basis])
    along_w = w @ oracle(w[:, None], x, y, "square")[1][:, 0]
    values = curvatures(jnp.asarray(w[:, None]), group)[0]
    expected = np.sort([*np.linalg.eigvalsh((hessian + hessian.T) / 2), -along_w])
    np.testing.assert_allclose(values, expected, atol=1e-7)


def test_nodes_do_not_act_on_each_other_and_jit_changes_nothing():
    group = parse("Q8")
    ways = directions(jax.random.key(0), group, 4, 2)
    together = ascent.climb(ways, group, steps=60)
    compiled = jax.jit(lambda x: ascent.climb(x, group, steps=60))
    alone = jnp.concatenate([compiled(ways[:, :, i : i + 1]) for i in range(4)], 1)
    np.testing.assert_allclose(together, alone, atol=1e-9)  # 120 steps, each of which amplifies rounding by a little
    jitted = compiled(ways)
    np.testing.assert_allclose(together, jitted, atol=1e-9)


@pytest.mark.parametrize("kind", ["square", "silu"])
def test_an_ascent_climbs_and_stays_on_the_sphere(kind):
    group = parse("S3")
    w = directions(jax.random.key(1), group, 8)[0]
    step = jax.jit(lambda w: ascent.ascend(w, group, kind, steps=2, step=0.2))
    for _ in range(12):
        after = step(w)
        assert np.all(energy_of(after, group, kind) >= energy_of(w, group, kind) - 1e-13)
        np.testing.assert_allclose(np.linalg.norm(after, axis=0), 1, rtol=1e-12)
        w = after


def test_a_node_without_gradient_stays_where_it_is():
    group = parse("5")
    w = directions(jax.random.key(2), group, 2)[0]
    dead = -jnp.abs(w)
    np.testing.assert_allclose(ascent.ascend(dead, group, "relu", steps=3), dead, rtol=1e-14)


@pytest.mark.slow
def test_the_flow_agrees_with_scipy_and_ends_where_small_steps_end():
    group = parse("S3")
    w = directions(jax.random.key(3), group, 2)[0]
    found = jax.jit(lambda w: ascent.follow(w, group, np.array([0.0, 0.5, 40.0])))(w)
    x, y = dense(group)

    def field(t, flat):
        p = flat.reshape(12, 2)
        g = oracle(p, x, y, "square")[1]
        return ((g - p * (p * g).sum(0)) / 6).ravel()

    expected = scipy.integrate.solve_ivp(field, (0, 0.5), np.asarray(w).ravel(), rtol=1e-10, atol=1e-12).y[:, -1].reshape(12, 2)
    np.testing.assert_allclose(found.ys[1], expected, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(found.ys, axis=1), 1, atol=1e-7)
    ends = ascend(w, group, steps=6000, step=0.01)
    np.testing.assert_allclose(ends, found.ys[2], atol=1e-2)  # Euler's polygon of steps 0.01
    np.testing.assert_allclose(energy_of(ends, group), energy_of(found.y_end, group), rtol=1e-6)


@pytest.mark.thinned
@pytest.mark.parametrize("name", ["8", "S3", "SL2:3"])
def test_steps_by_spectra_are_the_same_steps(name):
    """Irreps of every type; five nodes in blocks of two."""
    group = parse(name)
    w = directions(jax.random.key(4), group, 5)[0]
    plain = ascend(w, group, steps=30, block=2)
    np.testing.assert_allclose(plain, ascend(w, group, steps=30), atol=1e-10)
    np.testing.assert_allclose(ascend_spectra(w, decompose(group), steps=30, block=2), plain, atol=1e-10)


def test_steps_stay_in_single_precision(x64):
    group = parse("S3")
    w = directions(jax.random.key(5), group, 2, 1, "float32")[0]
    for climb in (lambda w: ascent.ascend(w, group, steps=2), lambda w: ascent.ascend_spectra(w, decompose(group), steps=2)):
        jaxpr = str(jax.make_jaxpr(climb)(w))
        assert "f64[12" not in jaxpr and climb(w).dtype == jnp.float32
