"""The table against what is exact: the uniform loss, and the order of the predictors."""

import numpy as np

from jaxdyn.theories.ih import published


def test_table():
    for k, losses in published.LOSSES.items():
        assert len(losses) == len(published.PREDICTORS) and np.all(np.diff(losses) < 0)
        np.testing.assert_allclose(losses[0], np.log(k), atol=5e-5)
        assert losses[-1] < sum(1 / j for j in range(2, k + 1))
