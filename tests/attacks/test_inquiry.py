"""The whole inquiry, its list of attacks, its answers and excuses, stored and recorded."""

import dataclasses
import json
import math

import pytest

import jaxdyn as jd
from jaxdyn.attacks import inquiry, outcomes, recorded
from jaxdyn.attacks.answer import Answer, Finding, answered, excused, not_asked, with_idle
from jaxdyn.attacks.case import Attack
from jaxdyn.attacks.listed import ATTACKS
from jaxdyn.attacks.outcomes import basis, load_answers, save_answers
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.judging.digest import digest
from jaxdyn.engine.verification.verify import make_tasks
from jaxdyn.errors import UsageError
from tests.attacks import right, toys

# The whole inquiry: right claims stand, excuses are shown, failing attacks do not end it.


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


# The list of attacks.


def test_attacks_have_names_of_their_own_and_ask_a_question():
    names = [attack.name for attack in ATTACKS]
    assert len(set(names)) == len(names) >= 9
    assert all(attack.asks.endswith("?") and ":" not in attack.name for attack in ATTACKS)


def test_what_needs_new_runs_is_asked_last_but_for_words_and_luck():
    assert {attack.name for attack in ATTACKS if attack.costly} == {"no learning", "neighbours", "more time", "luck"}


# Answers and excuses.


FOUND = answered("asked", [Finding("rate", "wrong"), Finding("time", "late")])


def test_findings_make_the_outcome():
    assert answered("asked").outcome == "noticed" and FOUND.outcome == "finding" and len(FOUND.open) == 2


@pytest.mark.parametrize(
    ("excuses", "outcome", "left"),
    [
        ({}, "finding", 2),
        ({"law: rate": "since"}, "finding", 1),
        ({"law": "since"}, "excused", 0),
        ({"words": "since"}, "finding", 2),
    ],
)
def test_excuses(excuses, outcome, left):
    found = excused(FOUND, "law", excuses)
    assert found.outcome == outcome and len(found.open) == left


@pytest.mark.parametrize(
    ("excuses", "words"),
    [({"law: speed": "since"}, "law"), ({"words": "since"}, "words")],
)
def test_idle_excuses_are_findings(excuses, words):
    found = with_idle({"law": FOUND, "words": answered("asked")}, excuses)[words]
    assert found.outcome == "finding" and "excuses nothing" in found.open[-1].text


def test_an_excuse_that_names_no_attack_is_refused():
    with pytest.raises(UsageError, match="no attack"):
        with_idle({"law": FOUND}, {"laws": "since"})


def test_what_was_not_asked_may_be_excused():
    dear = {"law": not_asked("too dear")}
    assert with_idle(dear, {"law: rate": "since"}) == dear


# Stored answers: used for the same basis, ignored for another and when damaged.


ENTRY = {"id": "toy.decay", "attacks": []}


def test_answers_are_kept_by_their_basis(tmp_path):
    claim = toys.claim()
    save_answers(tmp_path, claim, "one", True, ENTRY)
    assert load_answers(tmp_path, claim, "one", True) == ENTRY
    assert load_answers(tmp_path, claim, "other", True) is None
    assert load_answers(tmp_path, claim, None, True) is None
    assert load_answers(tmp_path, claim, "one", False) is None, "a quick inquiry is no whole one"


def test_a_whole_inquiry_answers_a_quick_one(tmp_path):
    claim = toys.claim()
    save_answers(tmp_path, claim, "one", False, ENTRY)
    assert load_answers(tmp_path, claim, "one", True) == ENTRY


def test_a_damaged_file_is_ignored(tmp_path):
    claim = toys.claim()
    save_answers(tmp_path, claim, "one", True, ENTRY)
    (file,) = (tmp_path / "referee").iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    assert load_answers(tmp_path, claim, "one", True) is None


def test_a_users_claim_has_no_basis_and_ours_has_where_no_other_code_runs(monkeypatch):
    ours = registry.select(["cal.gd_order1"])
    assert basis(make_tasks(ours)[0]) is None, "the tests are loaded"
    monkeypatch.setattr(outcomes.direct, "alone", lambda: True)
    assert basis(make_tasks([toys.claim()])[0]) is None
    assert basis(make_tasks(ours)[0]) == basis(make_tasks(ours)[0]) is not None


# Recorded answers: what is kept of them, counted, and shown in brief.


FINDING = {"subject": "rate", "text": "no check notices", "excuse": ""}
FACTORS = [
    {"where": "a.py:1, mul", "code": "x", "low": 0.5, "high": 1.05},
    {"where": "a.py:2, exp", "code": "y", "low": 0.0, "high": 1.2},
]
RECORDED_ENTRY = {
    "id": "toy.decay",
    "attacks": [
        {
            "name": "law",
            "outcome": "finding",
            "detail": "asked",
            "findings": [FINDING],
            "facts": {"factors": FACTORS, "equations": 2},
        },
        {"name": "words", "outcome": "excused", "detail": "asked", "findings": [FINDING | {"excuse": "since"}], "facts": {}},
    ],
}


@pytest.fixture
def written(tmp_path, monkeypatch):
    target = tmp_path / "recorded.json"
    monkeypatch.setattr(recorded, "RECORDED", target)
    recorded.recorded_answers.cache_clear()
    claim = toys.claim()
    entry = RECORDED_ENTRY | {"asked": recorded.what_was_asked(claim)}
    (tmp_path / recorded.ANSWERS).write_text(json.dumps({"claims": [entry, entry | {"id": "no.such"}]}), encoding="utf-8")
    assert recorded.write_answers(tmp_path, "2026-01-02", {claim.id: claim}, target) == 1
    yield claim
    recorded.recorded_answers.cache_clear()


def test_the_answers_on_a_claim_are_kept_without_their_facts_but_for_factors(written):
    said = recorded.summary_of(written)
    assert said["date"] == "2026-01-02" and said["open"] == 1 and not said["stale"]
    assert "facts" not in said["attacks"][0] and len(said["attacks"][0]["factors"]) == 2


def test_a_claim_that_is_judged_otherwise_now_is_stale(written):
    other = toys.claim(judge=toys.judge_start)
    assert digest(other) != digest(written) and recorded.summary_of(other)["stale"]


def test_answers_on_a_claim_that_said_something_else_are_left_out(written, tmp_path):
    other = dataclasses.replace(written, title="Another title")
    assert recorded.write_answers(tmp_path, "2026-01-03", {other.id: other}, tmp_path / "other.json") == 0


def test_in_brief_the_weakest_factor_is_the_largest_that_is_not_noticed(written):
    brief = recorded.brief_of(written.id)
    assert (brief["open"], brief["excused"]) == (1, 1)
    assert brief["weakest"] == {"factor": None, "where": "a.py:2, exp"}, "half is not noticed there"
    assert recorded.brief_of("no.such") is None


def test_outcomes_are_counted_by_attack():
    assert recorded.counted([RECORDED_ENTRY, RECORDED_ENTRY]) == {"law": {"finding": 2}, "words": {"excused": 2}}


@pytest.mark.parametrize(
    ("low", "high", "text"), [(0.91, 1.1, "0.91 to 1.1"), (0.0, None, "below 0.5 to above 2"), (0.5, 2.0, "0.5 to 2")]
)
def test_factors_in_words(low, high, text):
    assert recorded.factor_text({"low": low, "high": high}) == text
    assert math.isfinite(low)


def test_a_folder_without_answers_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no answers"):
        recorded.write_answers(tmp_path, "2026-01-02", {})


def test_the_shipped_answers_can_be_read():
    for name, entry in recorded.recorded_answers().items():
        assert entry.keys() == {"digest", "date", "attacks"}, name
