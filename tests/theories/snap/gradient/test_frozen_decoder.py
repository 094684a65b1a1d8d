"""The frozen decoder: overlap breaks Theorem 1's gradient, and small vocabularies are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.snap.gradient.frozen_decoder import Frozen


def test_strong_overlap_is_far_from_theorem_1(frozen_runs):
    broken = frozen_runs.sel(common=0.5)
    residual = jd.relative_error(broken, "gradient", "class token").max("time")
    assert float(residual.min()) > 0.1


def test_the_vocabulary_holds_all_tokens():
    with pytest.raises(jd.UsageError, match="at least 21"):
        Frozen(tokens=20)
