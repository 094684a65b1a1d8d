"""Two scalars: a run alone, and starts that are handed in."""

import numpy as np

import jaxdyn as jd
from jaxdyn.theories.cal.trials import pair as runs
from tests.theories.cal.helpers import pair_data


def test_a_run_alone_is_the_run_of_the_sweep():
    grid = jd.grid(runs.Pair, eta=0.2, start="random")
    alone = jd.sweep(runs.trial, grid, [2], executor="vmap").isel(seed=0)
    among = pair_data().sel(eta=0.2, start="random", seed=2)
    for name in alone.data_vars:
        np.testing.assert_allclose(alone[name], among[name], rtol=1e-9)


def test_a_start_that_is_handed_in_ends_at_its_own_sharpness():
    ds = jd.sweep(runs.trial, jd.grid(runs.Pair, eta=0.05, u=[2.0, 2.5], v=0.1, horizon=30.0), 1)
    np.testing.assert_allclose(ds.measured_flow.values.ravel(), np.sqrt((np.array([2.0, 2.5]) ** 2 - 0.01) ** 2 + 4), rtol=1e-8)
