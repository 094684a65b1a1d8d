"""The judge of Figure 3 on made-up data."""

import numpy as np
import xarray as xr

from jaxdyn.theories.joma.invariant import fig3
from tests.theories.joma.helpers import upheld


def made_up():
    """Four runs whose speed grows with time, by theory and in training; the mean attention leaves the early phase halfway."""
    rng = np.random.default_rng(0)
    record = xr.DataArray(np.linspace(0, 1, 5), dims="record", coords={"record": range(5)})
    wide = xr.DataArray(np.ones((2, 4)), dims=("data", "seed"), coords={"data": ["gaussian", "random"]})
    uniform, bend = (xr.DataArray(rng.normal(size=(3, 2)), dims=("token", "node")) for _ in range(2))
    dims = ("data", "seed", "record", "token", "node")
    rate = (wide * (uniform + 0.2 * record * bend)).transpose(*dims)
    v = (wide * (record * uniform + 0.1 * record**2 * bend)).transpose(*dims)
    rank = (wide * (3 - 2 * record)).transpose(*dims[:3])
    sides = {f"{side}_{n}": a for side in ("predicted", "measured") for n, a in (("v", v), ("rate", rate), ("srank_v", rank))}
    drift = (0.2 * wide * record).transpose(*dims[:3])
    plain = {"start": 0 * v.isel(record=0), "frozen": rate.isel(record=0), "uniform": 1.1 * rate.isel(record=0)}
    return xr.Dataset({**sides, **plain, "drift": drift, "elapsed": (wide * record).transpose(*dims[:3])})


def test_fig3_judge():
    ds = made_up()
    assert upheld(fig3.fig3_judge, ds)
    assert not upheld(fig3.fig3_judge, ds.assign(predicted_v=1.2 * ds.predicted_v))
    assert not upheld(fig3.fig3_judge, ds.assign(measured_srank_v=ds.measured_srank_v + 0.3))


def test_rivals_leave_the_bend_unexplained():
    ds = made_up()
    for rival in fig3.CLAIMS[0].rivals.values():
        v, rate, rank = fig3.fig3_judge(rival(ds))
        assert (v.passed, rate.passed, rank.passed) == (False, False, True)
    assert np.allclose(fig3.early_error(fig3.constant_rate("frozen")(ds), "rate"), 1)


def test_late_disagreement_is_none_of_the_early_phase():
    ds = made_up()
    late = xr.where(ds.record > 2, 5.0, 1.0)
    assert upheld(fig3.fig3_judge, ds.assign(predicted_rate=(ds.predicted_rate * late).transpose(*ds.predicted_rate.dims)))
