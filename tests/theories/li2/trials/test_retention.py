"""The trial of theorem 4 on small runs; starts and settings that are refused."""

import functools

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.trials import retention
from jaxdyn.theories.li2.trials.retention import Retention, trial

SMALL = jd.grid(Retention, c=[0.7, 1.3, 2.4, 4.5], spread=1.85, starts=("11", "S3/2"), subsets=8, steps=60)


@functools.cache
def runs():
    return jd.sweep(trial, SMALL, 2)


@pytest.mark.slow
def test_trial_keeps_more_with_more_pairs():
    ds = runs()
    assert (ds.status == 0).all() and ds.measured_mass.dims == ("c", "seed", "object", "start", "subset")
    np.testing.assert_allclose(ds.share.isel(c=0, seed=0), [2 / 11, 4 / 6])
    np.testing.assert_allclose(ds.degree.isel(c=0, seed=0), [1, 2])
    whole = ds.measured_mass.where(ds.p == 1)
    assert int((ds.p == 1).sum()) > 5
    np.testing.assert_allclose(whole.min(), 1, atol=1e-9)
    kept = (ds.measured_mass > 0.6).mean(["seed", "subset"]).sel(start="11")
    assert bool((kept.isel(c=-1) > kept.isel(c=0)).all())
    assert bool((ds.p.diff("c") >= 0).all())


def test_blocks_of_subsets_change_nothing(monkeypatch):
    s = Retention(c=1.3, spread=1.85, starts=("11",), subsets=8, steps=60)

    def run():
        with jax.enable_x64(True):
            return jax.jit(lambda key: trial(s, key))(jax.random.key(0))

    whole = run()
    monkeypatch.setattr(retention, "LARGE", 5)
    monkeypatch.setattr(retention, "SOME", 3)
    assert retention.block(11, 8) == 2 and retention.block(4, 8) == 8
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-9), run(), whole)


def test_the_draws_of_a_start_do_not_depend_on_the_other_starts():
    other = jd.sweep(trial, SMALL.replace(starts=("11",), c=[1.3]), 1)
    ours = runs().sel(start=["11"], c=[1.3], seed=[0])
    np.testing.assert_array_equal(other.p, ours.p)
    np.testing.assert_allclose(other.measured_mass, ours.measured_mass, atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"starts": ()}, "at least one"),
        ({"starts": ("7", "7")}, "differ"),
        ({"starts": ("S3/3",)}, "no irrep of degree 3"),
        ({"starts": ("S3/x",)}, "group/degree"),
        ({"starts": ("X9",)}, "X9"),
        ({"step": 0.9}, "step is between"),
        ({"subsets": 0}, "at least 1"),
        ({"ridge": 0.0}, "positive"),
        ({"spread": 0.5}, "spread"),
    ],
)
def test_impossible_settings_are_refused(fields, words):
    with pytest.raises(jd.UsageError, match=words):
        jd.grid(Retention, **fields)


def test_a_degree_that_only_the_irreps_can_tell_is_refused_by_the_trial(x64):
    """No group of order 12 is refused degree 2 at once, but A4 has degrees 1, 1, 1, 3."""
    s = Retention(starts=("A4/2",), subsets=1, steps=1)
    with pytest.raises(jd.UsageError, match="A4 has no irrep of degree 2"):
        trial(s, jax.random.key(0))
