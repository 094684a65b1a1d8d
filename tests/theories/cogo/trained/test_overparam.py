"""How fast networks are trained: rates of planted losses, several widths in one short sweep, and the judge on made-up data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.theories.cogo.dynamics import relax
from jaxdyn.theories.cogo.trained import overparam
from jaxdyn.theories.cogo.training import Training
from tests.theories.cogo.oracle import passes


@pytest.mark.parametrize(
    ("loss", "rate"), [([1, 0.1, 9e-4, 5e-4], 1 / 40), ([1, 0.5, 0.2, 1e-3], 0.0), ([5e-4] * 4, 1.0), ([1, 2e-3, 2e-3, 0], 1 / 60)]
)
def test_the_rate_is_one_over_the_first_epoch_below_the_level(monkeypatch, x64, loss, rate):
    asked = []

    def train(s, key, solved):
        asked.append(solved)
        return type("Run", (), {"curves": {"train_loss": jnp.asarray(loss)}})

    monkeypatch.setattr(overparam, "train", train)
    seen = overparam.trial(Training(group="7", hidden=15, epochs=60, every=20), jax.random.key(0))
    np.testing.assert_allclose(seen.measured["rate"].value, rate, rtol=1e-12)
    assert asked == [overparam.SOLVED] and (float(seen.recorded["enough"].value), float(seen.recorded["least"].value)) == (18, 14)


def test_a_trial_of_widths():
    grid = jd.grid(Training, width=[7.0, 15.0], group="7", hidden=15, epochs=40, every=20)
    runs = jd.sweep(overparam.trial, grid, 1)
    assert np.all(runs.measured_rate == 0)  # not solved in 40 epochs
    np.testing.assert_allclose(runs.predicted_rate.isel(seed=0), [relax.start_rate(7, q) for q in (7, 15)], rtol=1e-6)


def widths():
    """Made-up runs whose rate rises with the width up to 512 nodes."""
    widths, rng = [46.0, 66.0, 256.0, 512.0, 1024.0, 2048.0], np.random.default_rng(0)
    rate = np.array([0.0, 0.006, 0.011, 0.0133, 0.012, 0.009])[:, None] * (1 + 0.03 * rng.normal(size=(6, 20)))
    return xr.Dataset(
        {
            "measured_rate": (("width", "seed"), rate),
            "predicted_rate": (("width", "seed"), np.repeat([[1.0], [1.2], [2.0], [3.0], [5.0], [9.0]], 20, 1)),
            "enough": (("width", "seed"), np.full((6, 20), 66.0)),
            "least": (("width", "seed"), np.full((6, 20), 46.0)),
            "status": (("width", "seed"), np.zeros((6, 20), int)),
        },
        coords={"width": widths},
    )


def test_judge_of_widths():
    ds = widths()
    assert passes(overparam.judge, ds)
    slow = ds.assign(measured_rate=ds.measured_rate.where(ds.width != 256, 0.0))
    for bad in (
        overparam.same_width(0)(ds),
        overparam.same_width(1)(ds),
        overparam.NARROW_FIRST(ds),
        overparam.KEEPS_PACE(ds),
        slow,
    ):
        assert not passes(overparam.judge, bad)
    with pytest.raises(jd.Inconclusive, match="width = 512 is needed"):
        overparam.judge(ds.isel(width=[0]))


def test_the_figure_can_be_drawn():
    fig = Figure()
    overparam.CLAIMS[0].plot(widths(), fig)
    assert len(fig.axes) == 2


def test_both_grids_have_the_epochs_of_the_statement():
    (claim,) = overparam.CLAIMS
    for scale in ("quick", "paper"):
        assert {s.epochs for s in claim.grid(scale).cells()} == {300}
    assert "300 epochs" in claim.statement and claim.seed_count("paper") > claim.seed_count("quick")
