"""Codes that are written down."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.hyper.trials import codes
from jaxdyn.theories.hyper.trials.codes import Codes, trial

SMALL = {"relevant": 4.0, "first": 4.0, "inputs": 12, "batch": 64, "batches": 4, "tasks": 4, "examples": 300}


def test_blocks():
    x = jnp.array([[1.0, -1.0, 0.5, -0.2, 0.9]])
    np.testing.assert_allclose(codes.read(x, jnp.float32(2), jnp.float32(2)), [[0, 0, 0.5**0.5, -(0.5**0.5), 0]], rtol=1e-6)
    np.testing.assert_allclose(codes.exchanged(x, jnp.float32(2)), [[0.5, -0.2, 1.0, -1.0, 0.9]])


def test_losses_and_accuracies():
    ds = jd.sweep(trial, jd.grid(Codes, factor=["scalar", "coordinate"], **SMALL), 2)
    np.testing.assert_allclose(ds.measured_tie, ds.predicted_tie, atol=1e-10)
    assert abs(ds.measured_mean - ds.predicted_mean).max() < 0.02  # 4 batches of 64
    assert float(ds.measured_relevant.min()) > 0.97 and abs(float(ds.measured_irrelevant.mean()) - 0.5) < 0.05


@pytest.mark.parametrize("wrong", [{"first": 11.0}, {"inputs": 19}, {"temperature": 0.0}, {"batches": 1}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Codes(**wrong)
