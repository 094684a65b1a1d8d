"""Live nodes, short training, and the settings of the trials on Occam's razor."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.trials import occam


def test_live_nodes():
    sizes = np.array([[1.0, 0.06, 0.04], [2.0, 0.0, 0.0]])
    assert list(occam.live(sizes)) == [2, 1]


@pytest.mark.parametrize("fields", [{"group": "3"}, {"order": 0}, {"tilt": 0.0}, {"draws": 0}])
def test_settings_of_factors_are_checked(fields):
    with pytest.raises(jd.UsageError):
        occam.Factored(**fields)


@pytest.mark.parametrize("fields", [{"group": "2x2"}, {"lr": 0.0}, {"decay": -1.0}, {"steps": 30}, {"samples": 0}])
def test_settings_of_training_are_checked(fields):
    with pytest.raises(jd.UsageError):
        occam.Pruned(**fields)
