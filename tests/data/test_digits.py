"""The digits that ship with scikit-learn."""

import numpy as np

from jaxdyn.data import digits


def test_sizes_and_scale():
    x, y = digits.load()
    assert x.shape == (1797, digits.PIXELS) and y.shape == (1797,)
    assert np.bincount(y).min() > 170 and len(np.unique(y)) == digits.CLASSES
    np.testing.assert_allclose([x.mean(dtype=float), x.std(dtype=float)], [0, 1], atol=1e-6)
    assert digits.load()[0] is x and not x.flags.writeable
