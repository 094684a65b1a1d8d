"""What figures of instruments share: means, intervals, and maps of heads."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn import stats
from jaxdyn.instruments.drawing import curve, expected, heads, layers_axis


@pytest.fixture
def ax():
    return Figure().subplots()


def test_a_curve_is_the_mean_with_its_interval(ax):
    values = xr.DataArray(np.random.default_rng(0).normal(size=(2, 5)), dims=("layer", "piece"), coords={"layer": [1, 2]})
    curve(ax, values, "layer", "name")
    mean, low, high = stats.mean_interval(values, "piece")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), mean)
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert corners.min() == pytest.approx(float(low.min())) and corners.max() == pytest.approx(float(high.max()))


def test_without_pieces_there_is_no_band_and_one_layer_is_a_point(ax):
    curve(ax, xr.DataArray([1.0], dims="layer", coords={"layer": [1]}), "layer")
    assert ax.lines[0].get_marker() == "o" and not ax.collections
    layers_axis(ax, "weight", ylim=(0, 1))
    assert ax.get_xlabel() == "layer" and ax.get_ylim() == (0, 1)


def test_what_is_expected_is_dashed(ax):
    expected(ax, None, np.float64(0.5), "theory")
    expected(ax, [1, 2], [0.5, 0.6], "by layer")
    assert [line.get_linestyle() for line in ax.lines] == ["--", "--"]


def test_a_map_of_heads(ax):
    values = xr.DataArray(np.random.default_rng(0).random((3, 4, 2)), dims=("piece", "layer", "head"))
    heads(ax, values, "weight")
    np.testing.assert_allclose(np.ravel(ax.collections[0].get_array()), values.mean("piece").values.T.ravel())
