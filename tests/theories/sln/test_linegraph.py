"""Settings that are refused."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.sln.linegraph import Line


def test_settings_that_are_refused():
    with pytest.raises(UsageError, match="nodes is at most largest"):
        Line(nodes=20.0)
