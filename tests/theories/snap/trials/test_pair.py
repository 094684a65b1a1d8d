"""Wrong settings of the pair are refused."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.snap.trials.pair import Pair


@pytest.mark.parametrize("fields", [{"classes": 1}, {"per_query": 5.0}, {"size": 1.0}, {"eta_y": 0.0}])
def test_wrong_pairs_are_refused(fields):
    with pytest.raises(UsageError, match=next(iter(fields))):
        Pair(**fields)
