"""Trials of GaLore's claims: the problems are what their names say, and short runs do what the theory says."""

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.galore.dynamics import decay
from jaxdyn.theories.galore.trials import forms, optimizer, projected
from jaxdyn.theories.galore.trials.decay import Quadratic, bound_trial, descent_trial, problem


def test_entries_have_the_eigenvalues_that_are_stated(x64):
    b, c, g = problem(Quadratic(kind="entries"), jax.random.key(0))
    modes = decay.modes(b, c)
    np.testing.assert_allclose(modes.values[:2], [0.05, 0.5], atol=1e-10)
    assert np.all((modes.values[2:-4] > 0.79) & (modes.values[2:-4] < 1.21)) and np.all(abs(modes.values[-4:] - 3) < 0.031)
    kept, _, second = decay.lowest(modes, g)
    assert np.linalg.matrix_rank(kept, tol=1e-10) == 1 and abs(second - 0.5) < 1e-10
    np.testing.assert_allclose(kept @ modes.matrices[1].T, 0, atol=1e-10)  # neither factor is shared
    np.testing.assert_allclose(kept.T @ modes.matrices[1], 0, atol=1e-10)


def test_pairs_are_turned_counterexamples(x64):
    for flip, sign in ((0.0, 1), (1.0, -1)):
        b, c, g = problem(Quadratic(kind="pair", flip=flip), jax.random.key(0))
        modes = decay.modes(b, c)
        kept, _, _ = decay.lowest(modes, g)
        s = np.linalg.svd(kept)[1]
        assert 0.15 < s[1] / s[0] < 0.35
        u, _, vt = np.linalg.svd(kept)
        assert np.sign(u[:, 0] @ (g - kept) @ vt[0]) == -sign  # negative: the spectral norm is below that of the part


@pytest.mark.parametrize("kind", ["entries", "pair"])
def test_short_descents(kind):
    grid = jd.grid(Quadratic, kind=kind, step=0.4, every=1)
    ds = jd.sweep(descent_trial, grid, 3)
    assert float(jd.relative_error(ds, "gradient", "row col").max()) < 1e-10
    bounds = jd.sweep(bound_trial, grid, 3)
    excess = bounds.measured_bound - bounds.predicted_bound
    assert float(excess.sel(form="corrected").max()) < 1e-9
    assert (float(excess.sel(form="printed").max()) > 0.05) == (kind == "pair")


def test_chains_and_logits():
    ds = jd.sweep(forms.chain_trial, jd.grid(forms.Chain, depth=2, layer=["leaky", "bias"], steps=20), 3)
    error = jd.relative_error(ds, "gradient", "row col").max(("seed", "place"))
    assert error.sel(layer="leaky") < 1e-10 < error.sel(layer="bias")
    ds = jd.sweep(forms.logits_trial, jd.grid(forms.Logits, size=1e-4, depth=2), 3)
    assert float(jd.relative_error(ds, "linear", "place row col").max()) < 1e-3


def test_fixed_and_switching_subspaces():
    ds = jd.sweep(projected.fixed_trial, jd.grid(projected.Fixed), 3)
    assert float((ds.measured_worst_ratio - ds.predicted_worst_ratio).max()) < 1e-9
    assert float(jd.relative_error(ds, "end", "row col").max()) < 1e-9
    ds = jd.sweep(projected.switching_trial, jd.grid(projected.Switching, every=[0.0, 10.0], steps=600), 3)
    assert float(ds.measured_end.sel(every=10.0).max()) < 0.5 * float(ds.measured_end.sel(every=0.0).min())
    assert set(np.ravel(ds.measured_rank.sel(every=0.0).isel(time=-1))) == {4.0}


def test_inputs_of_low_rank():
    ds = jd.sweep(projected.span_trial, jd.grid(projected.Span, free=[0.0, 0.5]), 3)
    assert float(ds.beyond.sel(free=0.0).max()) < 1e-12 < float(ds.beyond.sel(free=0.5).min())
    assert set(np.ravel(ds.measured_null_dimensions)) == {40.0}


def test_optimizers():
    ds = jd.sweep(optimizer.full_rank_trial, jd.grid(optimizer.FullRank, steps=6, depth=2), 3)
    assert float(jd.relative_error(ds, "sgd", "place row col").max()) < 1e-9
    assert float(jd.relative_error(ds, "adam", "place row col").max()) < 1e-6
    ds = jd.sweep(optimizer.sides_trial, jd.grid(optimizer.Sides, steps=10, depth=2, every=[1.0, 5.0]), 3)
    error = jd.relative_error(ds, "change", "place row col").max(("seed", "side"))
    assert error.sel(every=1.0) < 1e-9 < error.sel(every=5.0)
    ds = jd.sweep(optimizer.agreement_trial, jd.grid(optimizer.Agreement, periods=2, every=3), 3)
    assert float(jd.relative_error(ds, "change", "place row col").max()) < 1e-5


def test_noise_keeps_the_first_row_where_it_is():
    ds = jd.sweep(optimizer.noisy_trial, jd.grid(optimizer.Noisy, noise=[5.0, 0.0], lr=0.02, steps=400), 16)
    left = ds.measured_left.isel(time=-1).mean("seed")
    assert float(left.sel(noise=5.0)) > 0.9 and float(left.sel(noise=0.0)) < 0.01
    np.testing.assert_allclose(left.sel(noise=5.0), ds.predicted_left.sel(noise=5.0).isel(time=-1, seed=0), atol=0.05)


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        (Quadratic, {"kind": "other"}), (Quadratic, {"step": -1.0}), (Quadratic, {"rows": 1}), (forms.Chain, {"depth": 1}),
        (forms.Chain, {"lr": 0.0}), (forms.Logits, {"size": 0.0}), (projected.Fixed, {"rank": 8}),
        (projected.Switching, {"every": -1.0}), (projected.Span, {"span": 8}), (optimizer.FullRank, {"rank": 7}),
        (optimizer.Agreement, {"side": "top"}), (optimizer.Noisy, {"finder": "guess"}),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(setting, wrong):
    with pytest.raises(UsageError, match="not allowed"):
        setting(**wrong)
