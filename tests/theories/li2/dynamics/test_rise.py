"""The flow of single nodes in the network's time: scipy on a small group, the trainer's own gradient, and the trainer itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.dynamics import nodes, rise
from tests.theories.li2.dynamics.test_nodes import pull

GROUP = parse("5")
KNOWN = np.arange(25) % 4 > 0
RATE, DECAY, MOMENTUM = 0.4, 0.02, 0.8


def start(known=KNOWN):
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
        p, y = start()
        by = rise.Trainer(RATE, DECAY, MOMENTUM, inertia)
        sol = rise.rise(p, y, jnp.asarray(ts), by, tolerance=1e-8)
        mine = np.concatenate([np.asarray(leaf).reshape(4, -1) for leaf in sol.ys[0]], 1)
        theirs = scipy_rise(*(np.asarray(a) for a in (*p, y)), ts, inertia)[:, 0]
    np.testing.assert_allclose(mine, theirs, atol=1e-5)
    assert np.max(np.abs(mine[-1] - mine[0])) > 0.1


def test_outputs_are_centred_and_those_of_the_training_pairs():
    with jax.enable_x64(True):
        p, y = start()
        w, v = (np.asarray(a) for a in p)
        out = np.array([(w[n // 5] + w[5 + n % 5]) ** 2 @ v for n in range(25) if KNOWN[n]])
        size = np.linalg.norm(out - out.mean(1, keepdims=True)) / np.linalg.norm(np.asarray(y))
        assert float(rise.outputs(p, y, "square")) == pytest.approx(size, rel=1e-12)


@pytest.mark.slow
def test_the_solve_stops_where_outputs_are_no_longer_small():
    with jax.enable_x64(True):
        p, y = start()
        sol = rise.rise(p, y, jnp.linspace(0, 1000, 3), rise.Trainer(RATE, 0.0, MOMENTUM), tolerance=1e-6)
        assert bool(sol.event) and not np.isfinite(sol.ts[-1])
        assert float(rise.outputs(sol.y_end[0], y, "square")) == pytest.approx(rise.END, rel=1e-3)


@pytest.mark.slow
def test_the_force_is_that_of_the_trainer_where_outputs_vanish():
    """On all pairs, where centring over samples and over outputs agree; outputs are of third order in the weights."""
    s = training.Training(group="5", hidden=6, share=0.8, dtype="float64")
    with jax.enable_x64(True):
        d = training.data(s, jax.random.key(0))._replace(count=jnp.asarray(25))
        p, y = start(np.ones(25, bool))
        p = jax.tree.map(lambda a: 1e-3 * a, p)
        slope = training.gradient(p, d, s)
        force = rise.force(p, y, 0.0, "square")
        for mine, theirs in zip(force, slope, strict=True):
            theirs = np.asarray(theirs)
            np.testing.assert_allclose(mine, -theirs, atol=1e-6 * np.abs(theirs).max())


@pytest.mark.slow
def test_momentum_is_inertia_of_order_one_in_the_rate():
    """Heavy-ball descent in plain numpy comes closer to the flow as the rate falls, in proportion."""
    errors = []
    with jax.enable_x64(True):
        p, y = start()
        w0, v0, yn = (np.asarray(a) for a in (*p, y))
        for parts in (4, 8, 16):  # steps per unit of time; the drag per step falls with them, as the rate does
            rate, drag = RATE / parts**2, (1 - MOMENTUM) / parts
            at, moving = [w0.copy(), v0.copy()], [0 * w0, 0 * v0]
            for _ in range(4 * parts):
                force = [2 / KNOWN.sum() * g for g in pull(*at, yn)]
                moving = [(1 - drag) * m + g for m, g in zip(moving, force, strict=True)]
                at = [a + rate * m for a, m in zip(at, moving, strict=True)]
            sol = rise.rise(p, y, jnp.array([0.0, 4.0]), rise.Trainer(RATE, 0.0, MOMENTUM), tolerance=1e-8)
            errors.append(np.abs(np.asarray(sol.ys[0].w[-1]) - at[0]).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    assert np.all((ratios > 1.7) & (ratios < 2.4)), errors
