"""The experiment of JoMA's Figure 2 against an independent run in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

import jaxdyn as jd
from jaxdyn.theories.joma.invariant import classes
from jaxdyn.theories.joma.invariant.fig2 import relative
from tests.theories.joma.helpers import inside


def test_class_data_is_the_recipe(x64):
    uniform = np.random.default_rng(0).random((20, 20))
    want = uniform / 2
    assert np.allclose(
        classes.class_data(jnp.asarray(uniform), jd.Code.of("random", classes.DATA)), want / want.sum(1, keepdims=True)
    )
    for i in range(20):
        for token in range(10):
            want[i, token] = np.exp(-((token - 10 * i / 20) ** 2) / 30)
    assert np.allclose(
        classes.class_data(jnp.asarray(uniform), jd.Code.of("gaussian", classes.DATA)), want / want.sum(1, keepdims=True)
    )


def numpy_run(x, w, z, tau, lr, ratio, steps):
    """Full-batch descent written from the formulas; returns logits, squares, and the moving estimate at every step."""
    m = x.shape[1]
    u = np.eye(len(w))[m]
    z0, v0, moved = z.copy(), w[:m].copy(), np.zeros(m)
    zs, squares, moving = [z], [(v0**2).sum(1)], [z]
    for _ in range(steps):
        e = x * np.exp(z / tau)
        b = e / e.sum(1, keepdims=True)
        f = np.concatenate([b, np.zeros((len(b), len(w) - m))], 1) + u
        g = (np.eye(len(x)) - scipy.special.softmax(f @ w, 1)) / len(x)
        pull = g @ w[:m].T
        old = (w[:m] ** 2).sum()
        z = z + lr * ratio / tau * (b * pull - b * (b * pull).sum(1, keepdims=True)).sum(0)
        w = w + lr * f.T @ g
        moved = moved + b.mean(0) * ((w[:m] ** 2).sum() - old)
        zs.append(z)
        squares.append((w[:m] ** 2).sum(1))
        moving.append(z0 + ratio / (2 * tau) * (squares[-1] - squares[0] - moved))
    return np.array(zs), np.array(squares), np.array(moving)


@pytest.fixture(scope="module")
def short():
    """Forty steps from a start that is larger than the paper's, so that all terms matter; every step is recorded."""
    grid = jd.grid(classes.Classes, data=["gaussian", "random"], optimizer=["gd", "adam"], init=0.5, lr=0.5, ratio=2.0, every=1.0)
    return jd.sweep(classes.fig2_trial, grid, seeds=2)


@pytest.mark.parametrize("kind", ["gaussian", "random"])
def test_training_is_that_of_an_independent_run(short, kind):
    ds = short.sel(data=kind, optimizer="gd", seed=1)
    with jax.enable_x64(True):
        s = inside(classes.Classes(data=kind, init=0.5))
        params, _, batch = classes.build(s, jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), 1))
    x, w, z = (np.asarray(a) for a in (batch.x, params.w, params.z[0]))
    zs, squares, moving = numpy_run(x, w, z, 0.5, 0.5, 2.0, classes.SAMPLES)
    assert np.allclose(ds.measured_z, zs, atol=1e-12)
    assert np.allclose(ds.square_term, 2 * squares, atol=1e-12)
    assert np.allclose(ds.predicted_z.sel(form="moving"), moving, atol=1e-12)
    constant = z + 2 * ((squares - squares[0]) - x.mean(0) * (squares - squares[0]).sum(1, keepdims=True))
    assert np.allclose(ds.predicted_z.sel(form="constant"), constant, atol=1e-12)
    assert np.abs(zs[-1] - z).max() > 0.1


def test_exact_bookkeeping_is_exact_for_descent_only(short):
    error = relative(short.sel(form="exact")).isel(record=-1)
    assert float(error.sel(optimizer="gd").max()) < 1e-13
    assert float(error.sel(optimizer="adam").min()) > 1e-3


def test_the_dimensions_must_hold_orthonormal_embeddings():
    with pytest.raises(jd.UsageError, match="dim=20, tokens=20 are not allowed"):
        classes.Classes(dim=20)
