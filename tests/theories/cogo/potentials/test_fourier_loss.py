"""The talks' transform, judges of the transform and of the loss, and settings that are refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.potentials import fourier_loss as trials


def test_the_talks_transform(x64):
    w = np.random.default_rng(3).normal(size=(3, 4, 3))
    want = np.einsum("km,pmj->pkj", np.exp(1j * np.outer(np.arange(4), np.arange(4)) / 4), w)
    assert np.allclose(trials.printed_transform(jnp.asarray(w)), want, atol=1e-14)


@pytest.mark.parametrize("fields", [{"groups": ("1",)}, {"groups": ()}])
def test_settings_are_checked(fields):
    with pytest.raises(jd.UsageError):
        trials.Weights(**fields)


@pytest.fixture(scope="module")
def runs():
    return jd.sweep(trials.trial, jd.grid(trials.Weights, groups=("4",), hidden=2), seeds=2)


def test_judges_accept_and_reject(runs):
    ds = runs.sel(form="derived", drop=True)
    for judge, names in (
        (trials.judge_fourier, ("weights", "mirror", "power", "imaginary")),
        (trials.judge_decomposition, ("loss", "centred")),
        (trials.judge_forms, ("loss", "gram")),
    ):
        assert all(c.passed for c in judge(ds))
        for name in names:
            distorted = ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})
            assert not all(c.passed for c in judge(distorted)), name
    printed = runs.sel(form="printed", drop=True)
    assert [c.passed for c in trials.judge_fourier(printed)] == [False, False, False, True]
    assert [c.passed for c in trials.judge_decomposition(printed)] == [False, True]
