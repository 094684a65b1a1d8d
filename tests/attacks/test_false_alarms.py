"""The referee accuses few claims that are right."""

import pytest

import jaxdyn as jd
from jaxdyn.attacks import inquiry
from tests.attacks import right

CLAIMS, ACCUSED = 100, 5
COSTLY = 12  # of which all is asked


def accused(claims, quick):
    """What was found, by claim; every claim has to be judged for that."""
    found = {}
    for claim in claims:
        report = inquiry.referee(claim, quick=quick)
        outcomes = {name: answer.outcome for name, answer in report.answers.items()}
        assert "noticed" in outcomes.values(), f"{claim.id}: {report!r}"
        if findings := {name: answer.detail for name, answer in report.answers.items() if answer.outcome == "finding"}:
            found[claim.id] = findings
    return found


def test_right_claims_by_lot_are_upheld_and_differ():
    claims = right.claims(12, seed=7)
    assert {claim.id.split(".")[1].rstrip("0123456789") for claim in claims} == set(right.FAMILIES)
    assert [jd.verify(claim).verdict for claim in claims] == ["upheld"] * 12
    assert [claim.quick.axes for claim in right.claims(12, seed=8)] != [claim.quick.axes for claim in claims]


@pytest.mark.slow
def test_of_a_hundred_right_claims_at_most_five_are_accused():
    found = accused(right.claims(CLAIMS, seed=63), quick=True)
    assert len(found) <= ACCUSED, found


@pytest.mark.slow
def test_attacks_with_new_runs_accuse_at_most_one_of_twelve():
    found = accused(right.claims(COSTLY, seed=64), quick=False)
    assert len(found) <= 1, found
