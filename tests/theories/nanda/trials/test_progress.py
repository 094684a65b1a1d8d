"""The trial's parts: renamed residues, types, shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.theories.nanda import model
from jaxdyn.theories.nanda.dynamics import progress as theory
from jaxdyn.theories.nanda.trials import progress
from jaxdyn.theories.nanda.trials.training import Training

P = 7


def cube(seed=2):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(P * P, P)))


def test_renaming_residues_moves_logits_answers_and_pairs_together(x64):
    z, order = cube(5), jnp.array([3, 0, 6, 1, 2, 5, 4], jnp.int32)
    new, known, numbers = progress.relabelled(z, order)
    before = model.loss(z, model.answers(model.all_pairs(P), P))
    np.testing.assert_allclose(model.loss(new, known)[numbers], before, rtol=1e-12)
    same = progress.relabelled(z, jnp.arange(P, dtype=jnp.int32))
    np.testing.assert_array_equal(same[0], z)
    np.testing.assert_array_equal(same[2], np.arange(P * P))


def test_measures_are_those_of_the_plain_forms(x64):
    """Restricted and trigonometric losses are made from a row for each sum: the same as on every pair."""
    w = jax.jit(lambda key: model.init(key, P, 8, 2, 12, "float64"))(jax.random.key(0))
    training, keys = np.arange(P * P) % 3 > 0, np.array([True, False, True])
    got = jax.jit(progress.measures)(w, keys, training)
    pairs = model.all_pairs(P)
    answers = np.asarray(model.answers(pairs, P))

    @jax.jit
    def plain(w):
        z = model.logits(w, pairs)
        alpha = jnp.where(keys, theory.amplitudes(z, pairs, training), 0)
        cubes = {"all": z, "restricted": theory.restricted(z, keys), "trig": theory.trig_logits(alpha, pairs, P)}
        return z, {name: model.loss(x, answers) for name, x in (cubes | {"excluded": theory.excluded(z, keys)}).items()}

    z, losses = jax.device_get(plain(w))
    parts = {"train": ("all", training), "test": ("all", ~training), "excluded": ("excluded", training)}
    for name, (cube, only) in (parts | {name: (name, ~training) for name in ("restricted", "trig")}).items():
        np.testing.assert_allclose(got[f"{name}_loss"], np.mean(losses[cube][only]), rtol=1e-12)
    right = np.argmax(z, 1) == answers
    for name, only in (("train", training), ("test", ~training)):
        np.testing.assert_allclose(got[f"{name}_accuracy"], np.mean(right[only]), rtol=1e-12)


@pytest.mark.slow
def test_trial_is_complete_and_float32_stays_so(x64):
    s = Training(p=P, width=8, heads=2, hidden=12, share=0.5, epochs=4, every=2)
    out = jax.jit(progress.trial, static_argnums=0)(s, jax.random.key(7))
    arrays = [x.value for group in (out.predicted, out.measured, out.recorded) for x in group.values()]
    assert {x.dtype for x in arrays} == {jnp.dtype("float32")}
    assert all(np.isfinite(x).all() for x in arrays)
    assert out.measured["logits"].value.shape == (25, P) and out.recorded["test_loss"].value.shape == (3,)
