"""Short training: the loss falls, and what is observed is what it says, against loops."""

import jax
import numpy as np
import pytest
from scipy.special import softmax

import jaxdyn as jd
from jaxdyn.data import chains
from jaxdyn.errors import UsageError
from jaxdyn.theories.ih import model
from jaxdyn.theories.ih.trials import phases
from jaxdyn.theories.ih.trials.phases import FIRST, Phases, trial


@pytest.mark.slow
def test_short_training():
    ds = jd.sweep(trial, jd.grid(Phases, first=[0.0, 1.0], length=24, every=8, samples=5), 2)
    assert int(ds.status.max()) == 0
    assert float(ds.measured_loss.isel(step=-1).max()) < 1.15 < float(ds.measured_loss.isel(step=0).min())
    assert float((ds.unigram_loss - ds.bigram_loss).min()) > 0
    np.testing.assert_allclose(ds.steps.isel(seed=0, first=0), 8 * np.arange(6))
    np.testing.assert_allclose(ds.pattern.sum("key"), 1, rtol=1e-5)


def test_observations_by_loops(x64):
    s = Phases(length=12, dtype="float64")
    p = jax.jit(lambda key: model.init(key, 3, 12, 16, "float64"))(jax.random.key(0))
    rows = np.random.default_rng(1).integers(0, 3, (4, 13))
    seen = jax.jit(lambda p: phases.observe(s, p, rows))(p)
    logits, weights = jax.device_get(jax.jit(model.forward)(p, rows[:, :-1]))
    unigram = jax.jit(lambda row: chains.unigram(row, 3, "float64"))
    losses, from_unigram, before, induced = [], [], [], []
    for row, m, b in zip(rows, softmax(logits, -1), np.moveaxis(weights, 1, 0), strict=True):
        q = np.asarray(unigram(row[:-1]))
        for t in range(FIRST, 12):
            losses.append(-np.log(m[t, row[t + 1]]))
            from_unigram.append(np.sum(m[t] * np.log(m[t] / q[t])))
            before.append(b[0, t, t - 1])
            keys = [u for u in range(1, t + 1) if row[u - 1] == row[t]]
            induced += [b[1, t, keys].sum()] if keys else []
    expected = {"loss": losses, "from_unigram": from_unigram, "before": before, "induced": induced}
    for name, values in expected.items():
        np.testing.assert_allclose(seen[name], np.mean(values), rtol=1e-9)


@pytest.mark.parametrize("wrong", [{"lr": 0.0}, {"tokens": 1}, {"length": 8}, {"batch": 0}, {"every": 0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Phases(**wrong)
