"""The published phases follow one another and lie within the claims' paper grid."""

from jaxdyn.theories.nanda.claims import progress
from jaxdyn.theories.nanda.published import PHASES


def test_phases_follow_one_another_and_end_within_training():
    begin = list(PHASES.values())
    assert begin[0] == 0 and begin == sorted(set(begin))
    base = progress.CLAIMS[0].paper.base
    assert begin[-1] <= base.epochs and all(epoch % base.every == 0 for epoch in begin), "each border is a record"
