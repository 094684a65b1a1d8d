"""Judges of labels, on made-up runs."""

import numpy as np
import xarray as xr

from jaxdyn.theories.memo import random_labels
from tests.theories.galore.helpers import passed


def made(test, **coords):
    """Eight runs for every mean test accuracy."""
    test = np.asarray(test, float)
    dims = (*coords, "seed")
    noise = 0.01 * np.random.default_rng(0).normal(size=(*test.shape, 8))
    ds = {"measured_test": test[..., None] + noise, "measured_right": np.ones((*test.shape, 8))}
    ds |= {
        "measured_start": np.full_like(noise, 0.1),
        "test_start": 0.1 + noise,
        "chance": np.full_like(noise, 0.1),
        "status": noise,
    }
    return xr.Dataset({name: (dims, v) for name, v in ds.items()}, coords={k: list(v) for k, v in coords.items()})


def test_random_labels():
    ds = made(0.1)
    assert passed(random_labels.judge_random(ds)) == [True, True]
    assert passed(random_labels.judge_random(random_labels.STILL(ds)))[0] is False
    assert passed(random_labels.judge_random(random_labels.KNOWS(ds))) == [True, False]


def test_curve():
    ds = made([0.96, 0.8, 0.6, 0.3], corruption=random_labels.SHARES)
    assert passed(random_labels.judge_curve(ds)) == [True, True]
    assert passed(random_labels.judge_curve(random_labels.STILL(ds))) == [False, False]
    assert passed(random_labels.judge_curve(ds.roll(corruption=1, roll_coords=False)))[1] is False


def test_regularisers():
    ds = made([[0.95, 0.97], [0.95, 0.97]], decay=(0.0, 0.1), noise=(0.0, 0.5))
    assert passed(random_labels.judge_regular(ds)) == [True, True]
    assert passed(random_labels.judge_regular(random_labels.NEEDED(ds)))[1] is False
