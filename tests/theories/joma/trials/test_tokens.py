"""Settings of the latent trees."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.trials.tokens import Limit, Tokens


@pytest.mark.parametrize(("kind", "field"), [(Tokens, {"rho": 1.2}), (Tokens, {"samples": 100}), (Limit, {"depth": 12.0})])
def test_settings_refuse_what_makes_no_sense(kind, field):
    with pytest.raises(jd.UsageError):
        kind(**field)
