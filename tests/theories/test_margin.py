"""Max-margin token selection: network, equations and judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from scipy.optimize import minimize

import jaxdyn as jd
from jaxdyn.theories.margin import dynamics, factored, model, vector_matrix
from jaxdyn.theories.margin.factored import Factored, trial
from jaxdyn.theories.margin.vector_matrix import Select
from jaxdyn.theories.margin.vector_matrix import trial as select_trial

# Largest margins and least nuclear norms against solvers of another kind, cases by hand, and cases without a solution.


def primal_dual(a: np.ndarray, steps: int) -> np.ndarray:
    """Chambolle and Pock's method: singular values are shrunk, multipliers climb."""
    w, b = np.zeros(a.shape[1:]), np.zeros(len(a))
    size = 0.99 / np.linalg.norm(a.reshape(len(a), -1), 2)
    for _ in range(steps):
        u, s, v = np.linalg.svd(w + size * np.einsum("m,mij->ij", b, a))
        new = (u * np.maximum(s - size, 0)) @ v
        b = np.maximum(b + size * (1 - np.einsum("mij,ij->m", a, 2 * new - w)), 0)
        w = new
    return w


@pytest.mark.thinned
@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.slow), 1, 2])
def test_against_a_first_order_method(x64, seed):
    a = np.random.default_rng(seed).normal(size=(5, 3, 3)) + 0.3
    solved = dynamics.least_nuclear(jnp.asarray(a))
    assert float(solved.gap) < 1e-5
    assert np.all(np.einsum("mij,ij->m", a, solved.w) >= 1 - 1e-9)
    other = primal_dual(a, 20_000)
    np.testing.assert_allclose(np.sum(solved.singular), np.linalg.norm(other, "nuc"), rtol=1e-5)
    np.testing.assert_allclose(solved.w, other, atol=1e-3)


@pytest.mark.slow
def test_by_hand_and_impossible(x64):
    """One constraint: the least value is 1 over the operator norm, on the first singular vectors."""
    one = np.diag([2.0, 0.5])
    solved = dynamics.least_nuclear(jnp.asarray(one[None]))
    np.testing.assert_allclose(solved.w, np.diag([0.5, 0.0]), atol=1e-6)
    assert not float(dynamics.least_nuclear(jnp.asarray(np.stack([one, -one]))).gap) < 1e-2


def test_differences():
    features = np.arange(12.0).reshape(2, 3, 2)
    found = dynamics.differences(jnp.asarray(features), jnp.asarray([1, 2]))
    expected = [features[0, 1] - features[0, 0], features[0, 1] - features[0, 2]]
    expected += [features[1, 2] - features[1, 0], features[1, 2] - features[1, 1]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(4))
def test_against_scipy(x64, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(9, 4)) + 1.2
    solved = dynamics.largest_margin(jnp.asarray(a))
    rows = [{"type": "ineq", "fun": lambda p: a @ p - 1, "jac": lambda p: a}]
    other = minimize(lambda p: p @ p / 2, np.ones(4), jac=lambda p: p, constraints=rows, method="SLSQP", options={"ftol": 1e-14})
    assert other.success == (float(solved.error) < 1e-6)
    if other.success:
        np.testing.assert_allclose(solved.p, other.x, rtol=1e-5, atol=1e-6)


def test_by_hand_and_impossible_of_svm(x64):
    solved = dynamics.largest_margin(jnp.asarray([[2.0, 0.0], [0.0, 0.5]]))
    np.testing.assert_allclose(solved.p, (0.5, 2.0), rtol=1e-7)
    np.testing.assert_allclose(solved.multipliers, (0.25, 4.0), rtol=1e-6)
    assert not float(dynamics.largest_margin(jnp.asarray([[1.0, 0.0], [-1.0, 0.0]])).error) < 1e-3


# The direction of descent against automatic differentiation, and far out, where the naive form cancels, against exact sums.

direction = jax.jit(model.direction)  # as one program: by itself every operation would be compiled


def data(seed=0, n=3, t=4, d=5):
    """Random features and scores."""
    rng = np.random.default_rng(seed)
    return model.Data(jnp.asarray(rng.normal(size=(n, t, d))), jnp.asarray(rng.uniform(size=(n, t))))


def test_direction_is_that_of_the_gradient(x64):
    d, p = data(), jnp.asarray(np.random.default_rng(1).normal(size=5))
    gradient = np.asarray(jax.jit(jax.grad(model.loss))(p, d))
    np.testing.assert_allclose(direction(p, d), -gradient / np.linalg.norm(gradient), rtol=1e-10)
    np.testing.assert_allclose(jax.jit(model.step)(p, d, 0.3), p - 0.3 * gradient / np.linalg.norm(gradient), rtol=1e-10)


def test_loss_by_hand(x64):
    d = model.Data(jnp.asarray([[[1.0], [0.0]]]), jnp.asarray([[2.0, 0.0]]))
    a = 1 / (1 + np.exp(-0.5))
    np.testing.assert_allclose(jax.jit(model.loss)(jnp.asarray([0.5]), d), np.log1p(np.exp(-2 * a)), rtol=1e-12)


def test_no_cancellation_far_out(x64):
    features = [[[3, 0], [0, 1], [1, 1]], [[0, 2], [1, 0], [0, 1]]]
    d = model.Data(jnp.asarray(features, jnp.float64), jnp.asarray([[1.0, 0.25, 0.25], [1.0, 0.25, 0.25]]))
    p = jnp.asarray([60.0, 60.0])
    # two scores only: each sequence pulls along best minus other, weighted by e^{p.(other - best)}
    pull = np.array([1.0, 1.0])  # both margins are 1, so that sigma(-m) is common
    exponents = np.array([[-120.0, -60.0], [-60.0, -60.0]]) + 60.0
    differences = np.array([[[3, -1], [2, -1]], [[-1, 2], [0, 1]]], float)
    total = np.einsum("n,nt,ntd->d", pull, np.exp(exponents), differences)
    np.testing.assert_allclose(direction(p, d), total / np.linalg.norm(total), rtol=1e-12)
    assert np.linalg.norm(jax.jit(jax.grad(model.loss))(10 * p, d)) == 0.0
    np.testing.assert_allclose(np.linalg.norm(direction(10 * p, d)), 1.0, rtol=1e-12)


# Keys and queries apart turn to the least nuclear norm, more than one matrix does; the judge on directions made by hand.


@pytest.mark.slow
def test_directions():
    ds = jd.sweep(trial, jd.grid(Factored, every=320), 4)
    assert int(ds.status.max()) == 0
    assert float(ds.assumed_gap.max()) < 1e-4 and float(ds.assumed_selected.min()) == 1
    np.testing.assert_allclose((ds.measured_direction**2).sum(["row", "column"]), 1, rtol=1e-12)
    cosine = (ds.measured_direction * ds.predicted_direction).sum(["row", "column"])
    assert bool((cosine.isel(record=-1) > ds.to_frobenius.isel(record=-1)).all())
    np.testing.assert_allclose(ds.singular.sum("rank"), 1, rtol=1e-12)
    values = np.linalg.svd(ds.measured_direction.isel(record=-1).transpose("seed", "row", "column"), compute_uv=False)
    np.testing.assert_allclose(ds.singular.transpose("seed", "rank"), values / values.sum(-1, keepdims=True), rtol=1e-7, atol=1e-12)


def turning(angle: float, other: float = 0.5, runs: int = 32) -> xr.Dataset:
    """Runs whose direction is at ``angle`` from the predicted one at first, and at a tenth of it at the end."""
    angles = angle * np.array([1.0, 0.1]) * np.linspace(0.9, 1.1, runs)[:, None]
    w = np.stack([np.cos(angles), np.sin(angles)], -1)[..., None, :]
    return xr.Dataset(
        {
            "measured_direction": (("seed", "record", "row", "column"), w),
            "predicted_direction": (("seed", "row", "column"), np.broadcast_to([[1.0, 0.0]], (runs, 1, 2))),
            "to_frobenius": (("seed", "record"), np.full((runs, 2), other)),
        },
        coords={"seed": np.arange(runs)},
    )


@pytest.mark.parametrize(
    "ds, passed",
    [
        (turning(0.5), [True, True, True]),
        (turning(0.5, other=0.9999), [True, False, True]),
        (turning(0.5).isel(record=[0, 0]), [False, True, False]),
    ],
)
def test_judge(ds, passed):
    assert [c.passed for c in factored.judge(ds)] == passed


# Descent on few sequences turns to the largest margin; breaches do not; a vector stays in its own entries.


@pytest.mark.slow
def test_select_directions():
    ds = jd.sweep(select_trial, jd.grid(Select, weights=["vector", "matrix"], blended=[0.0, 1.0]), 3)
    assert int(ds.status.max()) == 0
    plain, blended = (ds.sel(blended=b) for b in (0.0, 1.0))
    inside = plain.assumed_selected == 1
    assert bool(inside.any("seed").all())
    assert float(plain.away.isel(record=-1).where(inside).max()) < 1e-3
    assert float(plain.assumed_optimality.max()) < 1e-6 < float(blended.assumed_optimality.min())
    vector = plain.sel(weights="vector").measured_direction.values.reshape(3, 6, 6)
    assert np.all(vector[:, :, 1:] == 0)
    np.testing.assert_allclose(np.linalg.norm(vector, axis=(1, 2)), 1, rtol=1e-12)


@pytest.mark.parametrize("wrong", [{"other": 0.9, "spread": 0.1}, {"reversed": 0.5}])
def test_scores_and_switches_that_are_refused(wrong):
    with pytest.raises(jd.UsageError, match="not allowed"):
        Select(**wrong)


# Sampled sequences: one optimal token each, scores in their range, vectors in the first column; breaches as they are named.

KEY = jax.random.key(0)


@pytest.mark.slow
def test_sampled(x64):
    s = Select(spread=0.1)
    data, best = model.sample(s, KEY, True)
    assert data.features.shape == (4, 5, 36)
    np.testing.assert_array_equal(np.argmax(data.scores, -1), best)
    rest = np.sort(data.scores, -1)[:, :-1]
    assert np.all((rest > 0.1) & (rest < 0.3))
    assert np.all(np.linalg.matrix_rank(data.features.reshape(20, 6, 6)) == 1)
    vector, _ = model.sample(s, KEY, False)
    assert np.all(vector.features.reshape(4, 5, 6, 6)[..., 1:] == 0)


@pytest.mark.slow
def test_breaches(x64):
    data, best = model.sample(Select(reversed=1.0), KEY, True)
    assert list(np.argmax(data.scores, -1) == best) == [False, True, True, True]
    data, best = model.sample(Select(blended=1.0), KEY, False)
    first = np.delete(data.features[0], int(best[0]), 0)
    np.testing.assert_allclose(data.features[0, best[0]], jnp.mean(first, 0), rtol=1e-12)


@pytest.mark.parametrize("topic", [vector_matrix, factored])
def test_figures_of_many_runs_have_few_lines(topic):
    """Of 4,096 runs at most 200 lines of a kind are drawn."""
    rng, runs = np.random.default_rng(0), ("spread", "seed")
    size = np.sort(rng.uniform(1, 300, (2, 2048, 8)), -1)
    cosine = 1 - 3 / size**2
    direction = np.stack([cosine, np.sqrt(1 - np.clip(cosine, -1, 1) ** 2)], -1)
    ds = xr.Dataset(
        {
            "status": (runs, np.zeros((2, 2048), int)),
            "assumed_selected": (runs, np.where(np.arange(2048) % 2, 1.0, 0.5) * np.ones((2, 1))),
            "size": ((*runs, "record"), size),
            "norm": ((*runs, "record"), size),
            "away": ((*runs, "record"), 1 - cosine),
            "to_frobenius": ((*runs, "record"), cosine - 0.1),
            "measured_direction": ((*runs, "record", "row", "column"), direction[..., None, :]),
            "predicted_direction": ((*runs, "row", "column"), np.ones((2, 2048, 1, 1)) * [1.0, 0.0]),
            "singular": ((*runs, "rank"), np.ones((2, 2048, 2)) / 2),
            "least": ((*runs, "rank"), np.ones((2, 2048, 2)) / 2),
        }
    )
    fig = Figure()
    topic.plot(ds, fig)
    left = fig.axes[0]
    assert len(left.lines) <= 401 and left.get_xscale() == left.get_yscale() == "log"
    said = [text for text in left.get_legend_handles_labels()[1] if "200 of" in text]
    assert len(said) == 2, said
