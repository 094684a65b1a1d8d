"""A training run on a text, and what its setting refuses; the judges of trained embeddings on made-up runs."""

import jax
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.orth import model, trained
from jaxdyn.theories.orth.dynamics import directions
from jaxdyn.theories.orth.trained import SHARES, Watched, trial

SIZES = {"width": 32, "vectors": 20, "layers": 1, "max_words": 60}
TINY = {**SIZES, "columns": 2, "length": 16, "steps": 2, "every": 1, "text": "markov"}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"network": "gpt"}, "network is one of encoder, rotary"),
        ({"every": 4}, "steps is a positive multiple of every"),
        ({"vectors": 33}, "vectors is at most the width"),
    ],
)
def test_bad_readings_are_refused(bad, words):
    with pytest.raises(jd.UsageError, match=words):
        Watched(**(TINY | bad))


@pytest.mark.slow
def test_a_training_run_starts_at_its_seed_and_learns(x64):
    s = jd.grid(Watched, **(TINY | {"steps": 20, "every": 20, "lr": 0.01})).cells()[0]
    found = jax.jit(trial)(s, jax.random.key(0))
    loss = np.asarray(found.recorded["loss"].value)
    assert loss.shape == (2,) and loss[1] < loss[0] and abs(loss[0] - np.log(61)) < 1
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(found.measured))
    weights, everything = found.predicted["cosine"].value
    random = float(directions.mean_absolute_cosine(32.0))
    np.testing.assert_allclose(everything, random, rtol=1e-5)
    np.testing.assert_allclose(weights[0], [random, 1, 1, 1, 1, random], rtol=1e-5)


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
    assert passed(trained.judge_weights(good)) and passed(trained.judge_start(text_runs(1.1)))
    assert not passed(trained.judge_start(text_runs(1.3))) and not passed(trained.judge_start(text_runs(1.0)))
    assert all(abs(r.value - 1.2) < 0.01 for r in trained.read_every(good))
    for bad in (
        text_runs(2.6),
        trained.narrowed(0)(good),
        jd.scaled(predicted_cosine=1.2)(good),
        text_runs(1.0),
    ):
        assert not passed(trained.judge_weights(bad))
    half = trained.narrowed(1)(good)
    assert not passed(trained.judge_start(trained.narrowed(1)(text_runs(1.1))))
    assert not passed(trained.judge_start(jd.scaled(predicted_gram=1.05)(text_runs(1.1))))
    assert half.measured_cosine.dims == good.measured_cosine.dims
    np.testing.assert_array_equal(half.measured_cosine.isel(group=1), good.measured_cosine.isel(group=1))
