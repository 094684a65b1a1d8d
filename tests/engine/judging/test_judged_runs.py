"""Which runs a judge is asked about, and what checks know of them: judged or not, undefined, and which axes are of settings."""

import itertools
import math
import re

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxdyn as jd
from jaxdyn.engine.judging.judged_runs import (
    asked,
    ok_runs,
    only_judged,
    outside,
    select_form,
    which_judged,
    which_undefined,
    why_not_judged,
)
from jaxdyn.status import DIVERGED, OK
from tests.engine.handmade import data, failing


def test_runs_that_are_not_ok_are_nan_and_the_others_untouched():
    main = data(0.1, status=failing(3))
    usable = ok_runs(main)
    lost = np.isnan(usable.measured_z).all("entry")
    assert int(lost.sum()) == 3 and (lost == (main.status != 0)).all()
    assert usable.measured_z.where(~lost).equals(main.measured_z.where(~lost))
    whole = data()
    assert ok_runs(whole) is whole


def test_runs_outside_the_assumptions_are_left_out(claim):
    main = data().assign(assumed_overlap=data().status * 0 + np.array([[0.5], [1.5]]))
    judged = claim(assumes=jd.below("overlap", 1.0))
    assert int(outside(judged, main).sum()) == 4
    assert int(np.isnan(ok_runs(main, outside(judged, main)).measured_z).all("entry").sum()) == 4
    assert why_not_judged(judged, main) is None
    assert "no run lies inside the assumptions" in why_not_judged(claim(assumes=jd.below("overlap", 0.1)), main)


def test_too_few_runs_are_said(claim):
    why = why_not_judged(claim(), data(status=failing(3)))
    assert re.fullmatch(r"3 of 8 runs are not ok \(diverged\), the first at .*seed \d+; 100% are needed \(min_ok\)", why), why
    assert why_not_judged(claim(min_ok=0.5), data(status=failing(3))) is None
    for least in (0.0, 0.001, 1.0):
        why = why_not_judged(claim(min_ok=least), data(status=failing(8)))
        assert re.fullmatch(r"8 of 8 runs are not ok \(diverged\), the first at .*seed \d+; none is left to judge", why), why
    assert "; 99.5% are needed" in why_not_judged(claim(min_ok=0.995), data(status=failing(3)))


def test_an_infinite_prediction_is_not_blamed_on_the_network(claim):
    main = data(status=failing(1))
    at = main.status != OK
    assert "own predicted_z is not finite" in why_not_judged(claim(), main.assign(predicted_z=main.predicted_z.where(~at, np.inf)))
    for lost in ({"measured_z": main.measured_z.where(~at, np.inf)}, {}):
        why = why_not_judged(claim(), main.assign(**lost, **({"predicted_z": main.predicted_z.where(~at, np.inf)} if lost else {})))
        assert "theory's own" not in why and "1 of 8 runs is not ok (diverged), at " in why


def test_a_form_is_chosen_by_name():
    forms = data(forms={"derived": 1.0, "printed": 2.0})
    assert "form" not in select_form(forms, "printed").dims
    assert float(select_form(forms, "printed").predicted_z.max()) == 4.0
    for form, sentence in ((None, "must name one"), ("other", "it predicts derived, printed")):
        with pytest.raises(jd.UsageError, match=sentence):
            select_form(forms, form)
    with pytest.raises(jd.UsageError, match="leave out form="):
        select_form(data(), "printed")


# What checks know -----------------------------------------------------------------------------------------------------

SHAPE = (2, 3, 8)  # lr, width, seed
DIMS = ("lr", "width", "seed")


def runs(gain, keep, *, by_status=True):
    """Runs that record a gain and two losses of layers; those that are not kept diverged, or lie outside an assumption."""
    coords = {"lr": [0.1, 0.2], "width": [1, 2, 3], "seed": range(8), "layer": ["first", "last"]}
    status = np.where(keep | (not by_status), OK, DIVERGED)
    ds = xr.Dataset(
        {
            "gain": (DIMS, gain),
            "loss": ((*DIMS, "layer"), np.stack([gain, gain + 1], -1)),
            "assumed_u": (DIMS, np.where(keep, 0.0, 1.0)),
            "status": (DIMS, status),
        },
        coords,
    )
    return ok_runs(ds, (ds.status == OK) & (ds.assumed_u > 0.5))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from(list(itertools.permutations(DIMS))))
def test_shares_and_means_are_over_the_runs_that_are_judged(seed, by_status, order):
    """Flags are false, and sums zero, where there is no number: neither counts, whichever way the axes lie."""
    rng = np.random.default_rng(seed)
    gain, keep = rng.uniform(size=SHAPE), rng.uniform(size=SHAPE) < 0.6
    keep[..., 0] = True
    ds = runs(gain, keep, by_status=by_status)
    with asked(ds):
        for width in (0, 1, 2):
            part = ds.isel(width=[width]).transpose(..., *order)
            own, kept = gain[:, width], keep[:, width]
            for value, flags in ((own > 0.5, part.gain > 0.5), (own <= 0.5, ~(part.gain > 0.5)), (own < 2, part.gain < 2)):
                share = jd.share_within("share", flags.isel(lr=0), over="seed", high=2)
                assert share.value == pytest.approx(value[0][kept[0]].mean())
                each = jd.at_least("each", flags, 1)
                assert each.passed is bool(value[kept].all())
            total = jd.mean_within("total", part.loss.sum("layer").isel(lr=1, width=0), over="seed", high=9)
            if kept[1].sum() > 1:
                assert total.value == pytest.approx((2 * own + 1)[1][kept[1]].mean())


def test_a_value_of_several_runs_stays_if_one_of_them_is_judged():
    keep = np.ones(SHAPE, bool)
    keep[0, 0, 0] = keep[:, 1, 1] = False
    ds = runs(np.ones(SHAPE), keep)
    with asked(ds):
        left = only_judged((ds.gain > 0).any("lr").astype(float))
        assert left.isnull().values.nonzero()[0].tolist() == [1] and left.isnull().values.nonzero()[1].tolist() == [1]
        one = only_judged((ds.sel(lr=0.1).gain > 0).astype(float))
        assert int(one.isnull().sum()) == 2, "a selected value of an axis is known by its coordinate"
        assert only_judged(ds.gain.rename(seed="other").astype(float)).dims == (*DIMS[:2], "other")
    assert only_judged((ds.gain > 0).astype(float)).notnull().all(), "no judge is asked"


def test_flags_of_the_status_itself_count_every_run():
    keep = np.ones(SHAPE, bool)
    keep[..., :4] = False
    ds = runs(np.ones(SHAPE), keep)
    with asked(ds):
        assert jd.share_within("runs that end well", ds.status == OK, over="seed", low=0).value == 0.5


@given(st.permutations(DIMS), st.sampled_from([["seed", "lr"], ["seed", "lr", "width"], ["width", "seed"]]))
def test_the_order_of_axes_changes_no_interval(order, over):
    """Settings that share seeds are one number for each seed, however the axes lie."""
    rng = np.random.default_rng(0)
    gain = rng.normal(size=8) + 1e-3 * rng.normal(size=SHAPE)
    ds = runs(gain, np.ones(SHAPE, bool))
    with asked(ds):
        plain, moved = (
            [f("x", v, over=over, high=9) for f, v in ((jd.mean_within, x), (jd.share_within, x > 0), (jd.rms_within, x**2))]
            for x in (ds.gain, ds.gain.transpose(*order))
        )
    for one, other in zip(plain, moved, strict=True):
        assert one.interval == pytest.approx(other.interval) and one.value == pytest.approx(other.value)
    with asked(ds):
        own = jd.mean_within("x", ds.loss.transpose("layer", ...), over=["seed", "layer"], high=9)
        assert own.interval == pytest.approx(jd.mean_within("x", ds.loss, over=["seed", "layer"], high=9).interval)


def test_which_runs_are_judged_and_which_are_undefined():
    keep = np.ones(SHAPE, bool)
    keep[0, 0, 0] = False
    gain = np.ones(SHAPE)
    gain[0, 0, :2], gain[1, 1, 3] = math.nan, math.inf
    for by_status in (True, False):
        ds = runs(gain, keep, by_status=by_status)
        assert np.argwhere(~which_judged(ds).values).tolist() == [[0, 0, 0]]
        assert np.argwhere(which_undefined(ds).values).tolist() == [[0, 0, 1], [1, 1, 3]]
