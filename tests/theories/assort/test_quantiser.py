"""The quantiser's distances against SciPy's."""

import numpy as np

from jaxdyn.theories.assort.quantiser import brute


def test_distances_are_those_of_scipy():
    from scipy.spatial.distance import cdist

    x, y = np.random.default_rng(0).normal(size=(2, 5, 3))
    np.testing.assert_allclose(brute(x, y), cdist(x, y), rtol=1e-5)
