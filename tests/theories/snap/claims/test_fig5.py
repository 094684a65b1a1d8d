"""The judges of Figure 5 and of the order of attention, on made-up data."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.snap import published
from jaxdyn.theories.snap.claims import fig5
from jaxdyn.theories.snap.trials import syn


def made_up_fig5(shift=0.0):
    """Runs with the reference's own numbers, moved."""
    axes = ("optimizer", "momentum", "ratio")
    values, known = np.full((2, 2, 2, 3, 4), 0.5), np.zeros((2, 2, 2, 3))
    for row in published.FIG5:
        place = (syn.OPTIMIZERS.index(row.optimizer), (0.9, 0.0).index(row.momentum), (1.0, 10.0).index(row.ratio))
        values[place], known[place] = row.numbers, 1
    curve = np.broadcast_to(np.array(published.START), (2, 2, 2, 3, 1, 4))
    return xr.Dataset(
        {
            "predicted_numbers": ((*axes, "seed", "quantity"), values),
            "measured_numbers": ((*axes, "seed", "quantity"), values + shift),
            "known": ((*axes, "seed"), known),
            "curve": ((*axes, "seed", "record", "quantity"), curve),
        },
        coords={"optimizer": list(syn.OPTIMIZERS), "momentum": [0.9, 0.0], "ratio": [1.0, 10.0]},
    )


def test_judge_of_figure_5():
    passes = lambda ds: all(c.passed for c in fig5.judge_fig5(ds))  # noqa: E731
    ds = made_up_fig5()
    assert passes(ds) and passes(made_up_fig5(0.02))
    assert not passes(made_up_fig5(0.04))
    assert not passes(jd.rolled(predicted_numbers="momentum")(ds))
    assert not passes(ds.assign(predicted_numbers=1.1 * ds.predicted_numbers))
    assert not passes(ds.assign(curve=ds.curve * 1.001))
    with pytest.raises(jd.Inconclusive):
        fig5.judge_fig5(ds.assign(known=0 * ds.known))


def test_judge_of_order():
    p = np.linspace(0.1, 1, 10) / 5.5
    c = np.stack([p**2, p**1.1])[None]
    ds = xr.Dataset(
        {
            "predicted_attention": (("seed", "class", "token"), np.stack([p, p])[None]),
            "measured_attention": (("seed", "class", "token"), c),
        }
    )
    passes = lambda ds: all(check.passed for check in fig5.judge_not_wta(ds))  # noqa: E731
    assert passes(ds)
    assert not passes(fig5.winner_takes_all(ds))
    swapped = c.copy()
    swapped[0, 1, [3, 4]] = swapped[0, 1, [4, 3]]
    assert not passes(ds.assign(measured_attention=(ds.measured_attention.dims, swapped)))
    assert not passes(ds.assign(measured_attention=ds.measured_attention**30))
