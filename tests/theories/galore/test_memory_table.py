"""Totals of memory against the formulas of the paper's table, by hand."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.galore.memory_table import Table, trial

SHAPE_60M = (512, 1376, 8, 128)  # width, units, layers, rank


def by_hand(side):
    """Bytes in GB of the 60M model by method, two bytes a number: full, GaLore."""
    d, f, layers, r = SHAPE_60M
    rest = 2 * 32_000 * d + (2 * layers + 1) * d
    matrices = [(d, d)] * 4 + [(d, f)] * 3
    full = layers * sum(3 * m * n for m, n in matrices)
    galore = 0
    for m, n in matrices:
        low, high = min(m, n), max(m, n)
        moments, basis = (low, high) if side == "long" else (high, low)
        galore += layers * (m * n + 2 * moments * r + basis * r)
    return [2 * (3 * rest + part) / 1e9 for part in (full, galore)]


@pytest.mark.parametrize("side", ["short", "long"])
def test_the_smallest_model_by_hand(side):
    ds = jd.sweep(trial, jd.grid(Table, side=side), [0])
    ours = ds.predicted_total.sel(model="60M", algorithm=["full", "galore"]).values.ravel()
    np.testing.assert_allclose(ours, by_hand(side), rtol=1e-5)  # counters of steps aside


def test_wrong_settings_are_refused():
    with pytest.raises(UsageError, match="side is short or long"):
        Table(side="left")
