"""The judge of methods on made-up accuracies: which orders it upholds and which not."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.engine.judge import all_passed
from jaxdyn.theories.coc import curriculum

WAVE = np.array([0.002, -0.002, 0.001, -0.001])


def made(**means):
    data = np.array([m + WAVE * (1 + k) for k, m in enumerate(means.values())])
    return xr.Dataset({"measured_accuracy": (("recipe", "seed"), data)}, {"recipe": list(means), "seed": range(4)})


def verdict(ds):
    checks = curriculum.judge_curriculum(ds)
    return bool(checks[0].passed), all_passed(checks)


@pytest.mark.parametrize(
    ("means", "passed"),
    [
        ({"coconut": 0.95, "no_curriculum": 0.5}, (True, True)),
        ({"coconut": 0.95, "no_curriculum": 0.5, "pause_as_thought": 0.7}, (True, True)),
        ({"coconut": 0.95, "no_curriculum": 0.5, "pause_as_thought": 0.5}, (True, False)),  # published: ahead of no_curriculum
        ({"coconut": 0.95, "no_curriculum": 0.5, "pause_as_thought": 0.99}, (True, False)),
        ({"coconut": 0.95, "no_curriculum": 0.5, "icot": 0.9, "cot": 0.9}, (True, False)),
        ({"coconut": 0.5, "no_curriculum": 0.2}, (False, True)),
    ],
)
def test_orders(means, passed):
    assert verdict(made(**means)) == passed


def test_a_mean_that_its_interval_does_not_decide():
    ds = made(coconut=0.95, no_curriculum=0.7)
    ds.measured_accuracy[1] += np.array([-0.3, 0.2, 0.1, 0.0])
    assert verdict(ds)[1] is None


def test_equal_methods_and_exchanged_ones_are_not_upheld():
    ds = made(coconut=0.95, no_curriculum=0.5)
    assert verdict(curriculum.ALIKE(ds))[1] is False
    other = curriculum.EXCHANGED(ds)
    np.testing.assert_array_equal(other.measured_accuracy.sel(recipe="coconut"), ds.measured_accuracy.sel(recipe="no_curriculum"))
    assert verdict(other)[1] is False


def test_intervals_hold_together():
    np.testing.assert_allclose(1 - curriculum.level(5), 0.01)
