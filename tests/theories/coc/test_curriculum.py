"""What is read of methods, on made-up accuracies."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.coc import curriculum

WAVE = np.array([0.002, -0.002, 0.001, -0.001])


def made(**means):
    data = np.array([m + WAVE * (1 + k) for k, m in enumerate(means.values())])
    return xr.Dataset({"measured_accuracy": (("recipe", "seed"), data)}, {"recipe": list(means), "seed": range(4)})


def read(ds):
    return {r.name: r for r in curriculum.judge_curriculum(ds)}


def test_each_method_is_compared_with_coconut_start_by_start():
    readings = read(made(coconut=0.95, no_curriculum=0.5, pause=0.7))
    gap = readings["accuracy of Coconut minus that of no_curriculum"]
    assert gap.value == pytest.approx(0.45) and gap.interval[0] > 0.44
    assert readings["accuracy of Coconut minus that of pause"].value == pytest.approx(0.25)
    assert readings["accuracy of no_curriculum"].value == pytest.approx(0.5)


def test_starts_from_which_coconut_learned_nothing_count():
    ds = made(coconut=0.95, no_curriculum=0.5)
    ds.measured_accuracy[0, 0] = 0.5
    readings = read(ds)
    gap = readings["accuracy of Coconut minus that of no_curriculum"]
    assert gap.value < 0.36 and gap.interval[0] < 0


def test_starts_of_which_none_learned_are_read_as_well():
    """The reading is not of lucky starts alone."""
    readings = read(made(coconut=0.5, no_curriculum=0.2))
    assert readings["accuracy of Coconut"].value == pytest.approx(0.5)


def test_methods_that_are_compared_are_needed():
    with pytest.raises(jd.Inconclusive, match="no_curriculum"):
        curriculum.judge_curriculum(made(coconut=0.95))
