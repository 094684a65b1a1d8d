"""A short training of the perceptron on digits."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.data import digits
from jaxdyn.errors import UsageError
from jaxdyn.theories.collapse.trials.network import Perceptron, drawn, trial


def test_images_belong_to_their_labels():
    s = Perceptron(each=5)
    x, y = drawn(s, jax.random.key(0))
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


@pytest.mark.parametrize(
    "wrong", [{"classes": 1.0}, {"each": 171}, {"lr": 0.0}, {"decay": -1.0}, {"records": 0}, {"imbalance": 0.0}]
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Perceptron(**wrong)
