"""Judges of the claims on Occam's razor."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.claims import occam as claims
from jaxdyn.theories.cogo.trials import occam as trials


def test_judges_accept_and_reject():
    ds = jd.sweep(trials.path_trial, jd.grid(trials.Factored, steps=2, draws=4), seeds=2)
    ds = ds.sel(form="printed", drop=True)
    assert all(c.passed for c in claims.judge_path(ds)) and claims.judge_norm(ds)[0].passed
    for name in ("output", "ends"):
        assert not all(c.passed for c in claims.judge_path(ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})))
    assert not claims.judge_norm(ds.assign(predicted_floor=2 * ds.measured_floor))[0].passed
    third = claims.judge_tight(ds.assign(predicted_floor=ds.predicted_floor / 3))
    assert [c.passed for c in third] == [True, False]
    assert [c.passed for c in claims.judge_path(claims.same_norm(ds))] == [True, False]


def test_short_training_is_not_at_equilibrium():
    grid = jd.grid(trials.Pruned, steps=4, samples=2)
    ds = jd.sweep(trials.prune_trial, grid, seeds=1)
    assert ds.sizes["node"] == 24 and float(ds.energies.isel(step=0).item()) == pytest.approx(27.14, abs=0.05)
    checks = claims.judge_prune(ds)
    assert not any(c.passed for c in checks)
    done = ds.assign({f"measured_{n}": ds[f"predicted_{n}"] for n in ("nodes", "energy", "loss")})
    assert all(c.passed for c in claims.judge_prune(done))
    assert (
        not any(c.passed for c in claims.judge_prune(claims.unmoved(done))[2:])
        and not claims.judge_prune(claims.unmoved(done))[0].passed
    )
    for name in ("nodes", "energy", "loss"):
        assert not all(c.passed for c in claims.judge_prune(done.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})))
