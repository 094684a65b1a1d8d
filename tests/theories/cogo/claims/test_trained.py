"""Judges of the claims on trained networks on made-up data, and their figures."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.cogo import classify, published
from jaxdyn.theories.cogo.claims import trained
from tests.theories.cogo.oracle import passes, runs


def test_judge_of_orders_and_of_decay():
    good = runs(measured_orders=0.98, predicted_orders=1.0)
    assert passes(trained.judge_orders, good) and not passes(
        trained.judge_orders, good.assign(predicted_orders=1.1 * good.predicted_orders)
    )
    share = runs(measured_share=[0, 0.1, 0.45, 0.46, 0.5, 0.55], predicted_share=0.65)
    assert passes(trained.judge_wd, share)
    assert not passes(trained.judge_wd, trained.without_decay(share))
    assert not passes(trained.judge_wd, share.assign(measured_share=share.measured_share[::-1].values + 0 * share.measured_share))
    with pytest.raises(jd.Inconclusive, match="at least 4 values of decay are needed"):
        trained.judge_wd(share.isel(decay=[0, 1]))


def table(first, named):
    """Percentages at all decays."""
    columns = np.array([first, (named - first) / 2, (named - first) / 2, 100 - named])
    ds = runs(x=1.0)
    measured = ds.x * xr.DataArray(columns, dims="column")
    known = ds.x * xr.DataArray(np.array(published.cells(23)), dims="column")
    return xr.Dataset({"measured_column": measured, "predicted_column": known, "random_column": 0 * measured})


def test_judge_of_the_table():
    assert passes(trained.judge_table, table(47.0, 100.0))
    assert not passes(trained.judge_table, table(33.0, 100.0))
    assert not passes(trained.judge_table, table(47.0, 60.0))
    assert not passes(trained.judge_table, jd.swap(measured_column="random_column")(table(47.0, 100.0)))
    with pytest.raises(jd.Inconclusive, match="decay = 5e-05, 0.0005 is needed"):
        trained.judge_table(table(47.0, 100.0).sel(decay=[1e-4]))


def test_angles_are_folded_by_the_symmetries_of_a_pairing():
    angle = np.array([0.3, -0.3, 0.3 + np.pi / 2, np.pi - 0.3])
    np.testing.assert_allclose(trained.fold(angle, np.pi / 2), 0.3)
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
    found = trained.angles(ds)
    np.testing.assert_allclose(found["xi"], [0.2, np.pi / 4, np.nan, np.nan])
    np.testing.assert_allclose(found["nu"], [np.nan, np.nan, 0.1, np.nan])
    assert [round(c.value, 3) for c in trained.judge_angles(ds)] == [0.5, 1.0, 0.0]


def test_figures_can_be_drawn(trained_runs):
    for claim in trained.CLAIMS:
        fig = Figure()
        claim.plot(trained_runs, fig)
        assert fig.axes
