"""Independent nodes against autodiff of what they climb, and the maxima they reach."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import nodes

GROUP = parse("5")
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
