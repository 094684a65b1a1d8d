"""The judges of nodes over time, on planted curves and times."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.theories.li2.claims import rise
from tests.theories.li2.helpers import passes, refuses_opponents

CURVES, UNTIL = rise.CLAIMS


def planted(error=0.02, seed=0):
    """Each node grows as its own exponential; the network's is slower by a part ``error``; outputs are .02 e^(t / 10)."""
    rng = np.random.default_rng(seed)
    t, rate = np.arange(0, 121, 3.0), rng.uniform(0.02, 0.06, (8, 1, 1, 24))
    dims = ("seed", "epoch", "quantity", "node")
    grown = np.minimum(0.1 * np.exp(rate * t[:, None, None] + np.zeros((1, 1, 2, 1))), 1.0)
    told = xr.DataArray(grown, dims=dims)
    outputs = xr.DataArray(np.minimum(0.02 * np.exp(t / 10), 2) + np.zeros((8, 1)), dims=("seed", "epoch"))
    late = told.isel(epoch=0) + (told - told.isel(epoch=0)) * 2
    ds = xr.Dataset({"predicted_height": told, "measured_height": told.isel(epoch=0) + (told - told.isel(epoch=0)) * (1 - error)})
    ds = ds.assign(outputs=outputs, factor=late.mean("node"), other=xr.zeros_like(late.mean("node")) + 0.1)
    return ds.assign(curve_test=xr.ones_like(outputs)).assign_coords(seed=np.arange(8), epoch=t, quantity=["energy", "purity"])


def test_the_window_ends_where_outputs_stop_being_small():
    """.02 e^(t / 10) is .5 at t = 32.2: records 0, 3, ..., 30 are inside."""
    assert np.all(rise.window(planted()).sum("epoch") == 11)


def test_errors_are_parts_of_the_change():
    ds = planted(0.05)
    np.testing.assert_allclose(rise.apart(ds), 0.05 / 0.95, rtol=1e-9)
    own, told = (np.asarray(ds[name].isel(epoch=10) - ds[name].isel(epoch=0)) for name in ("measured_height", "predicted_height"))
    by_hand = 1 - ((own - told) ** 2).sum(-1) / ((own - own.mean(-1, keepdims=True)) ** 2).sum(-1)
    np.testing.assert_allclose(rise.explained(ds), by_hand, rtol=1e-9)


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(CURVES, planted())
    refuses_opponents(CURVES, planted())
    assert not passes(CURVES, planted(0.2))


def test_growth_at_constant_speed_ends_where_the_flow_does():
    ds = planted()
    other = rise.steady(ds).predicted_height
    np.testing.assert_allclose(other.isel(epoch=10), ds.predicted_height.isel(epoch=10))
    np.testing.assert_allclose(other.isel(epoch=5) - other.isel(epoch=0), (other.isel(epoch=10) - other.isel(epoch=0)) / 2)


def times(seed=0, width=0.0, rate=0.3):
    """Times that are powers of width and rate, the theory's in the rate alone; 5% noise."""
    rng = np.random.default_rng(seed)
    hidden, lr = np.array([32.0, 96, 256]), np.array([0.4, 0.7, 1.2])
    told = 25 * lr**0.3 * np.ones((16, 3, 1))
    seen = 35 * lr**rate * hidden[:, None] ** width * np.exp(0.05 * rng.normal(size=(16, 3, 3)))
    dims = ("seed", "hidden", "lr")
    ds = xr.Dataset({"predicted_until": (dims, told), "measured_until": (dims, seen), "last": (dims, 120 * lr + 0 * told)})
    return ds.assign_coords(seed=np.arange(16), hidden=hidden, lr=lr)


def test_powers_are_found():
    found = rise.power(times(width=-0.2).measured_until, "hidden")
    assert float(found.mean()) == pytest.approx(-0.2, abs=0.02)
    assert float(rise.power(times().measured_until, "lr").mean()) == pytest.approx(0.3, abs=0.03)


def test_until_when_has_teeth():
    ds = times()
    assert passes(UNTIL, ds)
    refuses_opponents(UNTIL, ds)
    for broken in (times(width=-0.3), times(rate=0.0)):
        assert not passes(UNTIL, broken)
