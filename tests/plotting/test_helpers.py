"""Helpers for figures: colours that can be read, dimensions found by name, gaps where runs are not ok."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import plotting
from jaxdyn.plotting import helpers


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


def test_line_colours_are_readable_on_white_and_on_near_black():
    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for name, colour in plotting.COLORS.items():
        on_white = 1.05 / (luminance(colour) + 0.05)
        on_dark = (luminance(colour) + 0.05) / (luminance("#1a1d22") + 0.05)
        assert min(on_white, on_dark) >= 3, name  # WCAG 2.1, 1.4.11: graphical objects


def test_band_finds_the_dimension_of_x_by_name_and_passes_over_bad_runs(ds, ax):
    runs = ds.measured_z.where(ds.seed != 3).transpose("step", "seed", "lr")
    plotting.band(ax, ds.step, runs)
    expected = np.nanmedian(runs.values.reshape(12, -1), axis=1)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), expected)


def test_band_of_runs_that_are_all_bad_leaves_a_gap(ax):
    plotting.band(ax, np.arange(3), np.array([[1.0, np.nan, 2.0], [1.0, np.inf, 2.0]]))
    np.testing.assert_array_equal(np.isnan(ax.lines[0].get_ydata()), [False, True, False])


def test_infinite_runs_count_in_quantiles():
    rng = np.random.default_rng(0)
    for _ in range(200):
        runs = np.sort(rng.normal(size=rng.integers(1, 9)))
        runs[: rng.integers(0, runs.size + 1)] = -np.inf if rng.random() < 0.5 else runs[0]
        runs[runs.size - rng.integers(0, runs.size + 1) :] = np.inf
        with_nan = rng.permutation(np.concatenate([runs, [np.nan] * 3]))
        for level in (0.05, 0.5, 1.0):
            place = level * (runs.size - 1)
            low, high = runs[int(np.floor(place))], runs[int(np.ceil(place))]
            mixed = np.isinf(low) and np.isinf(high) and low != high  # between both infinities there is no number
            expected = np.nan if mixed else low if low == high else (1 - place % 1) * low + (place % 1) * high
            np.testing.assert_allclose(helpers.quantiles(with_nan[:, None], [level])[0, 0], expected)


@pytest.mark.filterwarnings("error")
def test_what_is_beyond_all_axes_is_left_out_of_every_figure(ds):
    """Drawn to the end, so that ticks and margins are laid out."""
    huge = ds.copy(deep=True)
    huge.measured_z[0, 0, 0], huge.predicted_z[0, 1, 0] = 1e308, -np.inf
    assert "<svg" in plotting.render(None, huge) and "<svg" in plotting.render(None, huge.drop_vars("predicted_z"))
    values = np.array([[1.0, 1e308, 2.0], [1.0, -1e300, -np.inf]])
    for draw in (plotting.band, plotting.lines, plotting.order):
        assert "<svg" in plotting.render(lambda _, fig, draw=draw: draw(fig.subplots(), np.arange(1.0, 4.0), values), ds)
    np.testing.assert_array_equal(helpers.finite(values), [[1.0, np.nan, 2.0], [1.0, np.nan, np.nan]])


def test_a_median_says_how_many_runs_it_rests_on(ds):
    values = np.array([[1.5, 2.5, np.inf], [1.0, np.nan, np.inf], [1.2, np.nan, 3.0]])
    svg = plotting.render(lambda _, fig: plotting.band(fig.subplots(), np.arange(3), values), ds)
    assert "median of at least 1 run" in svg
    axes = Figure().subplots()
    plotting.band(axes, np.arange(3), values)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [1.2, 2.5, np.nan])


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


def test_of_very_many_entries_a_fixed_number_is_drawn_which_the_legend_says(ax):
    """The diagonal is over all of them; the same ones are drawn each time."""
    values = np.arange(3 * helpers.POINTS, dtype=float)
    plotting.scatter(ax, values, values, "runs")
    cloud, diagonal = ax.lines
    assert len(cloud.get_xdata()) == helpers.POINTS == len(set(cloud.get_xdata()))
    assert cloud.get_label() == "runs, 20,000 of 60,000 entries" and list(diagonal.get_xdata()) == [0, values[-1]]
    plotting.scatter(ax, values, values)
    assert ax.lines[2].get_label() == "20,000 of 60,000 entries"
    np.testing.assert_array_equal(ax.lines[2].get_xdata(), cloud.get_xdata())


def test_of_very_many_runs_a_fixed_number_of_lines_is_drawn(ax):
    plotting.lines(ax, np.arange(4), np.ones((1000, 4)))
    assert len(ax.lines) == helpers.LINES
    assert ax.get_legend_handles_labels()[1] == ["200 of 1,000 runs"]


def test_lines_with_positions_of_their_own_and_a_label(ax):
    xs, ys = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4) ** 2
    plotting.lines(ax, xs, ys, label="all runs")
    for line, x, y in zip(ax.lines, xs, ys, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([x, y]))
    plotting.lines(ax, np.ones((900, 4)), np.ones((900, 4)), label="many")
    assert ax.get_legend_handles_labels()[1] == ["all runs", "many, 200 of 900 runs"]


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


@pytest.mark.parametrize(("count", "shape"), [(3, (1, 3)), (5, (2, 3)), (12, (3, 3))])
def test_default_plot_draws_many_variables_and_says_where_there_are_more(count, shape, ds):
    more = {f"{kind}_v{i}": ds[f"{kind}_z"] for kind in ("predicted", "measured") for i in range(count)}
    fig = Figure()
    plotting.default_plot(xr.Dataset(more), fig)
    assert [ax.get_title() for ax in fig.axes] == [f"v{i}" for i in range(min(count, 9))]
    assert fig.axes[0].get_gridspec().get_geometry() == shape
    assert (fig.get_suptitle() == "the first 9 of 12 variables") == (count == 12)


def test_numbers_that_differ_look_different(ax):
    plotting.lines(ax, np.arange(3), np.ones((2, 3)), [1000001, 1000002], name="steps")
    assert [line.get_label() for line in ax.lines] == ["steps = 1000001", "steps = 1000002"]
    plotting.order(ax, np.array([0.1001, 0.1002, 0.2]), np.ones((2, 3)))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.1001", "0.1002", "0.2"]
