"""The judges on made-up runs, and their figures."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.plotting import render
from jaxdyn.theories.nanda.claims import progress


def grokked():
    """Made-up runs whose test loss falls at epoch 60, the restricted loss at 30, and whose logits are the algorithm's."""
    epoch, seeds = np.arange(0, 101, 10), 3
    chance = np.log(53.0)
    wave = np.cos(np.linspace(0, 20, 60)).reshape(1, 12, 5) * np.ones((seeds, 1, 1))

    def curve(fall, low, start=chance):
        return ("seed", "epoch"), np.broadcast_to(np.where(epoch < fall, start, low), (seeds, len(epoch)))

    curves = {
        "train_loss": curve(20, 1e-4),
        "test_loss": curve(60, 1e-3),
        "restricted_loss": curve(30, 1e-4),
        "excluded_loss": curve(30, 9.0, 3.0),
        "test_accuracy": curve(60, 1.0, 0.02),
        "gini": curve(60, 0.5, 0.1),
        "norm": curve(60, 500.0, 900.0),
    }
    return xr.Dataset(
        curves
        | {
            "predicted_restricted": curves["restricted_loss"],
            "measured_restricted": curves["restricted_loss"],
            "predicted_chance": ("seed", np.full(seeds, chance)),
            "measured_chance": ("seed", np.full(seeds, 9.0)),
            "predicted_logits": (("seed", "pair", "answer"), wave),
            "measured_logits": (("seed", "pair", "answer"), wave),
            "start_algorithm": (("seed", "pair", "answer"), 0 * wave),
            "start_logits": (("seed", "pair", "answer"), wave[:, ::-1]),
            "renamed_algorithm": (("seed", "pair", "answer"), 0.1 * wave),
            "renamed_logits": (("seed", "pair", "answer"), wave),
            "renamed_restricted": ("seed", np.full(seeds, 3.0)),
            "renamed_excluded": ("seed", np.full(seeds, 1e-4)),
            "keys": (("seed", "frequency"), np.broadcast_to(np.arange(26) < 4, (seeds, 26)).astype(float)),
        },
        coords={"epoch": epoch},
    )


def passes(judge, ds):
    return all(c.passed for c in judge(ds))


def test_judges_uphold_a_grokked_network_and_reject_breaches():
    ds = grokked()
    for judge in (progress.judge_progress, progress.judge_order, progress.judge_trig):
        assert passes(judge, ds)
        assert not passes(judge, progress.untrained(ds))
    assert not passes(progress.judge_progress, progress.renamed(ds))
    assert not passes(progress.judge_trig, progress.renamed(ds))
    assert not passes(progress.judge_order, jd.swap(restricted_loss="test_loss")(ds))
    assert not passes(progress.judge_order, jd.swap(test_loss=5.0)(ds))
    assert not passes(progress.judge_progress, jd.scaled(predicted_chance=3)(ds))
    assert not passes(progress.judge_trig, jd.scaled(predicted_logits=1.6)(ds))


def test_times_are_those_that_last():
    ds = grokked()
    assert progress.times(ds)["test"].values.tolist() == [60, 60, 60]
    bounced = ds.test_loss.copy()
    bounced[0, 8] = 9.0
    assert progress.times(ds.assign(test_loss=bounced))["test"].values.tolist() == [90, 60, 60]
    assert progress.since(ds.test_loss < 0).values.tolist() == [np.inf] * 3


def test_figures_can_be_drawn():
    for plot in (progress.plot_losses, progress.plot_trig):
        assert render(plot, grokked()).startswith("<svg")
