"""The trials of nodes over time at a tiny size, and their times on curves that are known."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.trials import rise, training
from jaxdyn.theories.li2.trials.training import Training

S = Training(group="5", hidden=6, share=0.6, lr=0.5, epochs=40, every=2, optimizer="sgd")


def test_a_level_is_crossed_between_records_by_a_power():
    x = np.arange(0, 20.0, 2)
    with jax.enable_x64(True):
        assert float(rise.crossed(jnp.asarray(x), jnp.asarray(0.01 * x**2), 0.5)) == pytest.approx(50**0.5, rel=1e-9)
        assert float(rise.crossed(jnp.asarray(x), jnp.asarray(0.0001 * x), 0.5)) == 0
        assert float(rise.crossed(jnp.asarray(x), jnp.ones(10), 0.5)) == 0


def test_the_largest_record_is_found_and_none_at_the_ends():
    x = np.arange(0, 60.0, 2)
    with jax.enable_x64(True):
        for top in (25.0, 30.7):
            assert float(rise.highest(jnp.asarray(x), jnp.asarray(1 - (x - top) ** 2 / 1e4))) == pytest.approx(top, abs=1e-6)
        assert float(rise.highest(jnp.asarray(x), jnp.asarray(x))) == 0


def test_the_heights_of_a_maximum_are_one():
    """A node in one frequency of Z_5: cosines of any phases, by hand."""
    from jaxdyn.data.groups import parse
    from jaxdyn.data.irreps import decompose

    g = np.arange(5)
    w = np.concatenate([np.cos(2 * np.pi * (2 * g) / 5 + 0.3), np.cos(2 * np.pi * (2 * g) / 5 + 1.1)])[:, None]
    with jax.enable_x64(True):
        np.testing.assert_allclose(rise.heights(jnp.asarray(w), decompose(parse("5")))[:, 0], 1, rtol=1e-6)


def test_network_and_flow_start_together_and_the_rest_is_recorded():
    with jax.enable_x64(True):
        seen = rise.trial(S, jax.random.key(0))
        told, found = (np.asarray(group["height"].value) for group in (seen.predicted, seen.measured))
        assert told.shape == found.shape == (21, 2, 6)
        np.testing.assert_allclose(told[0], found[0], rtol=1e-4)
        assert np.all(np.isfinite(told)) and set(rise.WORLDS[1:]) <= set(seen.recorded)
        size = np.asarray(seen.recorded["outputs"].value)
        assert np.all(size <= rise.rise.END * (1 + 1e-9)) and np.all(np.diff(size) >= -1e-3)
        late = rise.until(S, jax.random.key(0))
        np.testing.assert_allclose(late.recorded["curve_energy"].value, found[:, 0].mean(-1), rtol=1e-4)
        time = 0.5 * np.arange(0, 41, 2)
        assert float(late.predicted["until"].value) == pytest.approx(float(rise.crossed(time, size, rise.SMALL)))


def test_other_trainers_are_refused():
    with pytest.raises(UsageError, match="gradient descent with momentum"):
        rise.trial(dataclasses.replace(S, optimizer="adam"), jax.random.key(0))


def test_the_momentum_is_the_trainers():
    """Two steps of constant force move by 1 and then 1 + momentum."""
    still, pull = (model.Params(jnp.full((10, 6), x), jnp.full((6, 5), x)) for x in (0.0, 1.0))
    tx = training._optimizer(S)
    first, state = tx.update(pull, tx.init(still), still)
    second, _ = tx.update(pull, state, still)
    np.testing.assert_allclose(second.w / first.w, 1 + training.MOMENTUM, rtol=1e-6)
