"""A figure in words."""

import matplotlib.figure

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
