"""Legends leave the data free; clouds of points become pixels."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxdyn.plotting import describe, finish
from jaxdyn.plotting.finish import covers, points_drawn


@pytest.fixture
def fig():
    return Figure(figsize=(7, 3.5), layout="constrained")


def legends(fig):
    return [ax.get_legend() for ax in fig.axes if ax.get_legend() is not None] + fig.legends


def covered(fig):
    fig.draw_without_rendering()
    return [covers(legend, points_drawn(ax)) for legend in legends(fig) for ax in fig.axes]


def test_a_legend_goes_to_a_free_corner(fig):
    ax = fig.subplots()
    ax.plot([0, 1], [0, 1], label="rising")
    ax.legend(loc="upper right")
    finish(fig)
    assert covered(fig) == [False] and len(fig.axes) == 1 and not fig.legends
    assert fig.get_size_inches()[1] == 3.5


def test_a_legend_without_a_free_corner_goes_below_the_figure(fig):
    ax = fig.subplots()
    x = np.linspace(0, 1, 400)
    for k in range(8):
        ax.plot(x, np.sin(90 * x + k), label=f"line {k}")
    finish(fig)
    assert ax.get_legend() is None and len(fig.legends) == 1 and covered(fig) == [False]
    assert [t.get_text() for t in fig.legends[0].get_texts()] == [f"line {k}" for k in range(8)]
    assert fig.get_size_inches()[1] > 3.5  # the panel keeps its height
    box = fig.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= fig.bbox.width


def test_panels_with_the_same_names_in_other_colours_keep_their_own_legends(fig):
    x = np.linspace(0, 1, 400)
    for ax, color in zip(fig.subplots(1, 2), ("red", "blue"), strict=True):
        ax.plot(x, np.sin(300 * x), color=color, label="same name")
    finish(fig)
    assert not fig.legends and [ax.get_legend() is not None for ax in fig.axes] == [True, True]
    assert not any(covered(fig))


def test_bars_and_bands_count_as_data(fig):
    left, right = fig.subplots(1, 2)
    left.bar([0, 1, 2], [1, 1, 1], width=1, label="bars")
    left.set_ylim(0, 1)
    right.fill_between([0, 1], [0, 0], [1, 1], label="band")
    right.margins(0)
    finish(fig)
    assert len(fig.legends) == 1 and not any(covered(fig))


@pytest.mark.parametrize(("count", "pixels"), [(700, False), (1600, True)])
def test_clouds_become_pixels_beyond_1500_points_and_lines_do_not(fig, count, pixels):
    ax = fig.subplots()
    cloud = ax.plot(np.arange(count), np.arange(count), "o")[0]
    line = ax.plot(np.arange(5000), np.arange(5000))[0]
    finish(fig)
    assert bool(cloud.get_rasterized()) is pixels and not line.get_rasterized()


def test_a_figure_in_words(fig):
    left, right = fig.subplots(1, 2)
    left.plot([0, 1], [0, 1], "--", label="theory")
    left.plot([0, 1], [0, 1], "x", label="runs")
    left.set(title="small step", xlabel="time $t$", ylabel="loss")
    image = right.pcolormesh(np.eye(3))
    fig.colorbar(image, ax=right, label="energy")
    right.set(xlabel="row", ylabel="column")
    finish(fig)
    assert describe(fig) == (
        "Small step: loss against time $t$. Column against row. Colour: energy. Drawn: theory (dashed line), runs (crosses)."
    )


NONE = np.full(3, np.nan)
EMPTY = {
    "line": lambda ax: ax.plot([1, 2, 3], NONE),
    "points": lambda ax: ax.scatter([1, 2, 3], NONE),
    "bars": lambda ax: ax.bar([1, 2, 3], NONE),
    "bars of errors": lambda ax: ax.errorbar([1, 2, 3], NONE, NONE),
    "bands": lambda ax: ax.fill_between([1, 2, 3], NONE, NONE),
    "mesh": lambda ax: ax.pcolormesh(NONE[None]),
    "image": lambda ax: ax.imshow(NONE[None]),
    "vertical lines": lambda ax: ax.vlines([1, 2, 3], NONE, NONE),
    "a bound alone": lambda ax: (ax.plot([1, 2, 3], NONE), ax.axhline(1.0)),
}


def words_in(plot):
    fig = Figure()
    plot(fig.subplots())
    finish(fig)
    return [text.get_text() for text in fig.axes[0].texts]


@pytest.mark.parametrize("plot", EMPTY.values(), ids=EMPTY)
def test_an_empty_panel_says_so(plot):
    assert words_in(plot) == ["nothing to draw:\nno finite value"]


FULL = {
    "line": lambda ax: ax.plot([1, 2, 3], [np.nan, 2.0, np.nan], "o"),
    "points": lambda ax: ax.scatter([1], [2.0]),
    "bars": lambda ax: ax.bar([1, 2], [np.nan, 1.0]),
    "bands": lambda ax: ax.fill_between([1, 2], [0.0, 1.0], [1.0, 2.0]),
    "mesh": lambda ax: ax.pcolormesh(np.asarray([[np.nan, 1.0]])),
    "image": lambda ax: ax.imshow(np.zeros((2, 2, 3))),
    "marks at the edge": lambda ax: ax.plot([1], [0.97], "x", transform=ax.get_xaxis_transform()),
    "no axes": lambda ax: ax.axis("off"),
}


@pytest.mark.parametrize("plot", FULL.values(), ids=FULL)
def test_other_panels_have_no_word(plot):
    assert words_in(plot) == []


def test_a_panel_without_anything_says_so():
    assert words_in(lambda ax: None) == ["nothing to draw"]


def test_mathematics_of_a_label_in_two_lines_is_read_line_by_line(fig, caplog):
    ax = fig.subplots()
    ax.plot([0, 1], [0, 1])
    ax.set(xlabel="mean $x^2$\nof all", ylabel="of $\\frac$\nall")
    finish(fig)
    assert not caplog.records and (ax.xaxis.label.get_parse_math(), ax.yaxis.label.get_parse_math()) == (True, False)


def test_words_that_are_no_mathematics_keep_their_dollar_signs(fig):
    """A check's name may have LaTeX that matplotlib lacks; no figure is lost for it."""
    ax = fig.subplots()
    ax.plot([0, 1], [0, 1], label=r"$\frac$")
    ax.plot([0, 1], [1, 1], label="$x^2$")
    ax.set(title=r"$\tfrac12$ of all", xlabel=r"$\eta$", ylabel="$5")
    ax.set_xticks([0, 1], [r"$a_{$", "b"])
    finish(fig)
    fig.draw_without_rendering()
    texts = [ax.title, ax.xaxis.label, ax.get_xticklabels()[0]]
    assert [text.get_parse_math() for text in texts] == [False, True, False]
    (legend,) = legends(fig)
    assert {text.get_text() for text in legend.get_texts()} == {r"\$\frac\$", "$x^2$"}


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_logarithmic_panel_without_numbers_is_drawn_and_says_so(fig, scale):
    """Matplotlib has no ticks for a logarithmic axis on which no number is positive."""
    ax = fig.subplots()
    ax.plot([0.001, 0.01, 0.1], [np.nan] * 3, "o-")
    ax.fill_between([0.001, 0.01, 0.1], [np.nan] * 3, [np.nan] * 3)
    ax.set_xscale("log")
    ax.set_yscale(scale)
    finish(fig)
    fig.draw_without_rendering()
    assert [text.get_text() for text in ax.texts] == ["nothing to draw:\nno finite value"]
