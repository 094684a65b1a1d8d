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
