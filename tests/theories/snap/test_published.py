"""The published table has the shape that the claims speak of."""

import numpy as np

from jaxdyn.theories.snap import published


def test_published_table():
    assert {q: t.shape for q, t in published.FIG6.items()} == dict.fromkeys((1, 3, 5, 10), (4, 4, 2))
    assert published.FIG6[3][2, 1].tolist() == [1.809, 0.027]
    for queries, cells in published.FIG6.items():
        assert np.all(np.diff(cells[..., 0], axis=0) < 0)
        assert np.all(cells[..., 0].argmin(1) == (queries >= 3))
