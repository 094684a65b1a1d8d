"""Short runs of the trials on changing coefficients, general A and kappa."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.galore.trials import varying


def test_steep_coefficients_break_the_printed_bound_alone():
    ds = jd.sweep(varying.varying_trial, jd.grid(varying.Varying, kind=["wave", "steep"], offset=[0.0, 1.0]), 3)
    excess = (ds.measured_shrink - ds.predicted_shrink).where(ds.inside > 0).max("time")
    inside = excess.sel(offset=0.0)
    assert float(inside.sel(form="corrected").max()) < 0 < float(inside.sel(form="printed", kind="steep").min())
    assert float(excess.sel(offset=1.0, form="corrected", kind="steep").min()) > 0
    assert float(ds.assumed_coefficients_over_bound.sel(offset=0.0).max()) <= 1 + 1e-12
    assert int(ds.status.max()) == 0 and (ds.remaining > 0.9).any() and (ds.inside.isel(time=0) == 1).all()


def test_the_part_of_a_that_no_weight_feels_stays():
    ds = jd.sweep(varying.free_trial, jd.grid(varying.Free, leak=[0.0, 0.5]), 3)
    error = jd.relative_error(ds, "end", "row col")
    assert float(error.sel(leak=0.0).max()) < 1e-9 and float(error.sel(leak=0.5).min()) > 0.5
    assert float(ds.left.sel(leak=0.0).min()) > 1


def test_kappa_is_exact_for_one_term_alone():
    ds = jd.sweep(varying.spread_trial, jd.grid(varying.Spread, terms=[1, 10]), 4)
    over = ds.measured_rate / ds.predicted_rate
    np.testing.assert_allclose(over.sel(terms=1.0), 1, rtol=1e-10)
    assert float(over.sel(terms=10.0).min()) > 1.05


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        (varying.Varying, {"rank": 5}),
        (varying.Varying, {"lip": 0.0}),
        (varying.Free, {"span": 8}),
        (varying.Spread, {"terms": 1.5}),
    ],
)
def test_wrong_settings_are_refused(setting, wrong):
    with pytest.raises(UsageError, match="not allowed"):
        setting(**wrong)
