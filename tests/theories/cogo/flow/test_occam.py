"""Occam's razor: live nodes, short training, judges, and settings that are refused."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.flow import occam


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
