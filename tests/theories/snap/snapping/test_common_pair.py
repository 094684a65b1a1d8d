"""The pair: how far B has grown."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.snap.snapping import common_pair
from jaxdyn.theories.snap.snapping.common_pair import Pair


def test_a_query_has_no_more_classes_than_there_are():
    with pytest.raises(UsageError, match="per_query is at most classes"):
        Pair(per_query=5.0)


def test_growth_of_the_pair(pair_runs, x64):
    """The law's B is the logarithm of 1 + grown over q; at the end of the transition B has grown for large eta_Z alone."""
    ds = pair_runs["main"].isel(odds=0, seed=0)
    for per_query in (1.0, 2.0, 4.0):
        q, b = 2 * (1 + per_query), ds.predicted_b.sel(form="derived", per_query=per_query).values
        grown = [common_pair.log_argument(Pair(per_query=per_query), jnp.asarray(t)) for t in common_pair.TIMES[-2:]]
        np.testing.assert_allclose(np.log1p(grown) / q, b[-2:], rtol=1e-12)
        assert float(ds.assumed_grown.sel(per_query=per_query)) < float(grown[0])
    small = Pair(eta_z=1000.0, odds=0.02, size=1e4)
    assert float(common_pair.log_argument(small, jnp.asarray(2 * 4 * np.log(1e4)))) == pytest.approx(0.12, rel=0.05)
