"""Settings that are refused."""

import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.galore import projection


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [(projection.Fixed, {"rank": 8}), (projection.Span, {"span": 8})],
)
def test_wrong_settings_are_refused(setting, wrong):
    with pytest.raises(UsageError, match="not allowed"):
        setting(**wrong)
