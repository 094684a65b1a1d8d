"""Two thousand bad inputs: no traceback, no hang, no wrong number; a sample every time, all of them among the slow tests."""

import os
import warnings

import jax
import pytest

from tests.bad_inputs import KINDS, Campaign

SAMPLE, ALL = 20, 2000


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAXDYN_CACHE", os.environ["JAXDYN_CACHE"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield Campaign(tmp_path)


def faults(campaign, numbers):
    """All faults; compiled programs are dropped now and then, since a process can hold only so many."""
    found = []
    for i in numbers:
        result = campaign.case(i)
        found += [f"{result.words}\n    {result.fault}\n    {result.said[-300:]}"] if result.fault else []
        if i % 100 == 99:
            jax.clear_caches()
    return found


def test_a_sample_of_bad_inputs(campaign):
    found = faults(campaign, range(SAMPLE))
    assert not found, f"{len(found)} of {SAMPLE}\n" + "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_bad_inputs(campaign, kind):
    numbers = range(kind, ALL, len(KINDS))
    found = faults(campaign, numbers)
    assert not found, f"{len(found)} of {len(numbers)}\n" + "\n".join(found)
