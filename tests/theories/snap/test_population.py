"""The flow of the network against SciPy, and how its runs end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate

import jaxdyn as jd
from jaxdyn.status import UNCONVERGED
from jaxdyn.theories.snap import model, population, tasks


@pytest.mark.slow
def test_the_flow_is_the_networks(x64):
    task = tasks.weighted_task(jnp.array([[0.4, 1.0], [0.4, 1.0]]), jnp.array([1.0]))
    p, label, size = np.asarray(task.p), np.asarray(task.label), 9
    ratio, ts = 3.0, np.array([0.0, 1.0, 8.0])
    sol = jax.jit(lambda: population.population_flow(task, model.Params(jnp.float64(ratio), jnp.float64(1.0)), ts))()

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


@pytest.mark.slow
def test_a_height_that_is_not_reached_is_unconverged(flow_runs):
    assert (flow_runs["never"].status == UNCONVERGED).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"weights": (3.0, 2.0, 1.0)}, "they rise"),
    ],
)
def test_wrong_settings_are_refused(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        population.Population(**fields)
