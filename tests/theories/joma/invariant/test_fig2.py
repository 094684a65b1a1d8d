"""The judges of JoMA's Figure 2 on made-up data, and other estimates."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.joma.invariant import fig2
from jaxdyn.theories.joma.invariant.classes import SAMPLES, Classes, fig2_trial
from tests.theories.joma.helpers import upheld


def made_up(scale=1.2, tilt=0.0):
    """Logits that grow with time, an estimate that is ``scale`` times as large, and a part that does not belong there."""
    rng = np.random.default_rng(0)
    token = rng.normal(size=20)
    other = rng.normal(size=20)
    time = np.linspace(0, 1, SAMPLES + 1)
    z = time[:, None] * token
    estimate = scale * time[:, None] * (token + tilt * other)
    dims = ("data", "seed", "record", "token")
    wide = lambda a: (dims, np.broadcast_to(a, (2, 3, *a.shape)) * (1 + 1e-3 * np.arange(3))[:, None, None])  # noqa: E731
    each = lambda a: (dims[:3], np.broadcast_to(a, (2, 3, len(time))).copy())  # noqa: E731
    coords = {"data": ["gaussian", "random"], "record": range(SAMPLES + 1)}
    values = {"measured_z": wide(z), "predicted_z": wide(estimate), "drift": each(0.1 * time)}
    return xr.Dataset({**values, "gap": each(0.75 + 0 * time), "felt_gap": each(0.05 + 0 * time)}, coords=coords)


def early_made_up(*how):
    """The same at two ratios of the learning rates."""
    return made_up(*how).expand_dims(ratio=[0.1, 1.0], axis=1)


@pytest.mark.parametrize(
    ("scale", "tilt", "verdicts"),
    [
        (1.2, 0.0, [True] * 3),
        (1.35, 0.0, [True, False, True]),
        (1.05, 0.0, [True, False, True]),
        (1.2, 0.6, 3 * [False]),
    ],
)
def test_judge_of_fig2(scale, tilt, verdicts):
    assert [c.passed for c in fig2.judge_fig2(made_up(scale, tilt))] == verdicts


@pytest.mark.parametrize(("scale", "passes"), [(1.0, True), (1.1, True), (1.35, False), (0.7, False)])
def test_judge_of_the_early_phase(scale, passes):
    assert upheld(fig2.judge_early, early_made_up(scale)) == passes


@pytest.mark.parametrize("rival", [fig2.ALL_FELT, fig2.NO_GAP])
def test_judge_of_the_early_phase_rejects_another_residual(rival):
    assert not upheld(fig2.judge_early, rival(early_made_up(1.0)))


@pytest.mark.parametrize(("scale", "passes"), [(1.0, True), (1.25, True), (1.35, False), (0.6, False)])
def test_judge_of_the_moving_estimate(scale, passes):
    assert upheld(fig2.judge_moving, made_up(scale)) == passes


def test_judge_of_size_reports_error_and_drift():
    checks = fig2.judge_size(made_up(1.1))
    assert [c.passed for c in checks] == 2 * [True, None, True, False]  # at half time the drift is at its mark
    assert checks[2].value == pytest.approx(0.1)
    assert checks[3].value == pytest.approx(0.1)


def test_early_phase():
    """It ends where the mean attention has moved by 5%, holds the first record in any case, and never the start."""
    ds = made_up()
    assert fig2.early(ds).isel(data=0, seed=0).values.nonzero()[0].tolist() == list(range(1, 21))
    late = ds.assign(drift=ds.drift + 1)
    assert fig2.early(late).isel(data=0, seed=0).values.nonzero()[0].tolist() == [1]
    assert float(fig2.last(ds.record * (ds.drift >= 0), fig2.early(ds)).max()) == 20


def test_correlation_is_blind_to_size_and_offset():
    ds = made_up(3.0)
    nc = fig2.correlation(ds.measured_z, ds.predicted_z + 5).isel(record=-1)
    assert np.allclose(nc, 1)
    a, b = ds.measured_z.isel(data=0, seed=0, record=3), made_up(1.0, 0.7).predicted_z.isel(data=0, seed=0, record=3)
    assert np.isclose(fig2.correlation(a, b), np.corrcoef(a, b)[0, 1])


@pytest.fixture(scope="module")
def short():
    """Forty steps from a start that is larger than the paper's, so that all terms matter."""
    grid = jd.grid(Classes, data=["gaussian", "random"], init=0.5, lr=0.5, ratio=2.0, every=1.0)
    return jd.sweep(fig2_trial, grid, seeds=2)


def test_other_estimates_start_at_the_logits(short):
    ds = short.sel(form="constant")
    for other in (fig2.TERMS["nothing moves"], fig2.TERMS["second term alone"], fig2.PERMUTED_ROWS):
        wrong = other(ds)
        assert np.allclose(wrong.predicted_z.isel(record=0), ds.measured_z.isel(record=0))
        assert float(fig2.relative(wrong).isel(record=-1).min()) > 0.2
    assert np.allclose(fig2.CONSTANT_ATTENTION(short.sel(form="moving")).predicted_z, short.predicted_z.sel(form="constant"))
