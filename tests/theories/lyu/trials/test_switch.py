"""What the setting of the switch refuses."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.lyu.trials.switch import Switch


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"active": 12}, "active < samples < inputs"),
        ({"samples": 24}, "active < samples < inputs"),
        ({"records": 4}, "records is at least 8"),
        ({"alpha": 0.0}, "alpha, decay and shrink are positive"),
        ({"shrink": 0.0}, "alpha, decay and shrink are positive"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Switch(**fields)
