"""A training run on a text, and what its setting refuses."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.orth.dynamics import directions
from jaxdyn.theories.orth.trials.text import Watched, trial

SIZES = {"width": 32, "vectors": 20, "layers": 1, "max_words": 60}
TINY = {**SIZES, "columns": 2, "length": 16, "steps": 2, "every": 1, "text": "markov"}


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"network": "gpt"}, "network is one of encoder, rotary"),
        ({"every": 4}, "steps is a positive multiple of every"),
        ({"vectors": 33}, "vectors is from 2 to the width"),
        ({"width": 16}, "width is at least 32"),
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
