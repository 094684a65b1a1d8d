"""Optima and parabolas of random laws, on few of them."""

import jax
import pytest

import jaxdyn as jd
from jaxdyn.theories.scal.random_laws import Parabola, parabola_trial, sample_law


def test_random_laws(x64):
    law = sample_law(jax.random.key(3))
    assert 0.2 <= law.alpha <= 0.6 and 0.2 <= law.beta <= 0.6 and 1 <= law.e <= 2
    assert 0.1 <= law.a * 1e9**-law.alpha <= 1 and 0.1 <= law.b * 1e10**-law.beta <= 1


def test_parabolas_keep_the_slope_unless_sizes_drift():
    ds = jd.sweep(parabola_trial, jd.grid(Parabola, drift=[0.0, 0.1]), 1)
    error = abs(ds.measured_slope - ds.predicted_slope).squeeze()
    assert float(error.sel(drift=0.0)) < 1e-12 < 1e-4 < float(error.sel(drift=0.1))
    assert float(ds.measured_shift.sel(drift=0.0).mean()) == pytest.approx(0.0361, abs=1e-4)
