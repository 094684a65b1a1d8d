"""What settings of the constructed network refuse."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.gromov.trials.constructed import Constructed


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"moduli": (9,)}, "all are prime to 6"),
        ({"moduli": (22,)}, "all are prime to 6"),
        ({"moduli": (7,)}, "moduli are above 10"),
        ({"moduli": ()}, "at least one modulus"),
        ({"moduli": (11, 11)}, "moduli differ"),
        ({"step": 0}, "step and blocks are at least 1"),
    ],
)
def test_settings_refuse(fields, words):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.* not allowed: .*{words}"):
        Constructed(**fields)
