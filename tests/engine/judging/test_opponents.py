"""The runs of controls and rivals: what may be edited, what rivals may say, and what is refused in one sentence."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.judging.opponents import edited_runs, failed_control, rival_numbers, rival_runs
from jaxdyn.status import DIVERGED
from tests.engine.handmade import data, failing


def test_a_rival_replaces_predictions():
    main = data(0.1)
    ds = rival_runs("still", jd.swap(predicted_z=0.0), main)
    assert float(abs(ds.predicted_z).max()) == 0.0 and ds.measured_z.identical(main.measured_z)


@pytest.mark.parametrize(
    "edit",
    [
        jd.swap(measured_z=0.0),
        jd.scaled(measured_z=2.0),
        lambda ds: ds.assign(measured_z=ds.measured_z + 1e-12),
        lambda ds: ds.drop_vars("measured_z"),
        lambda ds: ds.isel(seed=slice(0, 2)),
        lambda ds: ds.assign(status=ds.status + 1),
    ],
)
def test_a_rival_that_changes_other_data_is_refused(edit):
    with pytest.raises(jd.UsageError, match=r"rival 'r' returned .*(measured_z|status)"):
        rival_runs("r", edit, data(0.1))


def test_a_rival_may_add_variables_and_copy_what_is_there():
    main = data(0.1)
    ds = rival_runs("r", lambda ds: ds.assign(helper=ds.measured_z * 2, measured_z=ds.measured_z.copy()), main)
    assert "helper" in ds


def test_what_a_rival_says_may_depend_on_the_data():
    main = data(0.1)
    assert rival_numbers("chance", {"share": lambda ds: 1 / ds.sizes["seed"], "gain": 0}, main, ["share", "gain", "more"]) == {
        "share": 0.25,
        "gain": 0.0,
    }
    assert np.isnan(rival_numbers("r", {"gain": float("nan")}, main, ["gain"])["gain"])


@pytest.mark.parametrize("value", [True, "0", None, [1.0, 2.0], 1j, lambda ds: ds.measured_z])
def test_a_rival_says_one_number(value):
    with pytest.raises(jd.UsageError, match="rival 'r' says .* of 'gain', which is not allowed: it is one number"):
        rival_numbers("r", {"gain": value}, data(), ["gain"])


def test_a_rival_speaks_of_checks_that_are_there():
    with pytest.raises(jd.UsageError, match="rival 'r' speaks of 'loss'; the judge has 'gain', 'share'"):
        rival_numbers("r", {"loss": 0.0}, data(), ["gain", "share"])


def test_a_control_may_change_what_was_measured():
    assert float(edited_runs("control 'c'", jd.swap(measured_z=0.0), data()).measured_z.max()) == 0.0


def test_controls_whose_runs_end_early_decide_by_that():
    lost, some = data(status=failing(8)), data(status=failing(3))
    assert failed_control("c", jd.Control({"x": 1.0}), lost).rejected is False
    assert failed_control("c", jd.Control({"x": 1.0}, diverges=True), lost).rejected is True
    assert failed_control("c", jd.Control({"x": 1.0}, diverges=True), some).rejected is False
    assert failed_control("c", jd.Control({"x": 1.0}), some) is None
    assert DIVERGED in lost.status


def test_an_edit_leaves_the_axes_of_runs_first():
    """Judges tell settings from a run's own axes by the order."""
    main = data()
    odd = xr.DataArray([True, False, False], dims="entry")
    ds = edited_runs("rival 'r'", lambda ds: ds.assign(predicted_z=xr.where(odd, 0.0, ds.predicted_z)), main)
    assert ds.predicted_z.dims == main.predicted_z.dims
    np.testing.assert_array_equal(ds.predicted_z, main.predicted_z.where(~odd, 0.0))
