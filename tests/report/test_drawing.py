"""A claim's own figure, or another where a knob took away what it shows."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.report.drawing import INSTEAD, drawn


@pytest.fixture
def data():
    values = {name: (("seed", "lr"), np.arange(4.0).reshape(2, 2)) for name in ("predicted_x", "measured_x")}
    return xr.Dataset(values, {"lr": [0.1, 0.2]})


def own(ds, fig):
    fig.subplots().plot(ds.measured_x.sel(lr=0.1), label="the smallest rate")


def test_a_plot_that_misses_a_value_gives_way_on_settings_of_the_callers(data):
    assert "the smallest rate" in drawn(own, data, True) and "the smallest rate" in drawn(own, data, False)
    rest = data.isel(lr=[1])
    assert INSTEAD in drawn(own, rest, True)
    with pytest.raises(KeyError):
        drawn(own, rest, False)


def test_a_broken_plot_is_broken_on_any_settings(data):
    def broken(ds, fig):
        raise TypeError("no")

    with pytest.raises(TypeError):
        drawn(broken, data, True)
    assert "<svg" in drawn(None, data, True)
