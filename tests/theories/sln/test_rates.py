"""Shares on random graphs: trees are exact, walks are draws, graphs without room are not counted."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.sln.rates import BEST, LITERAL, UNWEIGHTED, Random, judge_any, trial


@pytest.mark.slow
def test_trees_and_forms():
    ds = jd.sweep(trial, jd.grid(Random, kind="tree", nodes=[6.0, 9.0], graphs=6, rows="few", most=12), 2)
    assert float(ds.far.sel(embedding=BEST).min()) > 1 - 1e-12
    assert float(ds.counted.min()) == 1
    assert set(np.unique(ds.walk)) <= {0.0, 1.0}
    best = ds.far.sel(embedding=list(LITERAL)).mean("graph").max("embedding")
    np.testing.assert_allclose(ds.measured_routed.sel(form="printed").mean("graph"), best)
    np.testing.assert_allclose(ds.measured_routed.sel(form="derived"), ds.far.sel(embedding=BEST))
    best = ds.every.sel(embedding=list(UNWEIGHTED)).mean("graph").max("embedding")
    np.testing.assert_allclose(ds.measured_any.sel(form="printed").mean("graph"), best)
    np.testing.assert_allclose(ds.measured_any.sel(form="derived"), ds.every.sel(embedding=BEST))


@pytest.mark.slow
def test_an_own_row_is_that_of_the_table():
    sizes = {"density": 0.5, "graphs": 4, "most": 36}
    own = jd.sweep(trial, jd.grid(Random, rows="own", rw=[0.0, 1.0], power=[0.0, 1.0], **sizes), 1)
    table = jd.sweep(trial, jd.grid(Random, rows="all", **sizes), 1).far
    for (rw, power), name in zip(((1, 1), (0, 1), (0, 0)), (BEST, "sym, 1/lam, all", "sym, 1, all"), strict=True):
        routed = own.measured_routed.sel(form="derived", rw=rw, power=power)
        np.testing.assert_allclose(routed, table.sel(embedding=name), atol=1e-12)


@pytest.mark.slow
def test_graphs_without_room_or_distant_pairs_are_not_counted():
    ds = jd.sweep(trial, jd.grid(Random, nodes=6.0, density=1.0, graphs=2, rows="few", largest=6, most=20), 1)
    assert float(ds.counted.max()) == 0
    assert float(ds.fits.min()) == 1 and float(ds.every.sel(embedding=BEST).min()) == 1, "all are adjacent"
    narrow = jd.sweep(trial, jd.grid(Random, nodes=6.0, density=1.0, graphs=2, rows="few", largest=6, most=14), 1)
    assert float(narrow.fits.max()) == 0


def test_all_pairs_of_small_graphs_are_judged():
    values = xr.DataArray([[[1.0, 1.0, 0.5]], [[0.9, 1.0, 0.0]]], dims=("nodes", "seed", "graph"), coords={"nodes": [9.0, 10.0]})
    values = xr.concat([values] * 4, "seed")
    ds = xr.Dataset({"measured_any": values, "fits": xr.DataArray([1.0, 1.0, 0.0], dims="graph")})
    (check,) = judge_any(ds)
    assert check.passed and check.value == 1, "10 vertices and graphs without room do not count"
    (check,) = judge_any(ds.assign(fits=xr.ones_like(ds.fits)))
    assert not check.passed


def test_settings_that_are_refused():
    for fields, why in (
        ({"nodes": 40.0}, "nodes is at most largest"),
        ({"rows": "none"}, "rows is one of all, few, own"),
        ({"most": 3}, "room"),
    ):
        with pytest.raises(UsageError, match=why):
            Random(**fields)
