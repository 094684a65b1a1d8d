"""Who sees the start token: masks and sequences by world, weights of a head by hand, and the judge on made-up weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.data import backcopy
from jaxdyn.theories.sink import model, visibility

SMALL = {"vocabulary": 9, "length": 12, "width": 8, "hidden": 8, "batch": 4, "steps": 20}


def drawn(world, count=40):
    """Sequences of a world, and which pairs of query and key its masks hide in some of them."""
    s = visibility.Visible(world=world, **SMALL)
    part = visibility.rows(s, backcopy.law(jax.random.key(0), 9, 3), jax.random.key(1), count)
    return np.asarray(part.tokens), np.asarray(part.mask)


@pytest.mark.slow
@pytest.mark.parametrize(("world", "place"), [("seen by all", 4), ("hidden from half", 0), ("no start token", 4)])
def test_one_key_is_hidden_from_half_of_the_queries(world, place):
    tokens, mask = drawn(world)
    assert tokens.shape == (40, 13) and mask.shape == (40, 12, 12)
    others = np.delete(np.arange(12), place)
    np.testing.assert_array_equal(mask[:, :, others], np.broadcast_to(np.tri(12, dtype=bool)[:, others], (40, 12, 11)))
    assert mask[:, place, place].all() and 0.4 < mask[:, place + 1 :, place].mean() < 0.6
    assert (tokens[:, 1:] > 0).all() and ((tokens[:, 0] == 0).all() if world != "no start token" else (tokens[:, 0] > 0).all())


@pytest.mark.slow
def test_worlds_share_their_texts():
    seen, hidden, absent = (drawn(world)[0] for world in visibility.WORLDS)
    np.testing.assert_array_equal(seen, hidden)
    np.testing.assert_array_equal(seen[:, 1:], absent[:, :-1])


def test_a_head_gives_nothing_to_a_hidden_key(x64):
    params = model.init(jax.random.key(0), 7, 6, 8, 12, "float64")
    mask = jnp.tri(5, dtype=bool).at[3, 0].set(False)
    seen = model.forward(params, jnp.arange(5), visibility.SOFTMAX, mask)[1]
    scores = np.asarray(seen.scores)
    np.testing.assert_allclose(seen.weights[3, 1:4], np.exp(scores[3, 1:4]) / np.exp(scores[3, 1:4]).sum(), rtol=1e-9)
    assert float(seen.weights[3, 0]) == 0 and float(seen.weights[2, 0]) > 0


@pytest.mark.slow
def test_short_runs():
    ds = jd.sweep(visibility.trial, jd.grid(visibility.Visible, world=list(visibility.WORLDS), **SMALL), 2)
    assert bool((ds.status == 0).all()) and bool((ds.measured_share > 0).all())
    np.testing.assert_allclose(ds.measured_share, ds.weight / ds.uniform, rtol=1e-6)
    own = ds.own.squeeze()
    assert float(own.sel(world="hidden from half").min()) > 0 and float(own.sel(world="seen by all").max()) == 0


def made(hidden=2.0, absent=1.0):
    """Sixteen runs of every world."""
    noise = 0.2 * np.random.default_rng(0).normal(size=(3, 16))
    share = np.array([[4.0], [hidden], [absent]]) + noise
    ds = {"measured_share": (("world", "seed"), share), "copy_loss": (("world", "seed"), np.full((3, 16), 0.05))}
    ds |= {"excess": (("world", "seed"), np.full((3, 16), 0.02))}
    return xr.Dataset(ds, coords={"world": list(visibility.WORLDS)})


def test_weights_of_tokens_that_fewer_see():
    def decided(ds):
        return [c.passed for c in visibility.judge(ds) if not c.gate]

    assert decided(made()) == [True, True]
    assert decided(made(hidden=4.0)) == [False, True] and decided(made(absent=4.0)) == [True, False]
    assert decided(jd.rolled(measured_share="world")(made())) != [True, True]
    assert [c.passed for c in visibility.judge(made().assign(copy_loss=1 + made().copy_loss)) if c.gate] == [False, True]
    assert {visibility.HALF, visibility.ABSENT} == {c.name for c in visibility.judge(made()) if not c.gate}
