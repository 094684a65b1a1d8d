"""The judge of the margins."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.gromov import margin


def with_noise(ds, size=0.05):
    """The runs with variances of the law, measured with an error."""
    noise = np.random.default_rng(0).normal(size=ds.predicted_variance.shape)
    return ds.assign(measured_variance=ds.predicted_variance * (1 + size * noise))


@pytest.mark.parametrize("name", ["mean", "variance"])
def test_judge_holds_and_rejects_a_tenth(gromov_runs, name):
    ds = with_noise(gromov_runs)
    assert all(c.passed for c in margin.judge(ds))
    for factor in (0.9, 1.12):
        assert any(c.passed is False for c in margin.judge(jd.scaled(**{f"predicted_{name}": factor})(ds)))


def test_few_small_networks_refute_nothing(gromov_runs):
    assert all(c.passed is not False for c in margin.judge(gromov_runs))
    assert [c.passed for c in margin.judge(margin.alike(gromov_runs))] == [True, False, False]
