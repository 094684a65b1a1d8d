"""The judge of Figure 3 on made-up data."""

import numpy as np
import xarray as xr

from jaxdyn.theories.joma.claims import fig3

from ..helpers import upheld


def test_fig3_judge():
    records = np.linspace(0, 1, 5)
    theory = xr.DataArray(
        np.tile(3 - 2 * records, (2, 2, 1)), dims=("data", "seed", "record"), coords={"data": ["gaussian", "random"]}
    )
    ds = xr.Dataset(
        {
            "predicted_srank_v": theory,
            "predicted_srank_rate": theory,
            "measured_srank_v": theory,
            "measured_srank_rate": theory,
            "drift": 0.1 * theory.record + 0 * theory,
        }
    )
    assert upheld(fig3.fig3_judge, ds)
    assert not upheld(fig3.fig3_judge, ds.assign(predicted_srank_v=1.2 * theory))
    assert not upheld(fig3.fig3_judge, ds.assign(measured_srank_v=theory + 0.3))
