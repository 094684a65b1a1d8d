"""The published numbers are consistent."""

import pytest

from jaxdyn.theories.cogo import published


def test_published_cells_add_up():
    for row in published.TABLE.values():
        assert sum(mean for mean, _ in row.columns) == pytest.approx(100, abs=0.02)
    assert published.cells(23)[0] == 47.07 and published.cells(101) == published.cells(127)
    for row in published.REPRODUCED:
        assert row.columns is None or sum(row.columns) == pytest.approx(100, abs=0.11)
