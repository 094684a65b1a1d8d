"""Early and late bias: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import jaxdyn as jd
from jaxdyn import flow
from jaxdyn.theories.lyu import dichotomy_path, dynamics, model
from jaxdyn.theories.lyu import dynamics as theory
from jaxdyn.theories.lyu.dichotomy_path import Switch, trial

# The entropic path against its two ends and a minimiser, the least-norm programme against SciPy's solver.


def drawn(seed=0, count=6, inputs=10, active=2):
    return model.sample(jax.random.key(seed), count, inputs, active)


def test_path_interpolates_and_minimises_the_entropy(x64):
    data, scales = drawn(), jnp.array([5.0, 1.0, 0.3])
    path = np.asarray(jax.jit(theory.path)(data, scales))
    np.testing.assert_allclose(path @ np.asarray(data.x).T, np.broadcast_to(data.y, (3, 6)), atol=1e-10)
    null = np.linalg.svd(np.asarray(data.x))[2][6:]

    def entropy(c, scale, w):
        w = w + c @ null
        r = w / (2 * scale**2)
        return np.sum(w * np.arcsinh(r) - 2 * scale**2 * np.sqrt(1 + r**2)), null @ np.arcsinh(r)

    for scale, w in zip(np.asarray(scales), path, strict=True):
        best = scipy.optimize.minimize(entropy, np.full(4, 0.1), (scale, w), jac=True, tol=1e-9)
        np.testing.assert_allclose(best.x, 0, atol=1e-5)


def test_ends_of_the_path_are_the_two_predictors(x64):
    data = drawn(1)
    x, y = np.asarray(data.x), np.asarray(data.y)
    path = np.asarray(theory.path(data, jnp.exp(jnp.linspace(4.0, -12.0, 81))))
    np.testing.assert_allclose(theory.kernel(data), np.linalg.pinv(x) @ y, atol=1e-12)
    np.testing.assert_allclose(path[0], np.linalg.pinv(x) @ y, atol=1e-5)
    program = scipy.optimize.linprog(np.ones(20), A_eq=np.concatenate([x, -x], 1), b_eq=y)
    np.testing.assert_allclose(path[-1], program.x[:10] - program.x[10:], atol=1e-2)


def test_small_first_scale_is_reached_without_a_path(x64):
    data = drawn(2)
    direct = theory.path(data, jnp.array([1e-2]))[0]
    slow = theory.path(data, jnp.exp(jnp.linspace(2.0, np.log(1e-2), 60)))[-1]
    np.testing.assert_allclose(direct, slow, atol=1e-9)


def test_crossing_is_the_last_fall_between_records(x64):
    times = jnp.array([0.0, 1.0, 2.0, 3.0])
    assert float(theory.crossing(times, jnp.array([4.0, 1.0, 3.0, 1.0]), 2.0)) == pytest.approx(2.5)
    assert float(theory.crossing(times, jnp.array([4.0, 4.0, 4.0, 4.0]), 2.0)) == 3.0
    assert float(theory.crossing(times, jnp.array([4.0, 1.0, 1.0, 1.0]), 2.0)) == pytest.approx(2 / 3)


@pytest.mark.slow
def test_least_one_norm_is_scipys_and_the_end_of_the_path(x64):
    for seed, active in ((0, 2), (1, 5), (2, 9)):  # few active weights are recovered, many are not
        data = model.sample(jax.random.key(seed), 8, 14, active)
        found = np.asarray(jax.jit(dynamics.least_one_norm)(data))
        x, y = np.asarray(data.x), np.asarray(data.y)
        program = scipy.optimize.linprog(np.ones(28), A_eq=np.concatenate([x, -x], 1), b_eq=y)
        np.testing.assert_allclose(found, program.x[:14] - program.x[14:], atol=1e-4)
        np.testing.assert_allclose(x @ found, y, atol=1e-8)
        end = theory.path(data, jnp.exp(jnp.linspace(4.0, -16.0, 101)))[-1]
        assert np.abs(found).sum() - 1e-4 < np.abs(end).sum() < 1.01 * np.abs(found).sum()


# The diagonal network and its gradient flow against NumPy and SciPy.


def test_samples_are_made_by_a_sparse_weight(x64):
    data = drawn()
    assert np.count_nonzero(data.truth) == 2 and set(np.abs(data.truth)) == {0.0, 1.0}
    np.testing.assert_allclose(data.x @ data.truth, data.y)
    assert np.var(np.asarray(drawn(count=400, inputs=40).x)) == pytest.approx(2 / 40, rel=0.05)


def test_loss_is_the_stated_one_and_the_output_starts_at_zero(x64):
    data, start = drawn(), model.init(3.0, 10)
    assert not np.any(model.weight(start))
    u, v = np.arange(10) / 5, np.ones(10) / 3
    residual = np.asarray(data.x) @ (u**2 - v**2) - np.asarray(data.y)
    slow = np.mean(residual**2) + 0.05 * (u @ u + v @ v)
    assert float(model.loss(model.Params(jnp.asarray(u), jnp.asarray(v)), data, 0.1)) == pytest.approx(slow, rel=1e-13)


@pytest.mark.slow
def test_flow_is_scipys_and_its_product_decays(x64):
    data, lam, alpha = drawn(), 0.05, 2.0
    x, y, times = np.asarray(data.x), np.asarray(data.y), np.linspace(0, 40, 9)

    def field(_, theta):
        u, v = theta[:10], theta[10:]
        g = 2 / len(y) * x.T @ (x @ (u**2 - v**2) - y)
        return np.concatenate([-lam * u - 2 * u * g, -lam * v + 2 * v * g])

    slow = scipy.integrate.solve_ivp(field, (0, 40), np.full(20, alpha), t_eval=times, rtol=1e-10, atol=1e-12, method="LSODA").y
    found = flow.gradient_flow(model.loss, model.init(alpha, 10), times, data, lam, solver="kvaerno5", rtol=1e-8)
    np.testing.assert_allclose(np.concatenate(found.ys, 1), slow.T, rtol=2e-6)
    expected = np.broadcast_to(alpha**2 * np.exp(-2 * lam * times)[:, None], (9, 10))
    np.testing.assert_allclose(found.ys.u * found.ys.v, expected, rtol=2e-6)


# The judges of the switch and of the path, on small runs.


@pytest.mark.parametrize("fields", [{"active": 12}, {"samples": 24}])
def test_data_that_determine_the_weight_are_refused(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: active < samples < inputs"):
        Switch(**fields)


@pytest.fixture(scope="module")
def small():
    grid = jd.grid(Switch, alpha=[4.0, 8.0, 16.0], decay=[0.01, 0.005], samples=10, inputs=16, active=1, records=48)
    return jd.sweep(trial, grid, seeds=8)


def rejects(judge, ds, name, factor):
    return not all(c.passed for c in judge(jd.scaled(**{f"predicted_{name}": factor})(ds)))


@pytest.mark.slow  # a verification runs the same trial, at its full size
def test_judges_hold_and_reject_a_tenth(small):
    for name, judge in (
        ("switch", dichotomy_path.judge_switch),
        ("error", dichotomy_path.judge_path),
        ("product", dichotomy_path.judge_path),
    ):
        assert all(c.passed for c in judge(small)), [c for c in judge(small) if not c.passed]
        assert rejects(judge, small, name, 0.9) and rejects(judge, small, name, 1.1)


@pytest.mark.slow
def test_judges_say_when_data_are_too_few(small):
    with pytest.raises(jd.Inconclusive, match="at least 3 values of alpha"):
        dichotomy_path.judge_switch(small.isel(alpha=slice(2)))
    with pytest.raises(jd.Inconclusive, match="at least 2 values of decay"):
        dichotomy_path.judge_path(small.isel(decay=[0]))
