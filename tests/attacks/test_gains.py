"""Predictions with gains, over all programs of a grid."""

import numpy as np

import jaxdyn as jd
from jaxdyn.attacks.gains import ROWS, Law
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.runs.sweep import sweep
from tests.attacks import toys


def test_without_a_gain_the_predictions_are_those_of_the_runs():
    """Two programs, whose curves have different lengths, and more rows than fit into a block."""
    grid = jd.grid(toys.Decay, lr=[0.005, 0.01, 0.02], steps=[20, 40])
    law = Law.of(Request(toys.trial, grid, range(3)))
    assert len(law.parts) == 2
    direct = sweep(toys.trial, grid, seeds=range(3))
    rows = [None] * (ROWS + 1)
    found = list(law.predictions(rows, range(3)))
    assert len(found) == len(rows)
    for ds in (found[0], found[-1]):
        np.testing.assert_allclose(ds.predicted_path.transpose(*direct.predicted_path.dims), direct.predicted_path, rtol=1e-12)


def test_a_gain_on_the_last_product_scales_the_law():
    grid = jd.grid(toys.Decay, lr=[0.005, 0.01])
    law = Law.of(Request(toys.trial, grid, range(2)))
    (slot,) = [slot for slot in law.slots if slot.primitive == "mul" and "law = start" in line(slot.place) and slot.nth == 1]
    plain, doubled = law.predictions([None, (slot, 2.0)], range(2))
    np.testing.assert_allclose(doubled.predicted_path, 2 * plain.predicted_path, rtol=1e-12)


def line(place):
    """The code at a place."""
    from jaxdyn.attacks.law import source_line

    return source_line(place)
