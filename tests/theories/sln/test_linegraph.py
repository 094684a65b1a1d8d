"""Both sides of the identities on a few graphs, and what a breach does."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.sln.linegraph import Line


def test_settings_that_are_refused():
    with pytest.raises(UsageError, match="nodes is at most largest"):
        Line(nodes=20.0)
