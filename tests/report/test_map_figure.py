"""The figure of a map."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import plotting
from jaxdyn.report import map_figure
from jaxdyn.report.panels import written

RATE = {"field": "rate", "low": 0.1, "high": 10.0, "log": True}
LR = {"field": "lr", "low": 0.0, "high": 1.0, "log": False}
KIND = {"field": "kind", "values": ["gd", "adam"]}


def found(over, verdicts, **more):
    """A map of one check; what is assumed is the first field."""
    names = [axis["field"] for axis in over]
    cells = []
    for *at, verdict in verdicts:
        check = {
            "name": "error",
            "value": 0.5 if verdict == "upheld" else 50.0,
            "bound": [None, 1.0],
            "passed": verdict == "upheld",
        }
        assumed = {"pace": float(at[0])} if isinstance(at[0], float) else {}
        cells.append({"at": dict(zip(names, at, strict=True)), "verdict": verdict, "checks": [check], "assumed": assumed})
    return {"over": over, "cells": cells, "edges": [], "border": None, "assumes": []} | more


GRID = [(r, e, "upheld" if e < 0.5 else "refuted") for r in (0.1, 1.0, 10.0) for e in (0.0, 0.4, 1.0)]


def labels(ax):
    return [line.get_label() for line in ax.lines]


def test_a_plane_shows_verdicts_in_the_axes_own_coordinates():
    fig = Figure()
    map_figure.draw(found([RATE, LR], GRID), fig)
    (ax,) = fig.axes
    assert (ax.get_xlim(), ax.get_ylim()) == ((-1.0, 1.0), (0.0, 1.0)) and ax.get_xlabel() == "rate"
    upheld = next(line for line in ax.lines if line.get_label() == "upheld")
    assert sorted(map(tuple, upheld.get_xydata())) == sorted((x, y) for x in (-1.0, 0.0, 1.0) for y in (0.0, 0.4))
    pixels = ax.images[0].get_array()
    assert np.allclose(pixels[0, 0, :3], np.array([0x3A, 0x82, 0xC8]) / 255) and not np.allclose(pixels[-1, 0], pixels[0, 0])


def test_the_border_and_the_lines_of_assumptions_are_named():
    border = {"exponent": 0.1, "interval": [0.05, 0.15], "factor": 0.6, "spread": 1.1, "points": 20}
    up = {**LR, "low": 0.1, "log": True}
    edges = [[{"rate": r, "lr": 0.4}, {"rate": r, "lr": 1.0}] for r in (0.1, 1.0, 10.0)]
    shown = found([RATE, up], GRID[1:], border=border, edges=edges, assumes=[{"name": "pace", "low": 2.0, "high": None}])
    shown["cells"] = [c for c in shown["cells"] if c["at"]["lr"] > 0]
    fig = Figure()
    map_figure.draw(shown, fig)
    (ax,) = fig.axes
    assert "border: slope 0.10 [0.05, 0.15]" in labels(ax) and "pace = 2" in labels(ax)


def test_values_are_rows():
    fig = Figure()
    map_figure.draw(found([LR, KIND], [(e, k, "upheld") for e in (0.0, 1.0) for k in ("gd", "adam")]), fig)
    assert [t.get_text() for t in fig.axes[0].get_yticklabels()] == ["gd", "adam"]


@pytest.mark.parametrize("axis", [RATE, LR])
def test_over_one_field_each_check_is_a_panel_with_its_bound(axis):
    places = (0.1, 1.0, 10.0) if axis is RATE else (0.0, 0.5, 1.0)
    fig = Figure()
    map_figure.draw(found([axis], [(p, "upheld" if p < 1 else "refuted") for p in places]), fig)
    (ax,) = fig.axes
    assert ax.get_title() == "error" and "bound" in labels(ax) and ax.get_yscale() == "log"


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.1, 10.0, ["$10^{-1}$", "$10^{0}$", "$10^{1}$"]),
        (2.0, 8.0, ["2", "5"]),
        (0.5, 3.0, ["0.5", "1", "2"]),
        (0.02, 0.09, ["0.02", "0.05"]),
        (3.0, 4.0, ["3", "3.2", "3.4", "3.6", "3.8", "4"]),
        (1e-9, 1.5e-9, ["1.05e-09", "1.2e-09", "1.35e-09", "1.5e-09"]),
    ],
)
def test_a_logarithmic_axis_has_numbers(low, high, expected):
    axis, fig = RATE | {"low": low, "high": high}, Figure()
    map_figure.draw(found([axis], [(low, "upheld"), (high, "refuted")]), fig)
    (ax,) = fig.axes
    assert [tick.get_text() for tick in ax.get_xticklabels()] == expected
    ends = [np.log10(low) - 1e-12, np.log10(high) + 1e-12]
    assert all(ends[0] <= place <= ends[1] for place in ax.get_xticks()) and len(expected) > 1


def readings(over, cells):
    """A map of a measured claim with two readings."""
    names = [axis["field"] for axis in over]
    rows = [
        {
            "at": dict(zip(names, at, strict=True)),
            "verdict": verdict,
            "assumed": {},
            "checks": [{"name": n, "value": v} for n, v in values],
        }
        for *at, verdict, values in cells
    ]
    return {"over": over, "cells": rows, "edges": [], "border": None, "assumes": []}


def test_readings_of_a_measured_claim_are_drawn():
    fig = Figure()
    one = [("gd", "measured", [("slope", 0.5), ("end", 2.0)]), ("adam", "measured", [("slope", 0.75), ("end", None)])]
    map_figure.draw(readings([KIND], one), fig)
    slope = next(line for line in fig.axes[0].lines if line.get_label() == "measured")
    assert slope.get_xydata().tolist() == [[0.0, 0.5], [1.0, 0.75]]
    fig = Figure()
    two = [(rate, *rest) for rate in (0.1, 10.0) for rest in one]
    map_figure.draw(readings([RATE, KIND], two), fig)
    titles = {ax.get_title(): ax for ax in fig.axes if ax.get_title()}
    assert titles.keys() == {"slope", "end"}
    assert titles["slope"].collections[0].get_array().tolist() == [0.5, 0.75, 0.5, 0.75]
    assert titles["end"].lines[0].get_xydata().tolist() == [[-1.0, 1.0], [1.0, 1.0]] and labels(titles["end"]) == ["no value"]


def test_every_verdict_of_a_cell_has_a_mark():
    assert map_figure.MARKS.keys() >= {"upheld", "refuted", "toothless", "inconclusive", "error", "measured"}


@pytest.mark.parametrize(("bound", "scale"), [([None, 1.0], "log"), ([-1.0, 1.0], "linear"), ([0.0, None], "linear")])
def test_a_bound_that_is_not_positive_has_its_place(bound, scale):
    shown = found([LR], [(p, "upheld" if p < 1 else "refuted") for p in (0.0, 0.5, 1.0)])
    for cell in shown["cells"]:
        cell["checks"][0]["bound"] = bound
    fig = Figure()
    map_figure.draw(shown, fig)
    assert fig.axes[0].get_yscale() == scale


def test_dollar_signs_in_values_are_drawn():
    axis = {"field": "kind", "values": ["$x$", r"$\frac$"]}
    shown = found([axis], [(value, "upheld") for value in axis["values"]])
    svg = plotting.render(lambda _, fig: map_figure.draw(shown, fig), xr.Dataset(), "a map")
    assert svg.startswith("<svg") and written(axis["values"]) == [r"\$x\$", r"\$\frac\$"]


def test_runs_that_diverged_are_counted_above():
    shown = found([LR], [(p, "upheld") for p in (0.0, 0.5, 1.0)])
    shown["cells"][1]["left_out"] = {"of": 8, "diverged": 3, "outside": 2}
    shown["cells"][2]["left_out"] = {"of": 8, "diverged": 0, "outside": 2}
    fig = Figure()
    map_figure.draw(shown, fig)
    assert fig.get_suptitle() == "runs diverged in 1 of 3\u00a0cells, at most 3 of 8"
