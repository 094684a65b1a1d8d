"""The figure of --by."""

import pytest
from matplotlib.figure import Figure

from jaxdyn.report import by_figure
from jaxdyn.report.panels import EDGE


def cells(values, *fields, name="error"):
    """A cell for each (place..., value); values above 1 fail, None has no checks."""
    found = []
    for *place, value in values:
        check = {"name": name, "value": value, "bound": 1.0, "passed": value is not None and value <= 1}
        at = dict(zip(fields, place, strict=True))
        found.append({"at": at, "verdict": "upheld"} | ({} if value is None else {"checks": [check]}))
    return {"fields": list(fields), "cells": found}


def crosses(ax):
    return [tuple(xy) for line in ax.lines if line.get_label() == "fails" for xy in line.get_xydata()]


def test_one_field_is_a_curve_with_bounds_and_crosses():
    fig = Figure()
    by_figure.draw(cells([(0.1, 1e-3), (1.0, None), (10.0, 5.0)], "lr"), fig)
    (ax,) = fig.axes
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.1", "1", "10"]
    assert crosses(ax) == [(2.0, 5.0)] and ax.get_yscale() == "log"
    assert any(line.get_label() == "bound" and set(line.get_ydata()) == {1.0} for line in ax.lines)


def test_two_fields_are_a_plane_with_crosses():
    fig = Figure()
    by_figure.draw(cells([("gd", 1.0, 0.5), ("gd", 2.0, 0.9), ("adam", 1.0, 1.5), ("adam", 2.0, 0.7)], "rule", "lr"), fig)
    ax = fig.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["gd", "adam"] and crosses(ax) == [(0.5, 1.5)]
    assert ax.collections[0].get_array().reshape(2, 2).tolist() == [[0.5, 0.9], [1.5, 0.7]]


def test_intervals_one_sided_bounds_and_undecided_checks():
    by = cells([(1.0, 0.9), (2.0, 0.99), (3.0, 0.5)], "a")
    for cell, passed in zip(by["cells"], (False, None, True), strict=True):
        (check,) = cell["checks"]
        cell["checks"] = [check | {"bound": [0.95, None], "interval": [check["value"] - 0.1, None], "passed": passed}]
    for cut in (by, {"fields": ["b", "a"], "cells": [{**c, "at": {"b": 1, **c["at"]}} for c in by["cells"]]}):
        fig = Figure()
        by_figure.draw(cut, fig)
        labels = {line.get_label() for line in fig.axes[0].lines}
        assert {"fails", "undecided"} <= labels
    fig = Figure()
    by_figure.draw(by, fig)
    assert [line.get_ydata()[0] for line in fig.axes[0].lines if line.get_label() == "bound"] == [0.95]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (cells([(1.0, 0.5), (2.0, 0.5)], "a"), True),
        (cells([(1.0, 0.5)], "a"), False),
        (cells([(1.0, None), (2.0, None)], "a"), False),
        (cells([(1.0, 1.0, 1.0, 0.5), (2.0, 1.0, 1.0, 0.5)], "a", "b", "c"), False),
    ],
)
def test_what_is_drawn(by, expected):
    assert by_figure.drawable(by) is expected


def test_ticks_of_values_that_are_close_differ():
    fig = Figure()
    by_figure.draw(cells([(0.0099996, 1e-3), (0.0100004, 5.0)], "lr"), fig)
    assert [t.get_text() for t in fig.axes[0].get_xticklabels()] == ["0.0099996", "0.01"]


def test_bounds_that_differ_are_drawn_where_they_hold_and_infinite_values_at_the_edge():
    by = cells([(1.0, 0.1), (2.0, None), (3.0, 0.4)], "a")
    for cell, bound in zip(by["cells"], (0.15, 0.3, 0.6), strict=True):
        value = cell["checks"][0]["value"] if "checks" in cell else None
        cell["checks"] = [{"name": "error", "value": value, "bound": [None, bound], "passed": value is not None}]
    fig = Figure()
    by_figure.draw(by, fig)
    (ax,) = fig.axes
    (line,) = [line for line in ax.lines if line.get_label() == "bound"]
    assert line.get_ydata().tolist() == [0.15, 0.3, 0.6] and line.get_drawstyle() == "steps-mid"
    edge = [line.get_xydata().tolist() for line in ax.lines if line.get_transform() == ax.get_xaxis_transform()]
    assert [[1.0, 0.97]] in edge, "the failing value is not a number that can be drawn"
    by["cells"][1]["checks"][0]["passed"] = True
    fig = Figure()
    by_figure.draw(by, fig)
    (ax,) = fig.axes
    edge = [line.get_xydata().tolist() for line in ax.lines if line.get_transform() == ax.get_xaxis_transform()]
    assert edge == [[[1.0, 0.97]]], "nor is one that passes"
    assert EDGE in [text.get_text() for text in ax.get_legend().get_texts()]
    fig = Figure()
    by_figure.draw(cells([(1.0, 0.1), (2.0, 0.5)], "a"), fig)
    assert EDGE not in [text.get_text() for text in fig.axes[0].get_legend().get_texts()]


def test_colours_are_named():
    fig = Figure()
    by_figure.draw(cells([(1.0, 1.0, 0.5), (2.0, 2.0, 0.9)], "a", "b"), fig)
    assert fig.axes[-1].get_ylabel() == "value"
