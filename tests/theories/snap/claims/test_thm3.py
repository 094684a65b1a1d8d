"""Theorem 3 and the reduced dynamics in the network's own flow: the flow against SciPy, and what the judges must reject."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import jaxdyn as jd
from jaxdyn.status import UNCONVERGED
from jaxdyn.theories.snap import model
from jaxdyn.theories.snap.claims import memory
from jaxdyn.theories.snap.claims import thm3 as theorem3

CLAIMS = {c.id: c for m in (theorem3, memory) for c in m.CLAIMS}


def passes(judge, ds, form=None):
    with np.errstate(all="ignore"):
        return all(c.passed for c in judge(ds if form is None else ds.sel(form=form)))


def test_the_classes(x64):
    task = theorem3.classes_task(jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0]))
    p = np.asarray(task.p)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_allclose(4 * p[0, :5], [1, 1, 2, 0, 0])
    np.testing.assert_allclose(8 * p[1, :5], [1, 0, 0, 3, 4])
    assert p.shape == (2, 9) and (p[:, 5:] == 0).all()
    np.testing.assert_array_equal(task.label, [7, 8])
    np.testing.assert_array_equal(task.query, [0, 1])


def test_the_flow_is_the_networks(x64):
    task = theorem3.classes_task(jnp.array([[0.4, 1.0], [0.4, 1.0]]), jnp.array([1.0]))
    p, label, size = np.asarray(task.p), np.asarray(task.label), 9
    ratio, ts = 3.0, np.array([0.0, 1.0, 8.0])
    sol = jax.jit(lambda: theorem3.population_flow(task, model.Params(jnp.float64(ratio), jnp.float64(1.0)), ts))()

    def field(t, state):
        y, z = state[: size * size].reshape(size, size), state[size * size :].reshape(2, size)
        dy, dz = np.zeros_like(y), np.zeros_like(z)
        for n in range(2):
            c = p[n] * np.exp(z[n])
            f = c / np.linalg.norm(c)
            alpha = np.exp(f @ y)
            error = np.eye(size)[label[n]] - alpha / alpha.sum()
            g = y @ error
            dy += 0.5 * np.outer(f, error)
            dz[n] = 0.5 * f * (g - f * (f @ g))
        return np.concatenate([ratio * dy.ravel(), dz.ravel()])

    exact = scipy.integrate.solve_ivp(field, (0, 8), np.zeros(size * (size + 2)), "DOP853", ts, rtol=1e-10, atol=1e-12).y.T
    np.testing.assert_allclose(sol.ys.y.reshape(3, -1), exact[:, : size * size], atol=1e-7)
    np.testing.assert_allclose(sol.ys.z.reshape(3, -1), exact[:, size * size :], atol=1e-7)
    assert not bool(sol.event)


@pytest.fixture(scope="module")
def flows():
    grid = jd.grid(theorem3.Population, ratio=[0.1, 1.0, 10.0], horizon=1e4)
    breaches = {"main": {}, "slow": {"slow": 100.0}, "never": {"height": 50.0}}
    return {name: jd.sweep(theorem3.trial, grid.replace(**fields), 1) for name, fields in breaches.items()}


def test_the_published_residuals(flows):
    ds = flows["main"]
    np.testing.assert_allclose(ds.top, 0.2, atol=1e-9)
    residual = theorem3.residual(ds).isel(other=0, seed=0)
    np.testing.assert_allclose(residual, [theorem3.PUBLISHED[r] for r in ds.ratio.values], atol=2e-3)


def test_judge_of_theorem_3(flows):
    ds = flows["main"]
    assert passes(theorem3.judge_theorem3, ds)
    assert not passes(theorem3.judge_theorem3, flows["slow"])
    assert not passes(theorem3.judge_theorem3, theorem3.with_common(ds))
    for factor in (0.9, 1.1):
        assert not passes(theorem3.judge_theorem3, ds.assign(predicted_gain=factor * ds.predicted_gain))
    with pytest.raises(jd.Inconclusive, match="three values"):
        theorem3.judge_theorem3(ds.isel(ratio=slice(2)))


def test_a_height_that_is_not_reached_is_told(flows):
    assert (flows["never"].status == UNCONVERGED).all()


@pytest.fixture(scope="module")
def rare():
    base = jd.grid(memory.Rare, common=[0.03], ratio=[0.1, 1.0], classes=2, distinct=2)
    return {name: jd.sweep(memory.trial, base.replace(**f), 2) for name, f in {"main": {}, "crowd": {"crowd": 50.0}}.items()}


def test_judges_of_the_memory(rare):
    main, crowd = rare["main"], rare["crowd"]
    assert passes(memory.judge_early, main, "instant") and passes(memory.judge_memory, main, "memory")
    assert not passes(memory.judge_early, main, "printed") and not passes(memory.judge_memory, main, "instant")
    assert not passes(memory.judge_early, crowd, "instant") and not passes(memory.judge_memory, crowd, "memory")
    assert not passes(memory.judge_memory, memory.without_memory(main.sel(form="memory")))
    for factor in (0.9, 1.1):
        distorted = main.assign(predicted_z=factor * main.predicted_z)
        assert not passes(memory.judge_early, distorted, "instant") and not passes(memory.judge_memory, distorted, "memory")


def test_figures_draw(flows, rare):
    from matplotlib.figure import Figure

    for claim, ds in (("snap.theorem3", flows["main"]), ("snap.memory", rare["main"])):
        fig = Figure()
        CLAIMS[claim].plot(ds, fig)
        assert fig.axes


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: theorem3.Population(distinct=1), "distinct >= 2"),
        (lambda: theorem3.Population(ratio=0.0), "positive"),
        (lambda: memory.Rare(classes=1), "classes >= 2"),
        (lambda: memory.Rare(common=0.0), "positive"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
