"""The verdicts of this topic, with all controls and rivals, on a few runs.

Weights before and after a key has left, on a few runs.
"""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.stream import lost_sink
from jaxdyn.theories.stream.lost_sink import Lost, trial


def test_growth():
    ds = jd.sweep(trial, jd.grid(Lost, mass=[0.5, 0.9], attention=["softmax", "zero_sink"]), 3)
    soft, sink = (ds.measured_weights.sel(attention=name) for name in ("softmax", "zero_sink"))
    np.testing.assert_allclose(soft.sel(mass=0.9), 10, rtol=1e-12)
    assert float(sink.sel(mass=0.9).max()) < 10


@pytest.mark.parametrize("wrong", [{"mass": 1.0}, {"mass": 0.0}, {"keys": 1}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Lost(**wrong)


def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(lost_sink.CLAIMS), seeds=3)] == ["upheld"] * 1
