"""A short run of the network that learns a latent tree."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.trials import hierarchy


@pytest.fixture(scope="module")
def trained():
    grid = jd.grid(
        hierarchy.Hierarchy, latents=["deep", "shallow"], spacing=8.0, depth=3, subtrees=2, vocabulary=6, hidden=8, lr=0.5
    )
    return jd.sweep(hierarchy.trial, grid.replace(threshold=0.05, batch=64), seeds=range(2))


@pytest.mark.slow
def test_a_short_run(trained):
    never = float(trained.step.max()) + 1
    assert trained.sizes["height"] == 2
    assert bool((trained.status == 0).all())
    arrival = trained.measured_arrival
    assert float(arrival.min()) >= 1
    assert float(arrival.max()) == never  # a token never attends to itself
    assert np.all(np.diff(trained.mean_time.sel(latents="deep").isel(seed=0)) > 0)
    np.testing.assert_allclose(trained.mean_time.std("seed"), 0, atol=1e-9)  # the same for all upper layers
    assert bool((trained.predicted_time.std("seed") > 0.1).all())
    np.testing.assert_allclose(np.ptp(trained.predicted_time.sel(latents="shallow").values, axis=-1), 0, atol=1e-9)
    reached = (arrival < never).mean(("subtree", "query", "token")) * 4 / 3  # three of four tokens are others
    counts = xr.DataArray([1 / 3, 2 / 3], dims="height")
    np.testing.assert_allclose((trained.reached * counts).sum("height"), reached, rtol=1e-6)


@pytest.mark.parametrize("field", [{"rho": 0.0}, {"lr": -1.0}, {"vocabulary": 2}, {"depth": 1}, {"spacing": 0.0}])
def test_setting_refuses_what_makes_no_sense(field):
    with pytest.raises(jd.UsageError):
        hierarchy.Hierarchy(**field)


@pytest.mark.parametrize(
    ("field", "steps"), [({}, 4), ({"lr": 1 / 64}, 16), ({"spacing": 3 / 16, "lr": 1 / 256}, 3), ({"lr": 9.0}, 1)]
)
def test_a_run_lasts_equally_long_in_time_at_every_rate(field, steps):
    assert int(hierarchy._every(hierarchy.Hierarchy(**field))) == steps
