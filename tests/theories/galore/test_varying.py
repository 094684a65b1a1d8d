"""Short runs with coefficients that change, and the judge on made-up data."""

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.galore import varying
from tests.theories.galore.helpers import passed, runs


@pytest.mark.slow
def test_steep_coefficients_break_the_printed_bound_alone():
    ds = jd.sweep(varying.trial, jd.grid(varying.Varying, rank=1, kind=["wave", "steep"], offset=[0.0, 1.0]), 3)
    excess = (ds.measured_shrink - ds.predicted_shrink).where(ds.inside > 0).max("time")
    inside = excess.sel(offset=0.0)
    assert float(inside.sel(form="corrected").max()) < 0 < float(inside.sel(form="printed", kind="steep").min())
    assert float(excess.sel(offset=1.0, form="corrected", kind="steep").min()) > 0
    assert float(ds.assumed_coefficients_over_bound.sel(offset=0.0).max()) <= 1 + 1e-12
    np.testing.assert_allclose(ds.kappa.sel(offset=0.0, kind="steep").isel(time=0), 1, rtol=1e-9)  # b = c = 1, of rank one
    assert int(ds.status.max()) == 0 and (ds.remaining > 0.9).any() and (ds.inside.isel(time=0) == 1).all()


def test_a_subspace_that_is_the_whole_space_is_refused():
    with pytest.raises(UsageError, match="not allowed"):
        varying.Varying(rank=5)


def test_every_step_is_below_its_bound_and_steep_ones_near_it():
    growth, inside = np.tile([[0.1, 0.3, 9.0]], (200, 1)), np.tile([[1.0, 1.0, 0.0]], (200, 1))
    ds = runs(
        measured_shrink=(("time",), growth),
        predicted_shrink=(("time",), np.minimum(growth, 1) + 0.2),
        inside=(("time",), inside),
        unit=((), np.ones(200)),
    )
    kinds = xr.concat([ds, ds], xr.DataArray(["wave", "steep"], dims="kind", name="kind"))
    both = kinds.expand_dims(rank=[1, 2])
    assert passed(varying.judge(ds)) == [True] and passed(varying.judge(both)) == [True, True]
    assert passed(varying.judge(both.assign(predicted_shrink=both.predicted_shrink + 1))) == [True, False]
    assert passed(varying.judge(both.assign(predicted_shrink=both.predicted_shrink - 0.21))) == [False, True]
    loose = both.assign(predicted_shrink=both.predicted_shrink + xr.where(both["rank"] > 1, 1.0, 0.0))
    assert passed(varying.judge(loose)) == [True, True]
    assert passed(varying.judge(kinds)) == [True]


def test_parts_that_wave_have_frobenius_norm_one(x64):
    found = np.asarray(varying.unit(varying.positive(jax.random.key(0), 3, 5)))
    np.testing.assert_allclose((found**2).sum((1, 2)), 1, rtol=1e-12)
    assert (np.linalg.norm(found, 2, (1, 2)) < 1).all()
