"""CoGO's flows on small groups."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import Inconclusive
from jaxdyn.theories.cogo.flow import occam
from jaxdyn.theories.cogo.flow import relax as claims
from jaxdyn.theories.cogo.flow.relax import padded, parts

# Occam's razor: live nodes, short training, judges, and settings that are refused.


def test_live_nodes():
    sizes = np.array([[1.0, 0.06, 0.04], [2.0, 0.0, 0.0]])
    assert list(occam.live(sizes)) == [2, 1]


@pytest.mark.parametrize("fields", [{"group": "3"}])
def test_settings_of_factors_are_checked(fields):
    with pytest.raises(jd.UsageError):
        occam.Factored(**fields)


@pytest.mark.parametrize("fields", [{"group": "2x2"}, {"steps": 30}])
def test_settings_of_training_are_checked(fields):
    with pytest.raises(jd.UsageError):
        occam.Pruned(**fields)


@pytest.mark.slow
def test_judges_accept_and_reject():
    ds = jd.sweep(occam.path_trial, jd.grid(occam.Factored, steps=2, draws=4), seeds=2)
    ds = ds.sel(form="printed", drop=True)
    assert all(c.passed for c in occam.judge_path(ds)) and occam.judge_norm(ds)[0].passed
    for name in ("output", "ends"):
        assert not all(c.passed for c in occam.judge_path(ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})))
    assert not occam.judge_norm(ds.assign(predicted_floor=2 * ds.measured_floor))[0].passed
    third = occam.judge_tight(ds.assign(predicted_floor=ds.predicted_floor / 3))
    assert [c.passed for c in third] == [True, False]
    assert [c.passed for c in occam.judge_path(occam.SAME_NORM(ds))] == [True, False]


@pytest.mark.slow
def test_short_training_is_not_at_equilibrium():
    grid = jd.grid(occam.Pruned, steps=4, samples=2)
    ds = jd.sweep(occam.prune_trial, grid, seeds=1)
    assert ds.sizes["node"] == 24 and float(ds.energies.isel(step=0).item()) == pytest.approx(27.14, abs=0.05)
    checks = occam.judge_prune(ds)
    assert not any(c.passed for c in checks)
    done = ds.assign({f"measured_{n}": ds[f"predicted_{n}"] for n in ("nodes", "energy", "loss")})
    assert all(c.passed for c in occam.judge_prune(done))
    assert (
        not any(c.passed for c in occam.judge_prune(occam.STILL(done))[2:]) and not occam.judge_prune(occam.STILL(done))[0].passed
    )
    for name in ("nodes", "energy", "loss"):
        assert not all(c.passed for c in occam.judge_prune(done.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})))


# The flow of potentials: padded rows, gradient flow of narrow networks, judges, and settings that are refused.


def test_rows_end_in_zeros():
    np.testing.assert_array_equal(padded([jnp.ones((2, 2)), jnp.full(3, 2.0)]), [[1, 1, 1, 1], [2, 2, 2, 0]])


def test_parts_are_real_and_imaginary(x64):
    np.testing.assert_array_equal(parts([jnp.array([1 + 2j]), jnp.array([3j, 4])]), [[[1, 0], [0, 4]], [[2, 0], [3, 0]]])


@pytest.mark.slow
def test_flow_of_a_narrow_network_is_not_exponential():
    ds = jd.sweep(claims.flow_trial, jd.grid(claims.Wide, width=[8.0, 16.0, 32.0], nodes=32), seeds=2)
    assert int(ds.status.max()) == 0
    assert np.allclose(claims.deviation(ds).isel(turns=0), 0, atol=1e-12)
    assert not claims.judge_relax(ds)[0].passed


@pytest.mark.parametrize("fields", [{"width": 5000.0}, {"group": "2x2"}, {"group": "x"}])
def test_settings_are_checked(fields):
    with pytest.raises(jd.UsageError):
        claims.Wide(**fields)


@pytest.mark.slow
def test_relax_judges_accept_and_reject():
    ds = jd.sweep(claims.rdot_trial, jd.grid(claims.Potentials, groups=("2x2",), hidden=2), seeds=2)
    assert all(c.passed for c in claims.judge_rdot(ds))
    for name in ("spectrum", "velocity", "fall"):
        assert not all(c.passed for c in claims.judge_rdot(ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})))
    wide = jd.grid(claims.Wide, width=[16.0, 64.0, 256.0], nodes=256)
    ds = jd.sweep(claims.decouple_trial, wide, seeds=1024)
    assert all(c.passed for c in claims.judge_decouple(ds)), [str(c) for c in claims.judge_decouple(ds)]
    few = claims.judge_decouple(ds.isel(seed=slice(8)))  # too few seeds decide nothing
    assert [c.passed for c in few[1:3]] == [None, None]
    for factor in (1.1, 0.9):
        assert claims.judge_decouple(ds.assign(predicted_ratio=factor * ds.predicted_ratio))[1].passed is False
    assert claims.judge_decouple(ds.assign(predicted_diagonal=1.1 * ds.predicted_diagonal))[2].passed is False
    assert [c.passed for c in claims.judge_decouple(ds.assign(measured_auto_ratio=0.9 * ds.measured_auto_ratio))] == [
        True,
        True,
        True,
        False,
    ]
    with pytest.raises(Inconclusive):
        claims.judge_decouple(ds.isel(width=slice(2)))


def relaxing(seeds=32, n=4):
    """Made-up potentials that relax as predicted but for an error of 3% at 2048 nodes and a spread of 2% in the rate."""
    rng, turns = np.random.default_rng(0), np.linspace(0, 1.5, 5)
    widths = np.array([32.0, 128.0, 512.0, 2048.0])
    goal = np.zeros((2, n**3))
    goal[0, np.arange(n) * (n * n + n + 1)] = 1
    start = np.sqrt(widths)[:, None, None, None] * 0.1 * rng.normal(size=(4, seeds, 2, n**3))
    size = np.sqrt((np.square(start - goal)).sum(2).mean(2))
    error = np.sqrt(2048 / widths)[:, None]
    power = turns * (1 + 0.02 * error * rng.normal(size=(4, seeds)))[..., None]
    away = (start - goal)[:, :, None]
    noise = (0.015 * error * size)[..., None, None, None] * (turns / 1.5)[:, None, None] * rng.normal(size=(4, seeds, 5, 2, n**3))
    dims = ("width", "seed", "turns", "part", "potential")
    return xr.Dataset(
        {
            "predicted_r": (dims, goal + away * np.exp(-np.broadcast_to(turns, power.shape))[..., None, None]),
            "measured_r": (dims, goal + away * np.exp(-power)[..., None, None] + noise),
            "start": (("width", "seed"), size),
        },
        coords={"width": widths, "seed": np.arange(seeds), "turns": turns, "part": ["re", "im"]},
    )


def test_judge_of_relaxation_tells_half_the_goal_and_five_per_cent_of_the_rate():
    ds = relaxing()
    assert all(c.passed for c in claims.judge_relax(ds)), [str(c) for c in claims.judge_relax(ds)]
    for rival in (claims.STILL, claims.toward(0.0), claims.toward(0.5), claims.faster(1.05), claims.faster(0.95)):
        assert any(c.passed is False for c in claims.judge_relax(rival(ds)))
    names = [c.name for c in claims.judge_relax(claims.faster(0.95)(ds)) if c.passed is False]
    assert names == ["rate / lambda minus the predicted one, largest width"]
