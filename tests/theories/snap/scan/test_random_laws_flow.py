"""The flow on random laws: its relative gains."""

import numpy as np


def test_gains_are_those_of_the_attention(laws_flow_runs):
    ds = laws_flow_runs["alone"]
    assert (ds.status == 0).all()
    attention = (ds.p_own * np.exp(ds.z_own)).isel(save=slice(1, None)).rename(save="time")
    gain = (attention.isel(distinct=-1) / attention.isel(distinct=slice(-1))) ** 2 - 1
    gain = gain.rename(distinct="other").transpose(*ds.measured_gain.dims)
    np.testing.assert_allclose(ds.measured_gain, gain, rtol=1e-9, atol=1e-12)
    start = (ds.p_own.isel(distinct=-1) / ds.p_own.isel(distinct=slice(-1))) ** 2 - 1
    start = start.rename(distinct="other")
    left = 1 - (gain - start) / (ds.predicted_gain - start)
    end = {"time": -1}
    np.testing.assert_allclose(
        ds.measured_shortfall.isel(end).sel(ratio=0.1), left.isel(end).sel(ratio=0.1).transpose("seed", "class", "other"), rtol=1e-6
    )
