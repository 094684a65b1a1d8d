"""Data that the tests of omnigrok's judges share."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.theories.omnigrok.students import SPHERES


@pytest.fixture
def lawful():
    """Data as the theory predicts them, with scatter over eight seeds."""
    rng, seeds = np.random.default_rng(4), 8
    decay, start = np.array([0.25, 0.125, 0.0625]), np.array(SPHERES)
    edge = rng.uniform(5, 7, (seeds, 1)) * np.ones(3)
    wait = np.log(10 / edge) / (1e-3 * decay)
    scatter = np.exp(0.05 * rng.normal(size=(2, seeds, 1)))
    test = 0.01 * np.exp(2 * np.log(start / 0.9) ** 2) * np.ones((seeds, 1))
    fit = np.where(start < 0.5, 0.2, 1e-3) * np.ones((seeds, 1))
    arrays = {
        "predicted_delay": (("seed", "decay"), wait),
        "measured_delay": (("seed", "decay"), wait * scatter[0]),
        "predicted_edge": (("seed", "decay"), edge),
        "measured_edge": (("seed", "decay"), edge * scatter[1]),
        "sphere_test": (("seed", "start"), test),
        "sphere_fit": (("seed", "start"), fit),
    }
    return xr.Dataset(arrays, {"decay": decay, "start": start})
