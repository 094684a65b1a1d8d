"""The judge of training at several widths, on made-up data."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.cogo.claims import overparam
from tests.theories.cogo.oracle import passes


def widths():
    """Made-up runs whose rate rises with the width up to 512 nodes."""
    widths, rng = [46.0, 66.0, 256.0, 512.0, 1024.0, 2048.0], np.random.default_rng(0)
    rate = np.array([0.0, 0.006, 0.011, 0.0133, 0.012, 0.009])[:, None] * (1 + 0.03 * rng.normal(size=(6, 20)))
    return xr.Dataset(
        {
            "measured_rate": (("width", "seed"), rate),
            "predicted_rate": (("width", "seed"), np.repeat([[1.0], [1.2], [2.0], [3.0], [5.0], [9.0]], 20, 1)),
            "enough": (("width", "seed"), np.full((6, 20), 66.0)),
            "least": (("width", "seed"), np.full((6, 20), 46.0)),
            "status": (("width", "seed"), np.zeros((6, 20), int)),
        },
        coords={"width": widths},
    )


def test_judge_of_widths():
    ds = widths()
    assert passes(overparam.judge, ds)
    slow = ds.assign(measured_rate=ds.measured_rate.where(ds.width != 256, 0.0))
    for bad in (
        overparam.same_width(0)(ds),
        overparam.same_width(1)(ds),
        overparam.narrow_first(ds),
        overparam.keeps_pace(ds),
        slow,
    ):
        assert not passes(overparam.judge, bad)
    with pytest.raises(jd.Inconclusive, match="width = 512 is needed"):
        overparam.judge(ds.isel(width=[0]))


def test_the_figure_can_be_drawn():
    fig = Figure()
    overparam.CLAIMS[0].plot(widths(), fig)
    assert len(fig.axes) == 2


def test_both_grids_have_the_epochs_of_the_statement():
    (claim,) = overparam.CLAIMS
    for scale in ("quick", "paper"):
        assert {s.epochs for s in claim.grid(scale).cells()} == {300}
    assert "300 epochs" in claim.statement and claim.seed_count("paper") > claim.seed_count("quick")
