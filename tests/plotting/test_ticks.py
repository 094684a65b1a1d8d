"""Numbers on axes are plain text, whatever the scale."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FuncFormatter, LogFormatterSciNotation

from jaxdyn.plotting import finish
from jaxdyn.plotting.ticks import Logarithmic, Scalar, overlapping, plain_numbers


def axis_of(scale="linear", ends=(0.0, 1.0), **kw):
    ax = Figure().subplots()
    ax.set_xscale(scale, **kw)
    ax.set_xlim(*ends)
    plain_numbers(ax.xaxis)
    return ax.xaxis


@pytest.mark.parametrize(
    ("x", "text"), [(1e-3, "10⁻³"), (1.0, "10⁰"), (1e12, "10¹²"), (-1e5, "−10⁵"), (0.0, "0"), (2e-4, "2×10⁻⁴"), (-3e2, "−3×10²")]
)
def test_powers_are_raised_without_mathematics(x, text):
    formatter = Logarithmic(10.0)
    formatter.set_axis(axis_of("log", (1e-4, 1e-3)))
    assert formatter(x) == text


@pytest.mark.parametrize("ends", [(1e-5, 1e5), (0.3, 4.0), (1e-8, 1e-7)])
@pytest.mark.parametrize("scale", ["log", "symlog"])
def test_the_same_ticks_are_labelled_as_by_matplotlib(scale, ends):
    theirs = Figure().subplots()
    theirs.set_xscale(scale)
    theirs.set_xlim(*ends)
    ours = axis_of(scale, ends)
    for mine, other in [
        (ours.get_majorticklabels(), theirs.xaxis.get_majorticklabels()),
        (ours.get_minorticklabels(), theirs.xaxis.get_minorticklabels()),
    ]:
        assert [bool(t.get_text()) for t in mine] == [bool(t.get_text()) for t in other]
        assert not any("$" in t.get_text() for t in mine)


@pytest.mark.parametrize(("ends", "few"), [((0.3, 4.0), True), ((300, 2000), True), ((0.01, 4.0), False), ((2e-4, 3e-3), False)])
def test_few_decades_have_decimals(ends, few):
    axis = axis_of("log", ends)
    labels = [t.get_text() for t in (*axis.get_majorticklabels(), *axis.get_minorticklabels()) if t.get_text()]
    assert labels and all(any(c in t for c in "×⁰¹²³⁻") for t in labels) != few
    assert not few or all(float(label) > 0 for label in labels)


def test_another_base_is_named():
    formatter = axis_of("log", (1, 64), base=2).get_major_formatter()
    assert isinstance(formatter, Logarithmic)
    assert formatter(8.0) == "2³"


def test_a_common_factor_stands_at_the_end_of_the_axis():
    axis = axis_of(ends=(0.0, 3e-7))
    formatter = axis.get_major_formatter()
    assert isinstance(formatter, Scalar)
    labels = formatter.format_ticks(np.array([0.0, 1e-7, 2e-7, 3e-7]))
    assert formatter.get_offset() == "×10⁻⁷"
    assert labels == ["0", "1", "2", "3"] or [float(label) for label in labels] == [0, 1, 2, 3]


def test_what_a_plot_set_itself_stays():
    ax = Figure().subplots()
    ax.set_xticks([0.2, 0.4], ["a", "b"])
    ax.yaxis.set_major_formatter("{x:.1f} m")
    plain_numbers(ax.xaxis)
    plain_numbers(ax.yaxis)
    assert isinstance(ax.xaxis.get_major_formatter(), FixedFormatter | FuncFormatter)
    assert ax.yaxis.get_major_formatter()(0.25) == "0.2 m"
    assert not isinstance(ax.yaxis.get_major_formatter(), LogFormatterSciNotation)


def ready(draw, width=2.0):
    fig = Figure(figsize=(width, 2.0), layout="constrained", dpi=72)
    ax = fig.subplots()
    draw(ax)
    finish(fig)
    fig.draw_without_rendering()
    return ax.xaxis


def named(ax):
    ax.plot(range(5), range(5))
    ax.set_xticks(range(5), [f"a long name {i}" for i in range(5)])


def narrow(ax):
    ax.semilogx([60, 350], [0, 1])


def numbers(ax):
    ax.plot([123456, 123999], [0, 1])
    ax.ticklabel_format(useOffset=False)


@pytest.mark.parametrize("draw", [narrow, named, numbers])
def test_labels_that_ran_into_each_other_do_not(draw, monkeypatch):
    monkeypatch.setattr(sys.modules[finish.__module__], "keep_apart", lambda axis: False)
    assert overlapping(ready(draw))
    monkeypatch.undo()
    axis = ready(draw)
    slanted = [label.get_rotation() for label in axis.get_ticklabels()]
    assert all(slanted) if draw is named else not overlapping(axis)
    assert len([label for label in axis.get_ticklabels() if label.get_text()]) >= 2


def test_a_label_longer_than_the_figure_has_two_lines():
    text = r"shortest path taken, in per cent of all pairs of vertices that are not adjacent, $p = 0.3$ or $p = 0.5$"

    def labelled(ax):
        ax.plot([0, 1])
        ax.set(xlabel="short", ylabel=text)

    axis = ready(labelled).axes.yaxis
    assert axis.label.get_text().replace("\n", " ") == text and axis.label.get_text().count("\n") == 1
    assert ready(labelled).label.get_text() == "short"


def test_labels_with_room_stay_as_they_are():
    axis = ready(narrow, width=7.0)
    assert any(label.get_text() for label in axis.get_minorticklabels())
