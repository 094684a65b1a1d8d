"""The frozen decoder: overlap breaks Theorem 1's gradient, and impossible settings are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.snap.gradient.frozen_decoder import Frozen


def test_strong_overlap_is_far_from_theorem_1(frozen_runs):
    broken = frozen_runs.sel(common=0.5)
    residual = jd.relative_error(broken, "gradient", "class token").max("time")
    assert float(residual.min()) > 0.1


def test_settings_refuse_what_cannot_be():
    with pytest.raises(jd.UsageError, match="at least 21"):
        Frozen(tokens=20)
    with pytest.raises(jd.UsageError, match="share"):
        Frozen(common=1.0)
