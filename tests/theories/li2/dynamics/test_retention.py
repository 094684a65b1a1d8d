"""The three energies against dense algebra, the flow against an ODE solver."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn import flow
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.dynamics import retention as theory

RIDGE = 1e-3
random_maximum = jax.jit(energy.random_maximum, static_argnums=(1, 2, 3))


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def chosen(order, n, count, key):
    """Masks of n pairs."""
    return theory.random_order(key, order, count) < n


def subsets(name, n, count=2, number=0):
    group = parse(name)
    mask = chosen(group.order, n, count, jax.random.key(number))
    return group, mask, jax.random.normal(jax.random.key(number + 1), (2 * group.order, count), jnp.float64)


def climbed(group, kind):
    """Energy and gradient as one program."""
    return jax.jit(
        lambda w, mask: theory.value_and_gradient(
            w, theory.tables(group), theory.make_data(mask, theory.tables(group), kind, RIDGE)
        )
    )


def flowed(group, kind, steps, step):
    """The flow as one program."""
    return jax.jit(
        lambda w, mask: theory.flow(w, theory.tables(group), theory.make_data(mask, theory.tables(group), kind, RIDGE), steps, step)
    )


def dense(group, mask, kind, w):
    """The energy of one subset and its gradient from the definition: n by n matrices."""
    rows = np.argwhere(np.asarray(mask) > 0)
    y = np.eye(group.order)[group.table[rows[:, 0], rows[:, 1]]]
    n = len(rows)
    centring = np.eye(n) - 1 / n
    b = centring
    if kind == "whitened":
        shared = (rows[:, None] == rows[None]).sum(-1)
        b = np.linalg.inv(centring @ (4 + 2 * shared**2) @ centring + RIDGE * np.eye(n))

    places = rows + [0, group.order]
    u, v = w[places.T]
    f, slopes = (2 * u * v, (2 * v, 2 * u)) if kind == "cross" else ((u + v) ** 2, (2 * (u + v),) * 2)
    left = (centring @ y).T @ b
    gradient = np.zeros_like(w)
    np.add.at(gradient, places.T, left.T @ left @ f * slopes)
    return np.sum(np.square(left @ f)) / 2, gradient


@pytest.mark.thinned
@pytest.mark.parametrize("kind", theory.OBJECTS)
@pytest.mark.parametrize(("name", "n"), [("5", 13), ("S3", 20), ("S3", 36)])
def test_energy_and_gradient_against_dense_matrices(x64, kind, name, n):
    group, mask, w = subsets(name, n)
    e, g = climbed(group, kind)(w, mask)
    for i in range(w.shape[1]):
        value, gradient = dense(group, mask[..., i], kind, np.asarray(w[:, i]))
        np.testing.assert_allclose(e[i], value, rtol=1e-8)
        np.testing.assert_allclose(g[:, i], gradient, atol=1e-8 * np.abs(gradient).max())


def test_the_whole_energy_is_that_of_partial_data(x64):
    group, mask, w = subsets("S3", 22)
    e, g = climbed(group, "plain")(w, mask)
    whole = jax.jit(lambda w, mask: energy.value_and_gradient(w, group, mask=mask))
    for i in range(w.shape[1]):
        value, gradient = whole(w[:, i : i + 1], mask[..., i])
        np.testing.assert_allclose(e[i], value[0], rtol=1e-12)
        np.testing.assert_allclose(g[:, i], gradient[:, 0], atol=1e-12)


@pytest.mark.thinned
@pytest.mark.parametrize("kind", theory.OBJECTS)
@pytest.mark.parametrize(("name", "k"), [("5", 1), ("S3", 2)])
def test_all_pairs_keep_every_maximum(x64, kind, name, k):
    irreps = decompose(parse(name))
    group = irreps.group
    w = random_maximum(jax.random.key(3), irreps, k, 4)
    end = flowed(group, kind, 20, 0.4)(w, jnp.ones((group.order, group.order, 4), jnp.float64))
    np.testing.assert_allclose(end.w, w, atol=1e-9)
    assert float(end.gradient.max()) < 1e-9


def test_what_is_left_has_mean_zero_and_rows_and_columns_are_damped(x64):
    group, mask, w = subsets("7", 30, 2)

    @jax.jit
    def left(f):
        data = theory.make_data(mask, theory.tables(group), "whitened", RIDGE)
        a, b = data.effects(mask * f)
        return mask * (f - a[:, None] - b) / data.scale

    noise = jax.random.normal(jax.random.key(9), mask.shape, jnp.float64)
    np.testing.assert_allclose(jnp.sum(left(noise), (0, 1)), 0, atol=1e-10)
    effect = jnp.broadcast_to(w[:7, None], mask.shape)
    size = [jnp.linalg.norm(left(f)) / jnp.linalg.norm(mask * f) for f in (effect - jnp.mean(effect, 0), noise)]
    assert size[0] < size[1] / 2


def test_subsets_are_drawn_without_replacement_and_grow():
    ranks = np.asarray(theory.random_order(jax.random.key(0), 5, 3))
    np.testing.assert_array_equal(np.sort(ranks.reshape(25, 3), 0), np.arange(25)[:, None] * np.ones(3))
    assert len({tuple(r) for r in ranks.reshape(25, 3).T}) == 3
    many = np.asarray(theory.random_order(jax.random.key(1), 3, 4000)) < 4
    np.testing.assert_allclose(many.mean(-1), 4 / 9, atol=4 * np.sqrt(20 / 81 / 4000))


@pytest.mark.slow
def test_the_flow_follows_the_ode(x64, kind="whitened"):
    """Short times: Euler steps of .01 are off by about that. The end of a climb with steps of .4 is where small ones end."""
    irreps = decompose(parse("7"))
    group = irreps.group
    mask = chosen(7, 35, 16, jax.random.key(5))
    w = random_maximum(jax.random.key(6), irreps, 1, 16)

    def field(t, w, data):
        g = theory.value_and_gradient(w, theory.tables(group), data)[1]
        g = g / jnp.linalg.norm(g, axis=0)
        return g - w * jnp.sum(w * g, 0)

    @jax.jit
    def solved(w):
        data = theory.make_data(mask, theory.tables(group), kind, RIDGE)
        return flow.solve(field, w, np.array([0.0, 2.0]), data, rtol=1e-8, atol=1e-10).ys[-1]

    exact = solved(w)
    np.testing.assert_allclose(flowed(group, kind, 400, 0.005)(w, mask).w, exact, atol=0.01)
    coarse, fine = (flowed(group, kind, steps, step)(w, mask) for steps, step in ((300, 0.4), (1200, 0.1)))
    np.testing.assert_allclose(jnp.linalg.norm(coarse.w, axis=0), 1, rtol=1e-12)
    assert bool((coarse.energy >= climbed(group, kind)(w, mask)[0] * (1 - 1e-9)).all())
    assert float(jnp.mean(jnp.abs(jnp.sum(coarse.w * fine.w, 0)) > 0.99)) > 0.9
