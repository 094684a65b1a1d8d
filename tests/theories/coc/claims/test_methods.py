"""The judge of methods on made-up accuracies: which orders it upholds and which not."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.engine.judge import all_passed
from jaxdyn.theories.coc.claims import methods

WAVE = np.array([0.002, -0.002, 0.001, -0.001])


def made(**means):
    data = np.array([m + WAVE * (1 + k) for k, m in enumerate(means.values())])
    return xr.Dataset({"measured_accuracy": (("recipe", "seed"), data)}, {"recipe": list(means), "seed": range(4)})


def verdict(ds):
    checks = methods.judge_curriculum(ds)
    return bool(checks[0].passed), all_passed(checks)


@pytest.mark.parametrize(
    ("means", "passed"),
    [
        ({"coconut": 0.95, "no_curriculum": 0.5, "pause_as_thought": 0.5}, (True, True)),
        ({"coconut": 0.95, "no_curriculum": 0.5, "pause_as_thought": 0.99}, (True, False)),
        ({"coconut": 0.95, "no_curriculum": 0.5, "pause_as_thought": 0.5, "icot": 0.9, "cot": 0.9}, (True, False)),
        ({"coconut": 0.5, "no_curriculum": 0.2, "pause_as_thought": 0.2}, (False, False)),
    ],
)
def test_orders(means, passed):
    assert verdict(made(**means)) == passed


def test_equal_methods_are_not_upheld():
    assert verdict(methods.alike(made(coconut=0.95, no_curriculum=0.5, pause_as_thought=0.5)))[1] is not True
