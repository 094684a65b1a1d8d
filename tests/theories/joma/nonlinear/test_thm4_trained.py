"""Judges and figures of Theorem 4 in trained networks, on made-up distances and speeds."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.nonlinear import thm4_trained
from tests.theories.joma.helpers import panels, upheld

CLAIMS = {c.id: c for c in thm4_trained.CLAIMS}


@pytest.fixture
def trained():
    """Rows that all approach their limit at the slowest mode's rate."""
    rng = np.random.default_rng(0)
    kappa = np.sort(rng.uniform(0.1, 1.5, (6, 5)), 1)
    t = np.linspace(0, 6, 8)
    distance = 1e-2 * np.exp(-t[:, None] + 0 * kappa[:, None]) * (1 + 0.1 * rng.uniform(size=(6, 1, 5)))
    theorem = 1e-2 * np.exp(-t[:, None] * np.exp(kappa - kappa[:, :1])[:, None])
    dims = ("seed", "window", "token")
    data = {
        "predicted_distance": (dims, distance),
        "measured_distance": (dims, distance * (1 + 0.01 * rng.normal(size=distance.shape))),
        "theorem": (dims, theorem),
        "measured_speed": (("seed", "token"), 1 + 0.01 * rng.normal(size=kappa.shape)),
        "kappa": (("seed", "token"), kappa),
        "loss": (("seed", "end"), np.tile([1.0, 0.2], (6, 1))),
        "decades": ("seed", np.full(6, 2.6)),
        "slowest": ("seed", np.ones(6)),
    }
    return xr.Dataset(data)


def test_trained_judge(trained):
    claim = CLAIMS["joma.thm4_trained"]
    assert upheld(claim.judge, trained)
    for rival in claim.rivals.values():
        assert not upheld(claim.judge, rival(trained))
    grown = trained.assign(measured_speed=np.exp(trained.kappa))
    assert thm4_trained.exponent(grown).values == pytest.approx(np.ones(6))
    assert not upheld(claim.judge, grown)
    assert panels(claim, trained)


def test_separate_judge():
    rng = np.random.default_rng(0)
    kappa = rng.uniform(0.3, 1.1, (4, 5))
    rate = np.exp(2 * kappa) / 5
    eta = np.array([0.08, 0.04, 0.02])
    runs = ("eta", "seed", "token")
    measured = rate * (1 - 0.5 * eta[:, None, None] * rate)
    data = {"predicted_speed": (runs, np.broadcast_to(rate, measured.shape)), "measured_speed": (runs, measured)}
    ds = xr.Dataset(data | {"kappa": (runs, np.broadcast_to(kappa, measured.shape))}, {"eta": eta})
    claim = CLAIMS["joma.thm4_separate"]
    assert upheld(claim.judge, ds)
    for rival in claim.rivals.values():
        assert not upheld(claim.judge, rival(ds))
    assert panels(claim, ds)
    with pytest.raises(jd.Inconclusive, match="at least 3 values of eta"):
        claim.judge(ds.isel(eta=slice(2)))
