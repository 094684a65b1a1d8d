"""The whole inquiry: right claims stand, excuses are shown, failing attacks do not end it."""

import json

import pytest

import jaxdyn as jd
from jaxdyn.attacks import inquiry
from jaxdyn.attacks.answer import Answer
from jaxdyn.attacks.case import Attack
from jaxdyn.attacks.listed import ATTACKS
from jaxdyn.errors import UsageError
from tests.attacks import toys


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


def test_excuses_for_nothing_are_refused():
    with pytest.raises(UsageError, match="excuses nothing"):
        inquiry.referee(toys.claim(excused={"data read": "because"}), quick=True)


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
