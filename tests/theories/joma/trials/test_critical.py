"""Settings of Theorem 4."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.trials import critical


@pytest.mark.parametrize(("fields", "message"), [({"start": 0.6}, "start < mu_low"), ({"tokens": 1}, "at least 2 tokens")])
def test_wrong_settings_are_named(fields, message):
    with pytest.raises(jd.UsageError, match=message):
        critical.Critical(**fields)
