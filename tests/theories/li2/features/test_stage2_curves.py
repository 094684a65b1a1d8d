"""Nodes over time: the trials at a tiny size, their times on known curves, the judges on planted curves and times."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from jaxdyn.errors import UsageError
from jaxdyn.theories.li2 import model, training
from jaxdyn.theories.li2.features import stage2_curves
from jaxdyn.theories.li2.training import Training
from tests.theories.li2.helpers import opponents, passes, read, refused, refuses_opponents

S = Training(group="5", hidden=6, share=0.6, lr=0.5, epochs=40, every=2, optimizer="sgd")


def test_a_level_is_crossed_between_records_by_a_power():
    x = np.arange(0, 20.0, 2)
    with jax.enable_x64(True):
        assert float(stage2_curves.crossed(jnp.asarray(x), jnp.asarray(0.01 * x**2), 0.5)) == pytest.approx(50**0.5, rel=1e-9)
        assert float(stage2_curves.crossed(jnp.asarray(x), jnp.asarray(0.0001 * x), 0.5)) == 0
        assert float(stage2_curves.crossed(jnp.asarray(x), jnp.ones(10), 0.5)) == 0


def test_the_largest_record_is_found_and_none_at_the_ends():
    x = np.arange(0, 60.0, 2)
    with jax.enable_x64(True):
        for top in (25.0, 30.7):
            assert float(stage2_curves.highest(jnp.asarray(x), jnp.asarray(1 - (x - top) ** 2 / 1e4))) == pytest.approx(
                top, abs=1e-6
            )
        assert float(stage2_curves.highest(jnp.asarray(x), jnp.asarray(x))) == 0


@pytest.mark.slow
def test_the_heights_of_a_maximum_are_one():
    """A node in one frequency of Z_5: cosines of any phases, by hand."""
    from jaxdyn.data.groups import parse
    from jaxdyn.data.irreps import decompose

    g = np.arange(5)
    w = np.concatenate([np.cos(2 * np.pi * (2 * g) / 5 + 0.3), np.cos(2 * np.pi * (2 * g) / 5 + 1.1)])[:, None]
    with jax.enable_x64(True):
        np.testing.assert_allclose(stage2_curves.heights(jnp.asarray(w), decompose(parse("5")))[:, 0], 1, rtol=1e-6)


@pytest.mark.slow
def test_network_and_flow_start_together_and_the_rest_is_recorded():
    with jax.enable_x64(True):
        run = stage2_curves.trial(S, jax.random.key(0))
        predicted, measured = (np.asarray(group["height"].value) for group in (run.predicted, run.measured))
        assert predicted.shape == measured.shape == (21, 2, 6)
        np.testing.assert_allclose(predicted[0], measured[0], rtol=1e-4)
        assert np.all(np.isfinite(predicted)) and set(stage2_curves.WORLDS[1:]) <= set(run.recorded)
        size = np.asarray(run.recorded["outputs"].value)
        assert np.all(size <= stage2_curves.rise.END * (1 + 1e-9)) and np.all(np.diff(size) >= -1e-3)
        late = stage2_curves.until(S, jax.random.key(0))
        np.testing.assert_allclose(late.recorded["curve_energy"].value, measured[:, 0].mean(-1), rtol=1e-4)
        time = 0.5 * np.arange(0, 41, 2)
        assert float(late.predicted["until"].value) == pytest.approx(float(stage2_curves.crossed(time, size, stage2_curves.SMALL)))


def test_other_trainers_are_refused():
    with pytest.raises(UsageError, match="gradient descent with momentum"):
        stage2_curves.trial(dataclasses.replace(S, optimizer="adam"), jax.random.key(0))


def test_the_momentum_is_the_trainers():
    """Two steps of constant force move by 1 and then 1 + momentum."""
    still, pull = (model.Params(jnp.full((10, 6), x), jnp.full((6, 5), x)) for x in (0.0, 1.0))
    tx = training.make_optimizer(S)
    first, state = tx.update(pull, tx.init(still), still)
    second, _ = tx.update(pull, state, still)
    np.testing.assert_allclose(second.w / first.w, 1 + training.MOMENTUM, rtol=1e-6)


CURVES, UNTIL = stage2_curves.CLAIMS


def planted(error=0.02, seed=0):
    """Each node grows as its own exponential; the network's is slower by a part ``error``; outputs are .02 e^(t / 10)."""
    rng = np.random.default_rng(seed)
    t, rate = np.arange(0, 121, 3.0), rng.uniform(0.02, 0.06, (8, 1, 1, 24))
    dims = ("seed", "epoch", "quantity", "node")
    grown = np.minimum(0.1 * np.exp(rate * t[:, None, None] + np.zeros((1, 1, 2, 1))), 1.0)
    told = xr.DataArray(grown, dims=dims)
    outputs = xr.DataArray(np.minimum(0.02 * np.exp(t / 10), 2) + np.zeros((8, 1)), dims=("seed", "epoch"))
    late = told.isel(epoch=0) + (told - told.isel(epoch=0)) * 2
    ds = xr.Dataset({"predicted_height": told, "measured_height": told.isel(epoch=0) + (told - told.isel(epoch=0)) * (1 - error)})
    ds = ds.assign(outputs=outputs, factor=late.mean("node"), other=xr.zeros_like(late.mean("node")) + 0.1)
    return ds.assign(curve_test=xr.ones_like(outputs)).assign_coords(seed=np.arange(8), epoch=t, quantity=["energy", "purity"])


def test_the_window_ends_where_outputs_stop_being_small():
    """.02 e^(t / 10) is .5 at t = 32.2: records 0, 3, ..., 30 are inside."""
    assert np.all(stage2_curves.window(planted()).sum("epoch") == 11)


def test_errors_are_parts_of_the_change():
    ds = planted(0.05)
    np.testing.assert_allclose(stage2_curves.apart(ds), 0.05 / 0.95, rtol=1e-9)
    own, told = (np.asarray(ds[name].isel(epoch=10) - ds[name].isel(epoch=0)) for name in ("measured_height", "predicted_height"))
    by_hand = 1 - ((own - told) ** 2).sum(-1) / ((own - own.mean(-1, keepdims=True)) ** 2).sum(-1)
    np.testing.assert_allclose(stage2_curves.explained(ds), by_hand, rtol=1e-9)


def test_the_judge_upholds_what_is_planted_and_refuses_others():
    assert passes(CURVES, planted())
    refuses_opponents(CURVES, planted())
    assert not passes(CURVES, planted(0.2))


def test_growth_at_constant_speed_ends_where_the_flow_does():
    ds = planted()
    other = stage2_curves.steady(ds)
    np.testing.assert_allclose(other.isel(epoch=10), ds.predicted_height.isel(epoch=10))
    np.testing.assert_allclose(other.isel(epoch=5) - other.isel(epoch=0), (other.isel(epoch=10) - other.isel(epoch=0)) / 2)


def times(seed=0, width=0.0, rate=0.3):
    """Times that are powers of width and rate, the theory's in the rate alone; 5% noise."""
    rng = np.random.default_rng(seed)
    hidden, lr = np.array([32.0, 96, 256]), np.array([0.4, 0.7, 1.2])
    told = 25 * lr**0.3 * np.ones((16, 3, 1))
    seen = 35 * lr**rate * hidden[:, None] ** width * np.exp(0.05 * rng.normal(size=(16, 3, 3)))
    dims = ("seed", "hidden", "lr")
    ds = xr.Dataset({"predicted_until": (dims, told), "measured_until": (dims, seen), "last": (dims, 120 * lr + 0 * told)})
    return ds.assign_coords(seed=np.arange(16), hidden=hidden, lr=lr)


def test_powers_are_found():
    found = stage2_curves.power(times(width=-0.2).measured_until, "hidden")
    assert float(found.mean()) == pytest.approx(-0.2, abs=0.02)
    assert float(stage2_curves.power(times().measured_until, "lr").mean()) == pytest.approx(0.3, abs=0.03)


def test_until_when_is_read_and_rivals_are_told_apart():
    found = read(UNTIL, times(width=-0.3, rate=0.5))
    assert found[stage2_curves.WIDTH].value == pytest.approx(-0.3, abs=0.02)
    assert found[stage2_curves.RATE].value == pytest.approx(0.2, abs=0.03)
    assert read(UNTIL, times())[stage2_curves.RATIO].value == pytest.approx(np.log(35 / 25), abs=0.05)
    refuses_opponents(UNTIL, times())
    rivals = opponents(UNTIL)
    assert not refused(UNTIL, times(width=-1.0), rivals["outputs are sums over nodes: inverse in K"])
    assert not refused(UNTIL, times(rate=0.0), rivals["momentum is a factor: the same training time at all rates"])
