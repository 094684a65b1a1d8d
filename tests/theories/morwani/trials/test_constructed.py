"""Constructed networks and what their setting refuses."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.morwani.trials.constructed import Constructed, trial


def test_construction_reaches_the_largest_margin_and_perturbations_lose_some():
    ds = jd.sweep(trial, jd.grid(Constructed, moduli=(5, 7), left_out=[0.0, 0.5]), seeds=2)
    whole, less = ds.sel(left_out=0.0), ds.sel(left_out=0.5)
    np.testing.assert_allclose(whole.measured_margin, whole.predicted_margin, rtol=1e-12)
    assert bool((less.measured_margin < less.predicted_margin).all())
    ratio = (whole.moved / whole.predicted_margin).transpose(..., "size")
    assert bool((ratio < 1).all()) and bool((ratio.diff("size") < 0).all())


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"moduli": (9,)}, "odd primes"), ({"moduli": ()}, "at least one"), ({"left_out": 1.5}, "from 0 to 1")],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Constructed(**fields)
