"""Judges of the claims on the transform and the loss."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.claims import loss as claims
from jaxdyn.theories.cogo.trials import loss as trials


@pytest.fixture(scope="module")
def runs():
    return jd.sweep(trials.trial, jd.grid(trials.Weights, groups=("4",), hidden=2), seeds=2)


def test_judges_accept_and_reject(runs):
    ds = runs.sel(form="derived", drop=True)
    for judge, names in (
        (claims.judge_fourier, ("weights", "mirror", "power", "imaginary")),
        (claims.judge_decomposition, ("loss", "centred")),
        (claims.judge_forms, ("loss", "gram")),
    ):
        assert all(c.passed for c in judge(ds))
        for name in names:
            distorted = ds.assign({f"predicted_{name}": 1.1 * ds[f"predicted_{name}"]})
            assert not all(c.passed for c in judge(distorted)), name
    printed = runs.sel(form="printed", drop=True)
    assert [c.passed for c in claims.judge_fourier(printed)] == [False, False, False, True]
    assert [c.passed for c in claims.judge_decomposition(printed)] == [False, True]
