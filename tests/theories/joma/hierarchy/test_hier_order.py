"""A short run of the network that learns a latent tree; the judges of the order of learning on made-up arrivals."""

import numpy as np
import pytest
import scipy.stats
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import trees
from jaxdyn.theories.joma.hierarchy import hier_order
from tests.theories.joma.helpers import panels, upheld


@pytest.fixture(scope="module")
def trained():
    grid = jd.grid(
        hier_order.Hierarchy, latents=["deep", "shallow"], spacing=8.0, depth=3, subtrees=2, vocabulary=6, hidden=8, lr=0.5
    )
    return jd.sweep(hier_order.trial, grid.replace(threshold=0.05, batch=64), seeds=range(2))


@pytest.mark.slow
def test_a_short_run(trained):
    never = float(trained.step.max()) + 1
    assert trained.sizes["height"] == 2
    assert bool((trained.status == 0).all())
    arrival = trained.measured_arrival
    assert float(arrival.min()) >= 1
    assert float(arrival.max()) == never  # a token never attends to itself
    assert np.all(np.diff(trained.mean_time.sel(latents="deep").isel(seed=0)) > 0)
    np.testing.assert_allclose(trained.mean_time.std("seed"), 0, atol=1e-9)  # the same for all upper layers
    assert bool((trained.predicted_time.std("seed") > 0.1).all())
    np.testing.assert_allclose(np.ptp(trained.predicted_time.sel(latents="shallow").values, axis=-1), 0, atol=1e-9)
    reached = (arrival < never).mean(("subtree", "query", "token")) * 4 / 3  # three of four tokens are others
    counts = xr.DataArray([1 / 3, 2 / 3], dims="height")
    np.testing.assert_allclose((trained.reached * counts).sum("height"), reached, rtol=1e-6)


def test_the_vocabulary_holds_all_classes():
    with pytest.raises(jd.UsageError, match="vocabulary=2, subtrees=4 are not allowed"):
        hier_order.Hierarchy(vocabulary=2)


@pytest.mark.parametrize(
    ("field", "steps"), [({}, 4), ({"lr": 1 / 64}, 16), ({"spacing": 3 / 16, "lr": 1 / 256}, 3), ({"lr": 9.0}, 1)]
)
def test_a_run_lasts_equally_long_in_time_at_every_rate(field, steps):
    assert int(hier_order.steps_between(hier_order.Hierarchy(**field))) == steps


CLAIMS = {c.id: c for c in hier_order.CLAIMS}


def runs(slope: float, seeds: int = 6, edges: int = 3) -> xr.Dataset:
    """Arrivals that depend on H with a slope (with latents), and do not (without), with noise and pairs that never arrive."""
    rng, height = np.random.default_rng(0), trees.cla_heights(edges)
    n = len(height)
    noise = rng.normal(size=(2, seeds, 3, n, n))
    arrival = 100 + np.array([slope, 0.0])[:, None, None, None, None] * height + noise
    arrival = np.where(arrival > 103, 201, arrival)
    arrival[..., np.arange(n), np.arange(n)] = 201  # a token is no context of its own
    dims = ("latents", "seed", "subtree", "query", "token")
    ancestor = np.broadcast_to(height, (2, seeds, n, n))
    data = {"measured_arrival": (dims, arrival), "ancestor": (("latents", "seed", "query", "token"), ancestor)}
    return xr.Dataset(data, {"latents": ["deep", "shallow"], "seed": np.arange(seeds)})


def test_rank_correlation_is_spearmans():
    ds = runs(0.7)
    off = ~np.eye(8, dtype=bool)
    values = hier_order.rank_correlation(ds)
    for i in range(2):
        for j in range(6):
            arrival = ds.measured_arrival.values[i, j][:, off].ravel()
            expected = scipy.stats.spearmanr(np.tile(trees.cla_heights(3)[off], 3), arrival).statistic
            assert values.values[i, j] == pytest.approx(expected, rel=1e-12)


def test_rank_correlation_is_nan_for_a_run_that_is_not_ok():
    ds = runs(0.7)
    values = hier_order.rank_correlation(ds.where(ds.seed != 2))
    assert np.all(np.isnan(values.sel(seed=2)))
    assert np.all(np.isfinite(values.drop_sel(seed=2)))


def test_judges_of_order():
    forward, backward, none = runs(0.7, 100), runs(-0.7, 100), runs(0.0, 100)
    assert upheld(hier_order.judge_order, forward)
    assert upheld(hier_order.judge_reverse, backward)
    for judge, other in ((hier_order.judge_order, backward), (hier_order.judge_reverse, forward)):
        assert not upheld(judge, other)
        assert not upheld(judge, none)
    for name, ds in (("joma.hier_order", forward), ("joma.hier_order_balanced", backward)):
        others = [c.breach for c in CLAIMS[name].controls.values() if callable(c.breach)]
        for other in (*others, *CLAIMS[name].rivals.values()):
            assert not upheld(CLAIMS[name].judge, other(ds))
    with pytest.raises(jd.Inconclusive, match="latents = shallow is needed"):
        hier_order.judge_order(forward.isel(latents=[0]))


def times(seeds: int = 8) -> xr.Dataset:
    """Arrivals as predicted, with a little noise, in trees of two depths, so that one lacks the last height."""
    dims, rng = ("latents", "depth", "rho", "seed", "height"), np.random.default_rng(0)
    mean = np.broadcast_to(np.array([90.0, 95.0, 100.0]), (2, 2, 2, seeds, 3)) * np.array([1.0, 0.8])[:, None, None]
    mean = np.where(np.arange(2)[:, None, None, None, None] == 0, mean, mean[..., :1])  # no order without latents
    own = mean * (1 + 0.06 * rng.normal(size=(seeds, 1)))
    own[:, 0, ..., 2] = np.nan
    measured = own * (1 + 0.002 * rng.normal(size=own.shape))
    data = {"predicted_time": own, "mean_time": mean + 0 * own, "measured_time": measured, "reached": 1 + 0 * own}
    ds = xr.Dataset({name: (dims, values) for name, values in data.items()})
    return ds.assign_coords(latents=["deep", "shallow"], depth=[3, 4], rho=[0.7, 0.9], seed=np.arange(seeds))


def test_judge_of_time():
    ds = times()
    assert upheld(hier_order.judge_time, ds)
    assert not upheld(hier_order.judge_time, ds.assign(predicted_time=1.07 * ds.predicted_time))
    one = ds.measured_time.copy(deep=True)
    one[0, 1, 0, :, 2] *= 1.04  # one tree, one height: more than .02 of the arrival at H = 1
    assert not upheld(hier_order.judge_time, ds.assign(measured_time=one))
    claim = CLAIMS["joma.hier_time"]
    changes = [c.breach for c in claim.controls.values() if callable(c.breach)]
    rivals = [rival for name, rival in claim.rivals.items() if "exchanged" not in name]
    assert len(changes) == 1 and len(rivals) == 4
    for change in (*changes, *rivals):
        assert not upheld(hier_order.judge_time, change(ds))
    assert panels(claim, ds)
    gate = next(c for c in hier_order.judge_time(ds.assign(reached=0.97 * ds.reached)) if c.gate)
    assert not gate.passed
    with pytest.raises(jd.Inconclusive):
        hier_order.judge_time(ds.isel(seed=slice(4)))


def test_padding_is_left_out_and_a_tree_without_runs_is_not():
    ds = times()
    cells = hier_order.unpadded((ds.measured_time / ds.predicted_time).assign_coords(height=[1, 2, 3]))
    assert cells.sizes == {"seed": 8, "cell": 2 * 2 * (2 + 3)} and bool(cells.notnull().all())
    with pytest.raises(jd.Inconclusive):
        hier_order.judge_time(ds.where((ds.depth == 4) | (ds.rho > 0.8)))
