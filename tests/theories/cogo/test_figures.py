"""Axes of CoGO's figures."""

import numpy as np
from matplotlib.figure import Figure

from jaxdyn.theories.cogo.figures import log_orders, ticks


def labels(ax):
    return [t.get_text() for t in ax.get_xticklabels()]


def test_orders_are_the_only_ticks_of_a_logarithmic_axis():
    ax = Figure().subplots()
    log_orders(ax, np.array([5, 7, 23]))
    assert ax.get_xscale() == "log" and labels(ax) == ["5", "7", "23"]
    assert not any(ax.xaxis.get_minor_formatter().format_ticks([6.0, 10.0]))


def test_ticks_stand_at_the_values():
    ax = Figure().subplots()
    ticks(ax, [0.25, 1.0])
    assert labels(ax) == ["0.25", "1"] and ax.get_xticks().tolist() == [0.25, 1.0]
