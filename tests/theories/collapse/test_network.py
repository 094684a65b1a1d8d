"""A short training of the perceptron on digits, and its judge on made-up curves."""

import jax
import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import digits
from jaxdyn.theories.collapse import network
from jaxdyn.theories.collapse.network import Perceptron, sample_images, trial
from tests.theories.galore.helpers import passed


def test_images_belong_to_their_labels():
    s = Perceptron(each=5)
    x, y = sample_images(s, jax.random.key(0))
    images, labels = digits.load()
    for row, label in zip(np.asarray(x), np.asarray(y), strict=True):
        places = np.flatnonzero((images == row).all(1))
        assert label in labels[places]
    assert len(np.unique(np.asarray(x), axis=0)) == 50


def test_short_runs():
    ds = jd.sweep(trial, jd.grid(Perceptron, classes=[3.0, 10.0], every=100.0, records=2, each=5, hidden=32), 2)
    assert float(ds.right.isel(step=-1).min()) == 1
    assert (ds.measured_within.isel(step=-1) < ds.measured_within.isel(step=0)).all()
    np.testing.assert_allclose(ds.predicted_cosines.sel(classes=3.0), -0.5)


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
    assert passed(network.judge(network.STILL(ds)))[1::2] == [False] * 3
    assert passed(network.judge(network.COLLAPSED(ds)))[1:] == [True, False] * 3
