"""Judges of orders and constructions on made-up data, and their figures."""

import math

import numpy as np
import pytest
import scipy.stats
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.cogo import classify, published
from jaxdyn.theories.cogo.trained import decomposed, orders
from tests.theories.cogo.oracle import passes, runs


def test_judge_of_orders():
    good = runs(measured_orders=0.98, predicted_orders=1.0)
    assert passes(orders.judge_orders, good)
    assert not passes(orders.judge_orders, good.assign(predicted_orders=1.1 * good.predicted_orders))
    rise = xr.DataArray(np.linspace(0, 1, 20), dims="epoch")
    early = decomposed.early(
        good.assign(curve_fours=5 * rise, curve_sixes=6 * rise, predicted_diagonal=22 + 0 * good.measured_orders)
    )
    np.testing.assert_allclose(early.measured_orders, 2 / 19, rtol=1e-12)
    np.testing.assert_allclose(early.measured_n6, 12 / 19, rtol=1e-12)
    assert not passes(orders.judge_orders, early)
    one = good.assign(measured_orders=good.measured_orders.where(good.seed > 0, 0.8))
    assert [c.passed for c in orders.judge_orders(one)][1] is False


def test_nodes_spread_at_random_give_four_or_six_to_a_third_of_the_frequencies():
    ds = runs(predicted_orders=1.0).assign(order=("frequency", [5.0] * 11))
    share = sum(math.comb(55, k) * 10.0 ** (55 - k) / 11.0**55 for k in (4, 6))
    np.testing.assert_allclose(orders.scattered(ds).predicted_orders, share, rtol=1e-12)


def decaying(power):
    """Made-up records of five runs at four decays; the share of order 4 grows with (decay / 5e-5)^power times epochs, up to .6."""
    decay, epoch = np.array([5e-5, 1e-4, 2e-4, 5e-4]), np.arange(0, 10000, 100.0)
    share = np.minimum(0.45 * (decay[:, None] / 5e-5) ** power * epoch / 9900, 0.6)
    fours = 11 * share[:, None] * (1 + 0.02 * np.random.default_rng(0).normal(size=(4, 5, 1)))
    ds = xr.Dataset({"curve_fours": (("decay", "seed", "epoch"), fours)}, {"decay": decay, "epoch": epoch, "seed": range(5)})
    one = ds.curve_fours.isel(epoch=0, drop=True) * 0
    return ds.assign(predicted_diagonal=one + 22, predicted_share=one + 0.65, measured_share=ds.curve_fours.isel(epoch=-1) / 11)


def test_judge_of_decay_tells_decay_times_epochs_from_epochs():
    assert passes(orders.judge_wd, decaying(1.0)), [str(c) for c in orders.judge_wd(decaying(1.0))]
    assert not passes(orders.judge_wd, decaying(0.0))
    same, least = (f(decaying(1.0)) for f in (orders.CONSTANT, orders.PLATEAU))
    assert [c.passed for c in orders.judge_wd(same)] == [True, True, False]  # nothing else tells a share that never changes
    assert [c.passed for c in orders.judge_wd(least)] == [True, False, True]
    np.testing.assert_allclose(orders.share_at(least, orders.equal_products(least)).mean("seed"), 0.65, rtol=1e-12)
    (claim,) = (c for c in orders.CLAIMS if c.id == "cogo.wd_order")
    for rival in claim.rivals.values():
        assert not passes(orders.judge_wd, rival(decaying(1.0)))
    with pytest.raises(jd.Inconclusive, match="at least 3 values of decay are needed"):
        orders.judge_wd(decaying(1.0).isel(decay=[0, 1]))


def table(first, named):
    """Percentages at all decays."""
    columns = np.array([first, (named - first) / 2, (named - first) / 2, 100 - named])
    ds = runs(x=1.0)
    measured = ds.x * xr.DataArray(columns, dims="column")
    known = ds.x * xr.DataArray(np.array(published.cells(23)), dims="column")
    return xr.Dataset({"measured_column": measured, "predicted_column": known, "random_column": 0 * measured}).assign_coords(
        column=list(classify.COLUMNS)
    )


def test_judge_of_the_table():
    ds = table(47.0, 98.0).assign(predicted_diagonal=22 + 0 * runs(x=1.0).x)
    gaps = orders.judge_table(ds)
    np.testing.assert_allclose([c.value for c in gaps], np.array([47.0, 25.5, 25.5, 2.0]) - published.cells(23))
    np.testing.assert_allclose(np.diff(gaps[0].interval), 2 * 4.315 * published.TABLE[23].columns[0][1], rtol=1e-2)  # t_4, 4 cells
    assert not passes(orders.judge_table, jd.swap(measured_column="random_column")(ds))
    assert [c.passed for c in orders.judge_table(orders.FREE_SIXES(ds))][2:] == [False, False]
    with pytest.raises(jd.Inconclusive, match="decay = 5e-05 is needed"):
        orders.judge_table(ds.sel(decay=[1e-4]))


def test_freedom_of_the_table_is_welchs():
    rng, seeds, cells = np.random.default_rng(0), 40, published.TABLE[23].columns
    ds = xr.Dataset(
        {
            "measured_column": (("column", "seed"), 5 * rng.normal(size=(4, seeds))),
            "predicted_column": (("column", "seed"), np.repeat(np.array(published.cells(23))[:, None], seeds, 1)),
            "predicted_diagonal": ("seed", np.full(seeds, 22.0)),
        }
    )
    gap, error, freedom = orders.joint_errors(ds)
    for i, (mean, sem) in enumerate(cells):
        x = ds.measured_column.values[i]
        p = scipy.stats.ttest_ind_from_stats(x.mean(), x.std(ddof=1), seeds, mean, sem * 5**0.5, 5, equal_var=False).pvalue
        np.testing.assert_allclose(2 * scipy.stats.t.sf(abs(gap[i] / error[i]), freedom[i]), p, rtol=1e-6)


def test_errors_of_the_table_are_those_of_each_group():
    order = xr.DataArray([23.0, 71.0, 127.0, 20.0], dims="group")
    errors = orders.published_errors(order).transpose("group", "column")
    for at, d in enumerate((23, 71, 127, 23)):
        np.testing.assert_array_equal(errors[at], [error for _, error in published.TABLE[d].columns])


def test_judge_of_known_constructions():
    ds = table(47.0, 99.0).assign(predicted_orders=1 + 0 * runs(x=1.0).x)
    assert passes(orders.judge_named, ds)
    assert not passes(orders.judge_named, table(47.0, 80.0).assign(predicted_orders=ds.predicted_orders))


def test_angles_are_folded_by_the_symmetries_of_a_pairing():
    angle = np.array([0.3, -0.3, 0.3 + np.pi / 2, np.pi - 0.3])
    np.testing.assert_allclose(orders.fold(angle, np.pi / 2), 0.3)
    names = classify.NAMES
    ds = xr.Dataset(
        {
            "order": ("frequency", [4, 4, 6, 6]),
            "first_label": ("frequency", [names.index(n) for n in ("nu=i", "xi", "nu", "unknown")]),
            "second_label": ("frequency", [names.index(n) for n in ("xi", "nu=i", "syn", "syn")]),
            "first_angle": ("frequency", [1.0, np.pi / 4, np.pi / 3 + 0.1, 0.2]),
            "second_angle": ("frequency", [0.2, 2.0, 0.0, 0.0]),
        }
    )
    found = orders.angles(ds)
    np.testing.assert_allclose(found["xi"], [0.2, np.pi / 4, np.nan, np.nan])
    np.testing.assert_allclose(found["nu"], [np.nan, np.nan, 0.1, np.nan])
    assert [round(c.value, 3) for c in orders.judge_angles(ds)] == [0.5, 0.0]


@pytest.mark.slow
def test_figures_can_be_drawn(trained_runs):
    for claim in orders.CLAIMS:
        fig = Figure()
        claim.plot(trained_runs, fig)
        assert fig.axes
