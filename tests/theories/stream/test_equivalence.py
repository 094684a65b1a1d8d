"""The verdicts of this topic, with all controls and rivals, on a few runs.

Settings of streaming caches; the caches themselves are tested in tests/nn/cache.
"""

import pytest

import jaxdyn as jd
from jaxdyn.errors import UsageError
from jaxdyn.theories.stream import equivalence
from jaxdyn.theories.stream.equivalence import Stream


@pytest.mark.parametrize("wrong", [{"sinks": 6.0}, {"sinks": -1.0}, {"size": 1}, {"size": 20}, {"layers": 3.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(UsageError, match="not allowed"):
        Stream(**wrong)


@pytest.mark.slow
def test_verdicts():
    assert [r.verdict for r in jd.verify_many(list(equivalence.CLAIMS), seeds=3)] == ["upheld"] * 3
