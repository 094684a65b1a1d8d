"""The whole inquiry: right claims stand, excuses are shown, failing attacks do not end it."""

import json

import pytest

import jaxdyn as jd
from jaxdyn.attacks import inquiry
from jaxdyn.attacks.answer import Answer
from jaxdyn.attacks.case import Attack
from jaxdyn.attacks.listed import ATTACKS
from jaxdyn.errors import UsageError
from tests.attacks import right, toys


def test_a_report_in_json():
    report = inquiry.referee(toys.claim(), quick=True)
    entry = json.loads(json.dumps(report.to_json()))
    assert [a["name"] for a in entry["attacks"]] == [attack.name for attack in ATTACKS]
    assert {a["outcome"] for a in entry["attacks"]} <= {"noticed", "finding", "excused", "not applicable", "not asked"}
    assert "toy.decay" in repr(report)


def test_an_excuse_closes_a_finding_and_stays_visible(monkeypatch):
    monkeypatch.setattr(inquiry, "ATTACKS", [attack for attack in ATTACKS if attack.name == "law"])
    report = inquiry.referee(
        toys.claim(
            judge=toys.judge_start,
            excused={"law": "The rate is another claim's."},
            controls={"start": lambda ds: ds.assign(measured_path=2 * ds.measured_path)},
            rivals={"none": jd.off(predicted_path=9.0)},
        ),
        quick=True,
    )
    assert report.answers["law"].outcome == "excused" and report.findings == 0
    assert "The rate is another claim's." in repr(report)


def test_an_excuse_for_nothing_is_a_finding():
    """Of this claim alone: what is asked of others goes on."""
    answer = inquiry.referee(toys.claim(excused={"data read": "because"}), quick=True).answers["data read"]
    assert answer.outcome == "finding" and "excuses nothing" in answer.open[-1].text
    with pytest.raises(UsageError, match="names no attack"):
        inquiry.referee(toys.claim(excused={"date read": "because"}), quick=True)


def test_an_attack_that_fails_is_not_asked(monkeypatch):
    def broken(case) -> Answer:
        raise ZeroDivisionError("none")

    monkeypatch.setattr(inquiry, "ATTACKS", (Attack("broken", "?", broken),))
    monkeypatch.delenv(inquiry.DEBUG, raising=False)
    answer = inquiry.referee(toys.claim(), quick=True).answers["broken"]
    assert answer.outcome == "not asked" and "ZeroDivisionError" in answer.detail


def judge_raises(ds):
    raise ValueError("no")


def test_a_claim_that_is_not_judged_is_not_asked():
    report = inquiry.referee(toys.claim(judge=judge_raises), quick=True)
    assert {a.outcome for a in report.answers.values()} == {"not applicable"}


def test_unknown_claims_are_refused():
    with pytest.raises(UsageError):
        inquiry.referee("no.such")
    with pytest.raises(UsageError, match="two|matches"):
        inquiry.referee("cal.*")
    assert jd is not None


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
