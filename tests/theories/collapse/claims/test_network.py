"""The judge of the perceptron, on made-up curves."""

import numpy as np
import xarray as xr

from jaxdyn.theories.collapse.claims import network
from tests.theories.galore.helpers import passed

DIFFER = ("measured_within", "measured_dual", "measured_cosines")


def test_collapse_and_nothing():
    noise = 0.001 * np.random.default_rng(0).normal(size=(2, 4, 2))
    ends = {"measured_within": (2.0, 0.04), "measured_dual": (1.4, 0.18), "right": (0.1, 1.0)}
    ds = {n: (("classes", "seed", "step"), np.array(v) + (0 if n == "right" else noise)) for n, v in ends.items()}
    ds["right"] = ("classes", "seed", "step"), np.broadcast_to([0.1, 1.0], (2, 4, 2))
    cosine = np.array([-0.5, -1 / 9])[:, None, None]
    dims = ("classes", "seed", "end")
    ds |= {"predicted_cosines": (dims, cosine + 0 * noise), "measured_cosines": (dims, cosine + noise)}
    ds |= {"start_cosines": (dims, cosine + 0.5 + noise), "status": (("classes", "seed"), np.zeros((2, 4)))}
    ds = xr.Dataset(ds, coords={"classes": [3.0, 10.0]})
    ten = xr.where(ds.classes == 10, 1.0, 0.0)
    ds = ds.assign({n: ds[n] + (0.3 * ten * (ds[n] * 0 + 1)).transpose(*ds[n].dims) for n in DIFFER})
    assert passed(network.judge(ds)) == [True] * 7
    assert passed(network.judge(network.still(ds)))[1::2] == [False] * 3
    assert passed(network.judge(network.collapsed(ds)))[1:] == [True, False] * 3
