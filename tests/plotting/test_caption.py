"""A figure in words."""

import matplotlib.figure
import numpy as np
import xarray as xr

from jaxdyn import plotting
from jaxdyn.plotting.caption import describe


def test_a_figure_says_its_axes_and_what_is_drawn():
    fig = matplotlib.figure.Figure()
    ax = fig.subplots()
    ax.plot([1, 2], [1, 2], "o", ls="", label="network")
    ax.plot([1, 2], [1, 2], "--", label="slope 1")
    ax.set(xlabel=r"step size $\eta$", ylabel="error")
    ax.legend()
    text = describe(fig)
    assert text.startswith(r"Error against step size $\eta$.") and "network (points)" in text and "slope 1 (dashed line)" in text


def test_an_empty_figure_says_nothing():
    assert describe(matplotlib.figure.Figure()) == ""


def test_names_of_variables_keep_their_case():
    fig = matplotlib.figure.Figure()
    for ax, y in zip(fig.subplots(1, 4), ("u", "U", "w_max", "loss"), strict=True):
        ax.set(xlabel="t", ylabel=y)
    assert describe(fig) == "u against t. U against t. w_max against t. Loss against t."
    fig = matplotlib.figure.Figure()
    names = ["u", "U", "loss", "Loss", "e_max"]
    values = {f"{kind}_{name}": ("k", np.arange(3.0)) for kind in ("predicted", "measured") for name in names}
    plotting.default_plot(xr.Dataset(values), fig)
    text = describe(fig)
    assert all(f"{name}: measured" in text for name in ("u", "U", "loss", "Loss", "e max")), text


def test_variables_that_are_left_out_are_counted():
    fig = matplotlib.figure.Figure()
    values = {f"{kind}_v{i}": ("k", np.arange(3.0)) for kind in ("predicted", "measured") for i in range(12)}
    plotting.default_plot(xr.Dataset(values), fig)
    assert "The first 9 of 12 variables." in describe(fig)


def test_points_are_those_that_have_a_value(monkeypatch):
    texts = []
    for values in ([1.0, 2.0], [np.nan, np.nan]):
        fig = matplotlib.figure.Figure()
        ax = fig.subplots()
        plotting.scatter(ax, values, values, "runs")
        ax.legend()
        texts.append(describe(fig))
    assert "One point for each entry of each run that has a value. Drawn: runs (points)" in texts[0]
    assert texts[1] == "Measured against predicted. Without any finite value, and not drawn: runs."
    monkeypatch.setattr("jaxdyn.plotting.helpers.POINTS", 5)
    fig = matplotlib.figure.Figure()
    plotting.scatter(fig.subplots(), np.arange(9.0), np.arange(9.0))
    assert "drawn at random" in describe(fig) and "One point" not in describe(fig)


def test_what_has_no_value_is_not_said_to_be_drawn():
    fig = matplotlib.figure.Figure()
    ax = fig.subplots()
    ax.plot([1, 2], [np.nan, np.nan], "o-", label="network")
    ax.errorbar([1, 2], [np.nan, np.nan], [1, 1], label="with bars")
    ax.plot([1, 2], [1, 2], "--", label="theory")
    ax.plot([], [], ":", label="a symbol for something else")
    ax.legend()
    text = describe(fig)
    assert "Drawn: theory (dashed line), a symbol for something else (dotted line)." in text
    assert "Without any finite value, and not drawn: network, with bars." in text


def test_what_has_no_place_on_logarithmic_axes_is_said_to_be_left_out():
    values = np.asarray([0.0, 1.0, 10.0])
    figures = [matplotlib.figure.Figure() for _ in range(5)]
    axes = [fig.subplots() for fig in figures]
    plotting.scatter(axes[0], values, values, log=True)
    plotting.scatter(axes[1], values, values)
    plotting.order(axes[2], [0.1, 0.2], [[0.0, 1.0], [2.0, 3.0]])
    plotting.order(axes[3], [0.1, 0.2], [[1.0, 1.0], [2.0, 3.0]])
    plotting.order(axes[4], [0.1, 0.2], [[0.0, 0.0]], label="errors")
    axes[4].legend()
    texts = [describe(fig) for fig in figures]
    assert "each run that has a value above zero." in texts[0] and len(axes[0].lines[0].get_xdata()) == 2
    assert "each run that has a value." in texts[1] and len(axes[1].lines[0].get_xdata()) == 3
    assert "median and range over the runs, of values above zero." in texts[2]
    assert "median and range over the runs." in texts[3]
    assert "Without any finite value, and not drawn: errors." in texts[4]
