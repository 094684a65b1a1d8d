"""The flow of potentials: padded rows, gradient flow of narrow networks, judges, and settings that are refused."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import Inconclusive
from jaxdyn.theories.cogo.flow import relax as claims
from jaxdyn.theories.cogo.flow.relax import padded, parts


def test_rows_end_in_zeros():
    np.testing.assert_array_equal(padded([jnp.ones((2, 2)), jnp.full(3, 2.0)]), [[1, 1, 1, 1], [2, 2, 2, 0]])


def test_parts_are_real_and_imaginary(x64):
    np.testing.assert_array_equal(parts([jnp.array([1 + 2j]), jnp.array([3j, 4])]), [[[1, 0], [0, 4]], [[2, 0], [3, 0]]])


def test_flow_of_a_narrow_network_is_not_exponential():
    ds = jd.sweep(claims.flow_trial, jd.grid(claims.Wide, width=[8.0, 16.0, 32.0], nodes=32), seeds=2)
    assert int(ds.status.max()) == 0
    assert np.allclose(claims.deviation(ds).isel(turns=0), 0, atol=1e-12)
    assert not claims.judge_relax(ds)[0].passed


@pytest.mark.parametrize("fields", [{"width": 5000.0}, {"group": "2x2"}, {"loss": "half"}, {"group": "x"}])
def test_settings_are_checked(fields):
    with pytest.raises(jd.UsageError):
        claims.Wide(**fields)


def test_judges_accept_and_reject():
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
    assert [c.passed for c in claims.judge_decouple(ds.assign(auto_ratio=0.1 * ds.auto_ratio))] == [True, True, True, False]
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
    assert names == ["rate / lambda less the predicted one, largest width"]
