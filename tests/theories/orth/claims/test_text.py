"""The judges of trained embeddings on made-up runs."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.orth import model
from jaxdyn.theories.orth.claims import text
from jaxdyn.theories.orth.trials.text import SHARES


def text_runs(ratio=1.2, runs=8):
    """Runs of a made-up training: embeddings of random directions at the start, ``ratio`` times that at the end."""
    rng, base, groups = np.random.default_rng(0), 0.05, model.names(1)
    start = 1 + 0.003 * rng.normal(size=(runs, 1, len(groups)))
    growth = np.array([1.0, ratio])[None, :, None]
    dims = ("seed", "step", "group")
    data = {"predicted_cosine": (dims, np.full((runs, 2, len(groups)), base)), "measured_cosine": (dims, base * start * growth)}
    data |= {"predicted_gram": (dims, np.full((runs, 2, len(groups)), 7.0)), "measured_gram": (dims, 7.0 * start * growth)}
    data["narrow"] = (("seed", "step", "share"), np.full((runs, 2, 2), base) * [4, np.sqrt(2)])
    return xr.Dataset(data, coords={"group": list(groups), "share": list(SHARES)})


def passed(checks):
    return all(c.passed for c in checks)


def test_judges_of_training_reject_what_is_not_random_or_leaves_it():
    good = text_runs()
    assert passed(text.judge_weights(good)) and passed(text.judge_start(text_runs(1.1))) and passed(text.judge_every(good))
    assert not passed(text.judge_start(text_runs(1.3)))
    for bad in (text_runs(2.6), text.narrowed(0)(good), jd.scaled(predicted_cosine=1.2)(good), text.untouched(text_runs(1.0))):
        assert not passed(text.judge_weights(bad))
    half = text.narrowed(1)(good)
    assert not passed(text.judge_start(text.narrowed(1)(text_runs(1.1))))
    assert not passed(text.judge_start(jd.scaled(predicted_gram=1.05)(text_runs(1.1))))
    assert half.measured_cosine.dims == good.measured_cosine.dims
    np.testing.assert_array_equal(half.measured_cosine.isel(group=1), good.measured_cosine.isel(group=1))
