"""Rates chosen on the validation part, the gate, and rivals."""

import numpy as np

from jaxdyn.theories.mobile.trained import equal, learned, margin, tuned, unlearnt
from tests.theories.mobile.helpers import runs


def test_each_at_the_rate_with_the_lowest_validation_loss():
    ds = runs("variant", ["a", "b"], [2.0, 2.5])
    np.testing.assert_allclose(tuned(ds).measured_loss.mean("seed"), [2.0, 2.5])
    ds["curve"] = ds.curve.where((ds.part == "test") | (ds.step == 0) | (ds.lr != 0.1) | (ds.variant != "b"), 0.1)
    np.testing.assert_allclose(tuned(ds).measured_loss.mean("seed"), [2.0, 3.5])
    assert "lr" not in tuned(tuned(ds)).dims


def test_the_gate_asks_for_a_nat():
    assert learned(runs("variant", ["a"], [2.0])).passed
    assert not learned(runs("variant", ["a", "b"], [2.0, 4.6])).passed


def test_differences_have_intervals():
    ds = tuned(runs("variant", ["a", "b"], [2.0, 2.5]))
    found = margin("b less a", ds.measured_loss.sel(variant="b") - ds.measured_loss.sel(variant="a"), high=0)
    np.testing.assert_allclose(found.value, 0.5)
    assert found.passed is False


def test_rivals_replace_losses_and_curves():
    ds = runs("variant", ["a", "b"], [2.0, 2.5])
    still, same = unlearnt("variant", "b")(ds), equal("variant", "a")(ds)
    np.testing.assert_allclose(still.measured_loss.sel(variant="b"), 5.5)
    np.testing.assert_array_equal(still.measured_loss.sel(variant="a"), ds.measured_loss.sel(variant="a"))
    np.testing.assert_array_equal(same.measured_loss.sel(variant="b"), ds.measured_loss.sel(variant="a"))
    np.testing.assert_array_equal(same.curve.sel(variant="b"), ds.curve.sel(variant="a"))
    assert still.measured_loss.dims == ds.measured_loss.dims == same.measured_loss.dims
