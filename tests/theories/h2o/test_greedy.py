"""Greedy choices on a few runs, and the hardest instance by hand."""

import itertools

import jax
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.h2o.dynamics.greedy import guarantee
from jaxdyn.theories.h2o.greedy import Sets, hardest, trial


def test_the_hardest_instance_by_brute_force():
    with jax.enable_x64(True):
        cover = np.asarray(hardest())
    worth = lambda chosen: cover[:, list(chosen)].max(1).sum()  # noqa: E731
    assert max(worth(c) for c in itertools.combinations(range(12), 4)) == pytest.approx(4)
    chosen = []
    for _ in range(4):
        chosen.append(max(set(range(12)) - set(chosen), key=lambda v: worth([*chosen, v])))
    assert sorted(chosen) == [4, 5, 6, 7] and worth(chosen) / 4 == pytest.approx(guarantee(4), abs=1e-8)


@pytest.mark.slow
def test_runs():
    ds = jd.sweep(trial, jd.grid(Sets, objective=["additive", "coverage", "logdet", "penalty"], growing=[0.0, 1.0]), 4)
    still = ds.sel(growing=0.0)
    np.testing.assert_allclose(
        still.measured_kept.sel(objective="additive"), still.predicted_kept.sel(objective="additive"), rtol=1e-12
    )
    assert bool((ds.measured_kept <= ds.predicted_kept * (1 + 1e-12)).all())
    share = still.measured_share
    np.testing.assert_allclose(ds.measured_hardest, guarantee(4), atol=1e-7)
    np.testing.assert_allclose(share.sel(objective="penalty"), 1.001 / 4)
    assert float(share.sel(objective=["coverage", "logdet"]).min()) > guarantee(4)


def test_wrong_settings_are_refused():
    with pytest.raises(UsageError, match="growing is 0 or 1"):
        Sets(growing=2.0)
