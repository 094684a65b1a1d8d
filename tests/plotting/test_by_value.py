"""Series named by their values: random ones of every kind, against what they were drawn from."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.plotting.by_value import search

TRIALS = 100


def data(rng, cells=3, seeds=5, steps=6, fractions=False):
    shape = (cells, seeds, steps)
    values = rng.integers(1, 40, shape) / rng.integers(3, 40, shape) if fractions else rng.normal(size=shape)
    dims = ("lr", "seed", "t")
    coords = {"lr": 0.1 * 2.0 ** np.arange(cells), "seed": np.arange(seeds), "t": 10.0 * np.arange(steps)}
    own = {"measured_x": (dims, values), "recorded_y": (dims[:2], rng.normal(size=shape[:2]))}
    return xr.Dataset(own | {"status": (dims[:2], np.zeros(shape[:2], int))}, coords)


def one(ds, x, y):
    return search([(0, np.stack([np.asarray(x, float), np.asarray(y, float)], 1))], ds)[0]


@pytest.mark.parametrize("seeds", [3, 5, 7])
def test_summaries_are_of_no_run(seeds):
    rng = np.random.default_rng(seeds)
    for _ in range(TRIALS):
        ds = data(rng, seeds=seeds)
        x, t = ds.measured_x, ds.t.values
        if rng.random() < 0.5:  # the curves of seeds never cross: each quantile is one of them
            ds["measured_x"] = x = (x.isel(t=0) * (1 + ds.t / 10)).transpose("lr", "seed", "t")
        for level in (0.0, 0.25, 0.5, 1.0):
            some = x.quantile(level, "seed")
            assert one(ds, ds.lr, some.isel(t=-1)) is None
            assert one(ds, np.repeat(ds.lr.values, t.size), some.values.ravel()) is None
            assert all(one(ds, t, some.isel(lr=i)) is None for i in range(3))
            assert one(ds, t, x.quantile(level, ("lr", "seed"))) is None
            assert one(ds, t, x.isel(seed=0).quantile(level, "lr")) is None
        assert one(ds, ds.lr, x.mean("seed").isel(t=0)) is None and one(ds, t, x.mean(("lr", "seed"))) is None
        median = x.median("seed").isel(lr=1)
        runs = [(0, np.stack([t, own], 1)) for own in x.isel(lr=1).values]
        assert search([*runs, (0, np.stack([t, median], 1))], ds)[-1] is None  # also above the lines of all runs


def test_a_theory_at_simple_fractions_is_of_no_run():
    rng = np.random.default_rng(0)
    k = np.arange(1.0, 7)
    for _ in range(TRIALS):
        ds = data(rng, cells=6, seeds=2, steps=4, fractions=True).assign_coords(lr=k)
        assert one(ds, k, 1 / k) is None and one(ds, ds.t, 1 / (1 + np.arange(4.0))) is None


def test_a_scatter_of_all_runs_in_any_order_is_named():
    rng = np.random.default_rng(1)
    for _ in range(TRIALS):
        ds = data(rng)
        lr, y = np.repeat(ds.lr.values, 5), ds.recorded_y.values.ravel()
        order = rng.permutation(15)
        for x in (lr, np.log(lr), ds.measured_x.isel(t=2).values.ravel(), np.tile(np.arange(5), 3)):
            np.testing.assert_array_equal(one(ds, x[order], y[order]), order)
            np.testing.assert_array_equal(one(ds, y[order], x[order]), order)
        np.testing.assert_array_equal(one(ds, np.arange(15), y[order]), order)
        whole = ds.measured_x.values.ravel()
        np.testing.assert_array_equal(one(ds, np.tile(ds.t.values, 15), whole), np.repeat(np.arange(15), 6))
        gap = np.where(order == 3, np.nan, y[order])
        assert one(ds, lr[order], gap) is None  # a judged run is missing
        bad = ds.assign(status=ds.status.copy(data=np.where(np.arange(15) == 3, 1, 0).reshape(3, 5)))
        np.testing.assert_array_equal(one(bad, lr[order], gap), np.where(order == 3, -1, order))


def test_points_whose_coordinates_disagree_are_of_no_run():
    rng = np.random.default_rng(2)
    for _ in range(TRIALS):
        ds = data(rng)
        y, x = ds.recorded_y.values, ds.measured_x.isel(t=0).values
        other = np.roll(x, 1, 0)
        for wrong in (np.round(other, 1), np.round(other, 2), other, rng.normal(size=x.shape)):
            assert one(ds, y.ravel(), wrong.ravel()) is None and one(ds, wrong.ravel(), y.ravel()) is None
        assert one(ds, y[0], np.round(x[1], 1)) is None
        assert one(ds, np.repeat(np.roll(ds.lr.values, 1), 5), y.ravel()) is None  # a cell's own value, but another's


def test_curves_of_runs_are_named_where_all_are_drawn_or_where_they_cross_others():
    rng = np.random.default_rng(3)
    for _ in range(TRIALS):
        ds = data(rng, steps=12)
        cell = ds.measured_x.isel(lr=1).values
        found = search([(0, np.stack([ds.t.values, own], 1)) for own in cell], ds)
        assert [own.tolist() for own in found] == [[5], [6], [7], [8], [9]]
        assert one(ds, np.arange(12), cell[2]).tolist() == [7]
        assert one(ds, rng.normal(size=12), cell[2]) is None and one(ds, ds.t[:2], cell[2][:2]) is None
        assert one(ds, ds.t, np.where(np.arange(12) == 4, np.round(cell[2], 2), cell[2])) is None  # every point is found
