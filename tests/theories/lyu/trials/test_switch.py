"""What the setting of the switch refuses."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.lyu.trials.switch import Switch


@pytest.mark.parametrize("fields", [{"active": 12}, {"samples": 24}])
def test_data_that_determine_the_weight_are_refused(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: active < samples < inputs"):
        Switch(**fields)
