"""The judges of the original parameters on small grids."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.snap.gradient import original as claims
from tests.theories.snap.helpers import passes


@pytest.fixture(scope="module")
def data():
    sizes = {"tokens": 14, "classes": 3, "distinct": 2, "dim": 14, "width": 14}
    grid = jd.grid(claims.Layered, product=["single", "factored"], frame=["orthonormal", "random"], misfit=[1.0, 14**0.5], **sizes)
    return jd.sweep(claims.trial, grid, seeds=3)


@pytest.mark.slow
def test_judge_of_a_single_matrix(data):
    good = data.sel(product="single", frame="orthonormal", misfit=1.0)
    assert passes(claims.judge_single, good)
    for breach in ({"frame": "random"}, {"product": "factored"}, {"misfit": 14**0.5}):
        where = {"product": "single", "frame": "orthonormal", "misfit": 1.0, **breach}
        assert not passes(claims.judge_single, data.sel(where))
    for name in ("y", "z"):
        assert not passes(claims.judge_single, good.assign({f"predicted_{name}": 1.1 * good[f"predicted_{name}"]}))


def test_judge_of_two_matrices(data):
    good = data.sel(product="factored", frame="orthonormal", misfit=1.0)
    assert passes(claims.judge_factored, good)
    assert not passes(claims.judge_factored, data.sel(product="single", frame="orthonormal", misfit=1.0))
    assert not passes(claims.judge_factored, good.assign(predicted_velocity=1.1 * good.predicted_velocity))
    reversed_order = good.assign(predicted_gain=-good.predicted_gain)
    assert not passes(claims.judge_factored, reversed_order)
    assert [c.passed for c in claims.judge_factored(claims.STILL(good))] == [False, False, True]
    assert not passes(claims.judge_single, claims.STILL(data.sel(product="single", frame="orthonormal", misfit=1.0)))


def test_judge_of_few_dimensions(data):
    one = data.sel(product="single", misfit=1.0).expand_dims(width=[14.0])
    near, far = ([c.passed for c in claims.judge_narrow(one.sel(frame=frame))] for frame in ("orthonormal", "random"))
    assert near == [False] * 3
    assert False not in far[:2]
    assert [c.passed for c in claims.judge_narrow(claims.AS_WITHOUT_OVERLAP(one.sel(frame="random")))] == [False] * 3
    with pytest.raises(jd.Inconclusive):
        claims.judge_narrow(one.isel(seed=[0]))


def test_settings_refuse_what_cannot_be():
    with pytest.raises(jd.UsageError, match="20 orthonormal"):
        claims.Layered(width=8)
    with pytest.raises(jd.UsageError, match="whole number"):
        claims.Layered(width=30)
