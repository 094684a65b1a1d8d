"""Judge and settings of the claim on the least number of nodes."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.trials import orders


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: orders.Search(starts=0), "starts=0 is not allowed: there is at least one start"),
        (lambda: orders.Search(steps=0), "steps=0 is not allowed"),
        (lambda: orders.Search(spread=0.0), "spread=0.0 is not allowed: spread is positive"),
    ],
)
def test_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()
