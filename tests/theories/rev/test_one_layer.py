"""Batch-1 SGD against a replay in NumPy, the law of its mean against SciPy, and settings that are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import jaxdyn as jd
from jaxdyn.theories.rev import data, one_layer
from tests.theories.rev.helpers import SIZES, M, inside, plain


@pytest.mark.slow
def test_training_is_the_replayed_recursion(x64):
    """SGD replayed in NumPy on the trial's own draws of sequences."""
    s = inside(one_layer.OneLayer(**SIZES | {"steps": 500}))
    key = jax.random.key(3)
    facts = data.sample(jax.random.key(4), s.task, s.vocabulary, s.train_indices, s.test_indices)
    last, visits_at = jax.jit(lambda: one_layer.train_sgd(s, key, facts, lambda run: run.visits))()
    n = len(facts.train)
    y, visits = np.zeros((M, M)), np.zeros(n + 3, int)
    draws = jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(key, i), (), jnp.float64))(jnp.arange(500))
    for u in np.asarray(draws):
        i = int(u * n)
        x1, _, x3 = np.asarray(facts.train[i])
        p = np.exp(y[x1]) / np.exp(y[x1]).sum()
        y[x1] += 0.5 * (np.eye(M)[x3] - p)
        visits[i] += 1
    np.testing.assert_allclose(last.params.y, y, atol=1e-12)
    np.testing.assert_array_equal(last.visits, visits)
    np.testing.assert_array_equal(visits_at.sum(1), one_layer.record_steps(500))
    assert np.all(np.asarray(last.params.z) == 0)


@pytest.mark.slow
def test_mean_is_the_binomial_mixture(cot_runs):
    ds, n = plain(cot_runs).isel(seed=0), 3 * 4 + 2 * 3
    u = [0.0]
    while len(u) < 800:
        u.append(u[-1] + 0.5 * M / (M - 1 + np.exp(u[-1])))
    p = 1 / (1 + (M - 1) * np.exp(-np.array(u)))
    for i, t in enumerate(one_layer.record_steps(3000)):
        weight = scipy.stats.binom.pmf(np.arange(800), t, 1 / n)
        np.testing.assert_allclose(ds.predicted_mean.sel(token="target")[i], weight @ p, rtol=1e-9)


@pytest.mark.parametrize("task", ["reversal", "cot"])
def test_fewer_training_indices_are_shown(x64, task):
    s = inside(one_layer.OneLayer(**SIZES, task=task, shown=0.5))
    shown = np.asarray(one_layer.shown_mask(s))
    kinds, known = (2, 1) if task == "reversal" else (3, 2)
    np.testing.assert_array_equal(shown, [True, True, False, False] * kinds + [True] * 3 * known)
    law, n = one_layer.laws(s), shown.sum()
    np.testing.assert_allclose(law.time, M * 0.5 * np.array(one_layer.record_steps(3000)) / n)
    assert len(law.u) > 3000 / n  # visits of a row


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"vocabulary": 20}, "vocabulary=20 is not allowed: 94 tokens are used"),
        ({"shown": 0.001}, "shown shows at least one index"),
    ],
)
def test_settings_that_do_not_fit(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        one_layer.OneLayer(**fields)
