"""Judges of the claims on changing coefficients, general A, kappa and step sizes, on made-up data.

Short runs of the trials on changing coefficients, general A and kappa.
"""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.galore import varying
from tests.theories.galore.helpers import passed, runs


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


def test_every_step_is_below_its_bound_and_steep_ones_near_it():
    growth, inside = np.tile([[0.1, 0.3, 9.0]], (200, 1)), np.tile([[1.0, 1.0, 0.0]], (200, 1))
    ds = runs(
        measured_shrink=(("time",), growth),
        predicted_shrink=(("time",), np.minimum(growth, 1) + 0.2),
        inside=(("time",), inside),
    )
    both = xr.concat([ds, ds], xr.DataArray(["wave", "steep"], dims="kind", name="kind"))
    assert passed(varying.judge_varying(ds)) == [True] and passed(varying.judge_varying(both)) == [True, True]
    assert passed(varying.judge_varying(both.assign(predicted_shrink=both.predicted_shrink + 1))) == [True, False]
    assert passed(varying.judge_varying(both.assign(predicted_shrink=both.predicted_shrink - 0.21))) == [False, True]


def test_the_end_and_its_rank():
    end = np.ones((200, 2, 2))
    ds = runs(measured_end=(("row", "col"), end), predicted_end=(("row", "col"), end),
              measured_rank=((), np.full(200, 2.0)), predicted_rank=((), np.full(200, 3.0)))  # fmt: skip
    assert passed(varying.judge_free(ds)) == [True, True]
    assert (
        passed(varying.judge_free(ds.assign(predicted_end=0 * ds.predicted_end, measured_rank=2 * ds.measured_rank))) == [False] * 2
    )


def test_kappa_is_compared_by_terms():
    over = np.stack([np.full(200, r) for r in (1.0, 1.2, 1.4)], 1)
    ds = runs(measured_rate=(("terms",), over), predicted_rate=(("terms",), np.ones((200, 3)))).assign_coords(
        terms=[1.0, 3.0, 10.0]
    )
    assert passed(varying.judge_spread(ds)) == [True] * 4
    assert passed(varying.judge_spread(varying.exchanged(ds)))[1] is False
    (claim,) = (c for c in varying.CLAIMS if c.id == "galore.kappa_loose")
    assert set(claim.found) == {c.name for c in varying.judge_spread(ds)}


def test_the_limit_of_the_step_size():
    excess = np.tile([-1e-12] * 6 + [0.05, 0.6], (200, 1))[:, :, None]
    ds = runs(measured_bound=(("step", "time"), 2 + excess), predicted_bound=(("step", "time"), 0 * excess + 2),
              remaining=(("step", "time"), 0 * excess + 1), rank_start=(("step",), 0 * excess[..., 0] + 3))  # fmt: skip
    ds = ds.assign_coords(step=varying.SHARES)
    assert passed(varying.judge_limit(ds)) == [True] * 3
    assert passed(varying.judge_limit(varying.reversed_steps(ds))) == [False] * 3
    assert passed(varying.judge_limit(varying.never(ds)))[1:] == [False] * 2
    assert passed(varying.judge_limit(varying.as_at_start(ds)))[1:] == [False] * 2
