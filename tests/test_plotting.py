"""Figures: same bytes for same data, theme colours, ids that do not collide, gaps where runs are not ok."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import plotting


@pytest.fixture
def ds():
    rng = np.random.default_rng(0)
    predicted = np.exp(rng.normal(size=(2, 5, 12)))
    coords = {"lr": [0.1, 0.2], "seed": np.arange(5), "step": np.arange(12) * 10}
    data = xr.Dataset({"predicted_z": (("lr", "seed", "step"), predicted)}, coords)
    return data.assign(measured_z=data.predicted_z * (1 + 0.1 * rng.normal(size=predicted.shape)))


@pytest.fixture
def ax():
    return Figure().subplots()


def ids(svg):
    return re.findall(r' id="([^"]+)"', svg)


def everything(ds, fig):
    left, right = fig.subplots(1, 2)
    plotting.band(left, ds.step, ds.measured_z, "network")
    left.set_title(r"$\|w\| < 1$ & more")
    plotting.order(right, [0.1, 0.05, 0.025], np.outer(np.ones(4), [0.1, 0.05, 0.025]), 1.0, "error")


def test_render_is_one_well_formed_svg_with_the_same_bytes_each_time(ds):
    first = plotting.render(everything, ds)
    assert first == plotting.render(everything, ds)
    assert ElementTree.fromstring(first).tag == "svg"
    assert not re.search(r"\b(width|height)=", first[: first.index(">")])


def test_text_and_axes_take_the_colour_of_the_page(ds):
    svg = plotting.render(everything, ds)
    colours = set(re.findall(r"#[0-9a-f]{6}\b", svg.split("<defs>", 1)[1]))
    assert "currentColor" in svg
    assert colours <= {c.lower() for c in plotting.COLORS.values()}
    assert "<style" not in svg  # a style sheet would apply to the whole page


def test_line_colours_are_readable_on_white_and_on_near_black():
    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for name, colour in plotting.COLORS.items():
        on_white = 1.05 / (luminance(colour) + 0.05)
        on_dark = (luminance(colour) + 0.05) / (luminance("#1a1d22") + 0.05)
        assert min(on_white, on_dark) >= 3, name  # WCAG 2.1, 1.4.11: graphical objects


def test_ids_of_two_figures_do_not_collide_and_all_references_resolve(ds):
    svg, other = plotting.render(everything, ds, "one"), plotting.render(everything, ds, "two")
    assert len(ids(svg)) == len(set(ids(svg)))
    assert not set(ids(svg)) & set(ids(other))
    assert set(re.findall(r'(?:url\(|href=")#([^")]+)', svg)) == set(ids(svg))


def test_label_is_escaped_and_becomes_the_accessible_name(ds):
    svg = plotting.render(everything, ds, 'a "b" <c>')
    assert ElementTree.fromstring(svg).attrib["aria-label"] == 'a "b" <c>'


def test_shortened_coordinates_stay_within_a_hundredth_of_a_point():
    assert plotting._short("M 33.504 -216.3 \nL 135.1749 6.80 \nz") == "M33.5 -216.3L135.17 6.8z"


def test_very_many_points_are_embedded_as_pixels(ds):
    few = plotting.render(lambda d, fig: plotting.scatter(fig.subplots(), d.predicted_z, d.measured_z), ds)
    many = xr.concat([ds] * 100, "copy")
    svg = plotting.render(lambda d, fig: plotting.scatter(fig.subplots(), d.predicted_z, d.measured_z), many)
    assert "data:image/png;base64," in svg and "data:image" not in few
    assert "currentColor" in svg  # axes and text stay vectors
    assert len(svg) < 100_000


def test_band_finds_the_dimension_of_x_by_name_and_passes_over_bad_runs(ds, ax):
    runs = ds.measured_z.where(ds.seed != 3).transpose("step", "seed", "lr")
    plotting.band(ax, ds.step, runs)
    expected = np.nanmedian(runs.values.reshape(12, -1), axis=1)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), expected)


def test_band_of_runs_that_are_all_bad_leaves_a_gap(ax):
    plotting.band(ax, np.arange(3), np.array([[1.0, np.nan, 2.0], [1.0, np.inf, 2.0]]))
    np.testing.assert_array_equal(np.isnan(ax.lines[0].get_ydata()), [False, True, False])


def test_scatter_broadcasts_by_name_and_draws_one_diagonal(ds, ax):
    plotting.scatter(ax, ds.predicted_z.isel(seed=0, drop=True), ds.measured_z, "a")
    plotting.scatter(ax, ds.predicted_z, ds.measured_z, "b")
    labels = [line.get_label() for line in ax.lines]
    assert labels.count("measured = predicted") == 1
    assert len(ax.lines[0].get_xdata()) == ds.measured_z.size


@pytest.mark.parametrize("values", [[], [np.nan, np.inf], [2.0], [-1.0, 0.0, 1.0]])
def test_scatter_of_odd_data(values, ax):
    plotting.scatter(ax, np.array(values), np.array(values))
    assert ax.get_xscale() == "linear"


def test_order_draws_the_expected_slope_through_the_largest_step(ax):
    eta = np.array([0.1, 0.2, 0.4])
    plotting.order(ax, eta, 3 * eta[None] ** 2 * np.array([[0.9], [1.0], [1.1]]), 2.0, "error")
    (guide,) = [line for line in ax.lines if line.get_label() == "slope 2"]
    np.testing.assert_allclose(guide.get_ydata(), 3 * guide.get_xdata() ** 2)


def test_order_of_errors_that_are_all_zero_is_empty(ds):
    svg = plotting.render(lambda d, fig: plotting.order(fig.subplots(), [0.1, 0.2], np.zeros((3, 2)), 1.0), ds)
    assert svg.startswith("<svg")


@pytest.mark.parametrize("by", [None, ["gd", "adam"], [1.0, 2.0]])
def test_lines_by_name_by_number_or_plain(ds, ax, by):
    plotting.lines(ax, ds.step, ds.measured_z.isel(seed=0), by, name="k")
    assert len(ax.lines) == 2
    expected = {None: "_child0", "gd": "gd", 1.0: "k = 1"}[by[0] if by else None]
    assert ax.lines[0].get_label() == expected


def test_many_numbers_get_a_colour_bar():
    fig = Figure()
    plotting.lines(fig.subplots(), np.arange(4), np.ones((9, 4)), np.logspace(-3, 0, 9), name="rate")
    assert len(fig.axes) == 2


def test_default_plot_draws_every_predicted_variable_and_every_form(ds):
    both = xr.concat([ds.predicted_z, 2 * ds.predicted_z], xr.Variable("form", ["printed", "derived"]))
    fig = Figure()
    plotting.default_plot(ds.assign(predicted_z=both, predicted_w=ds.predicted_z, measured_w=ds.measured_z), fig)
    assert sorted(ax.get_title() for ax in fig.axes) == ["w", "z"]
    (panel,) = [ax for ax in fig.axes if ax.get_title() == "z"]
    assert {"printed", "derived"} <= {line.get_label() for line in panel.lines}


def test_default_plot_without_predictions_and_without_anything(ds):
    assert "<svg" in plotting.render(None, ds.drop_vars("predicted_z"))
    assert "<svg" in plotting.render(None, xr.Dataset())
