"""The irreps that nodes hold: planted maxima, a Fourier transform by NumPy, and a planted training."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import energy
from jaxdyn.theories.li2.interaction import trained_features
from jaxdyn.theories.li2.model import Params
from jaxdyn.theories.li2.training import Run, Training

IRREPS = {name: decompose(parse(name)) for name in ("7", "S3")}
NODES = {name: jax.jit(lambda w, irreps=irreps: trained_features.nodes(w, irreps)) for name, irreps in IRREPS.items()}


@functools.cache
def planted(group):
    """Two nodes at maxima of every irrep but the last, of falling size, and three small ones there."""
    irreps = IRREPS[group]
    chosen = [numbers[0] for numbers in irreps.merged[1:]]
    counts = [2] * (len(chosen) - 1) + [3]

    @jax.jit
    def maxima(key):
        return [energy.random_maximum(key, irreps, k, count) for k, count in zip(chosen, counts, strict=True)]

    *w, dead = jax.device_get(maxima(jax.random.key(0)))
    peaks = [peak.energy for peak in energy.peaks(irreps) if set(peak.irreps) & set(chosen[:-1])]
    return np.concatenate([np.concatenate(w, 1) * np.linspace(1, 0.3, 2 * len(w)), 0.05 * dead], 1), np.mean(peaks)


@pytest.mark.parametrize("group", IRREPS)
def test_planted_maxima_are_held_whatever_their_size_and_dead_nodes_are_not(x64, group):
    w, peak = planted(group)
    found = NODES[group](w)
    others = len(IRREPS[group].merged) - 2
    assert (float(found.held), float(found.alive)) == (others, 2 * others), "the last is of dead nodes"
    np.testing.assert_allclose([found.purity, found.energy], [1, peak], rtol=1e-9)


def test_masses_of_a_cyclic_group_are_those_of_numpys_transform(x64):
    w = np.random.default_rng(0).normal(size=(14, 7))
    w /= np.linalg.norm(w, axis=0)
    power = sum(np.abs(np.fft.rfft(part, axis=0)[1:]) ** 2 for part in (w[:7], w[7:])) * 2 / 7
    found = NODES["7"](jnp.asarray(w))
    np.testing.assert_allclose(found.purity, power.max(0).mean(), rtol=1e-9)
    pure = power.max(0) >= trained_features.PURE
    assert float(found.held) == len(set(power.argmax(0)[pure]))


def test_the_trial_looks_at_the_end_of_its_training(monkeypatch, x64):
    curves = {"test_accuracy": jnp.asarray([0.1, 0.9]), "test_loss": jnp.asarray([2.0, 0.5])}
    monkeypatch.setattr(trained_features, "train", lambda s, key: Run(Params(jnp.asarray(planted("7")[0]), None), curves))
    monkeypatch.setattr(trained_features, "nodes", lambda w, irreps: NODES[irreps.group.name](w))
    run = trained_features.trial(Training(group="7", share=0.6, epochs=3, every=3), jax.random.key(0))
    assert (float(run.measured["held"].value), float(run.measured["loss"].value)) == (2, 0.5)
    assert float(run.recorded["irreps"].value) == 3 and float(run.recorded["alive"].value) == 4
    np.testing.assert_array_equal(run.recorded["test_accuracy"].value, curves["test_accuracy"])
