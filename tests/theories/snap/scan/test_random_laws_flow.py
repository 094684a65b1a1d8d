"""The flow on random laws: its relative gains, and wrong settings."""

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.snap.scan.random_laws_flow import LawsFlow


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


@pytest.mark.parametrize("fields", [{"classes": 1}, {"distinct": 2}, {"ratio": 0.0}, {"common": -1.0}])
def test_wrong_settings_are_refused(fields):
    with pytest.raises(UsageError, match=next(iter(fields))):
        LawsFlow(**fields)
