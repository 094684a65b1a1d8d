"""One panel per check, two in a row."""

import pytest
from matplotlib.figure import Figure

from jaxdyn.report.panels import panels


@pytest.mark.parametrize(("checks", "rows", "columns"), [(1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 2, 2), (6, 3, 2), (9, 5, 2)])
def test_a_panel_for_each_check(checks, rows, columns):
    fig = Figure()
    cells = [{"checks": [{"name": f"c{i}"} for i in range(checks)]}, {}]
    axes = panels(fig, cells)
    assert list(axes) == [f"c{i}" for i in range(checks)] and fig.axes == list(axes.values())
    assert all(ax.get_title() == name for name, ax in axes.items())
    assert axes["c0"].get_subplotspec().get_gridspec().get_geometry() == (rows, columns)
    assert fig.get_size_inches()[1] >= 2.0 * rows - 0.1 or rows < 3


def test_without_checks_there_is_no_panel():
    fig = Figure()
    assert panels(fig, [{}]) == {} and fig.axes == []
