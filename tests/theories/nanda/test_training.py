"""One epoch by hand, and what the setting refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.nanda import model, training
from jaxdyn.theories.nanda.training import Training

P = 7


@pytest.mark.slow
def test_one_epoch_is_adamw_with_decoupled_decay(x64):
    s = Training(p=P, width=8, heads=2, hidden=12, share=0.5, epochs=1, every=1, dtype="float64")
    run = jax.jit(training.train, static_argnums=0)(s, jax.random.key(6))
    assert len(run.train) == 24 and sorted(np.concatenate([run.train, run.test])) == list(range(49))
    start, end = (jax.tree.map(lambda x, i=i: np.asarray(x)[i], run.weights) for i in (0, 1))
    pairs = model.all_pairs(P)[run.train]
    slope = jax.jit(jax.grad(lambda w: jnp.mean(model.loss(model.logits(w, pairs), model.answers(pairs, P)))))(start)
    for before, after, g in zip(*(jax.tree.map(np.asarray, x) for x in (start, end, slope)), strict=True):
        step = g / (np.abs(g) + 1e-8)  # both moments of the first step are the gradient's own
        np.testing.assert_allclose(after, before - s.lr * (step + s.decay * before), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"p": 8}, "p=8 is not allowed: p is odd"),
        ({"width": 30}, "multiple of heads"),
        ({"share": 0.0}, "pairs to train"),
        ({"share": 1.0}, "pairs to train"),
        ({"epochs": 30, "every": 25}, "multiple of every"),
    ],
)
def test_bad_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Training, **fields)
