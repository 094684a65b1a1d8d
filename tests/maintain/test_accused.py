"""Claims that are asked again: those whose words or judge changed, and on each day of a week another share of the others."""

import datetime
import json
import re

import pytest

from jaxdyn.attacks import recorded
from jaxdyn.errors import UsageError
from jaxdyn.maintain import accused
from tests.attacks import toys

WEEK = [datetime.date(2026, 11, 23) + datetime.timedelta(days) for days in range(7)]


@pytest.fixture
def on_record(monkeypatch):
    """Forty claims, all asked before."""
    claims = {name: toys.claim(id=name) for name in (f"toy.c{i}" for i in range(40))}
    answers = {name: {"digest": recorded.what_was_asked(claim), "attacks": []} for name, claim in claims.items()}
    monkeypatch.setattr(accused, "recorded_answers", lambda: answers)
    return claims, answers


def test_each_claim_is_asked_on_one_day_of_the_week(on_record):
    claims, _ = on_record
    days = [accused.due(claims, day) for day in WEEK]
    assert sorted(name for _, names in days for name in names) == sorted(claims)
    assert not any(changed for changed, _ in days)


@pytest.mark.parametrize(
    "change", [{"statement": "Another."}, {"title": "Another"}, {"judge": toys.judge_start}, {"excused": {"law": "for a reason"}}]
)
def test_what_says_or_judges_something_else_is_asked_at_once(change, on_record):
    claims, answers = on_record
    claims["toy.c3"] = toys.claim(id="toy.c3", **change)
    del answers["toy.c5"]
    days = [accused.due(claims, day) for day in WEEK]
    assert all(changed == ["toy.c3"] and "toy.c3" not in names for changed, names in days)
    assert not any("toy.c5" in names for _, names in days), "it was never asked"


def test_only_findings_that_are_not_on_record_are_told(monkeypatch):
    def finding(subject, excuse=""):
        return {"subject": subject, "text": f"about {subject}", "excuse": excuse}

    before = [{"name": "law", "findings": [finding("a.py:12, mul")]}, {"name": "words", "findings": [finding("only")]}]
    monkeypatch.setattr(recorded, "recorded_answers", lambda: {"toy.c": {"attacks": before}})
    now = [
        {"name": "law", "findings": [finding("a.py:14, mul"), finding("a.py:14, exp")]},
        {"name": "parts", "findings": [finding("only"), finding("z", "excused")]},
    ]
    assert recorded.new_findings({"id": "toy.c", "attacks": now}) == [("law", "about a.py:14, exp"), ("parts", "about only")]
    assert len(recorded.new_findings({"id": "toy.new", "attacks": now})) == 3


def test_a_share_of_a_verification_is_asked_on_its_runs(tmp_path, monkeypatch, capsys):
    from jaxdyn.cli.main import main
    from jaxdyn.maintain.__main__ import main as maintain

    assert main(["verify", "power.steep", "sup.steps", "--out", str(tmp_path / "out"), "--workers", "1", "--json"]) == 0
    (tmp_path / "result.json").write_text(capsys.readouterr().out, encoding="utf-8")
    asked = {name: {"digest": "of other words", "attacks": []} for name in ("power.steep", "sup.steps")}
    monkeypatch.setattr(accused, "recorded_answers", lambda: asked)
    told = maintain(["accused", str(tmp_path / "result.json"), str(tmp_path / "out")])
    said = capsys.readouterr()
    assert "2 claims in 2 groups" in said.err and re.search(r"finding(s that are)? not on record", said.out), said
    assert told == int(not said.out.startswith("0"))
    entries = json.loads((tmp_path / "out" / "referee.json").read_text(encoding="utf-8"))["claims"]
    assert [entry["id"] for entry in entries] == ["power.steep", "sup.steps"]


@pytest.mark.parametrize("content", ["", "[]", '{"claims": 3}', '{"claims": [{"id": "a"}]}'])
def test_what_is_no_result_is_refused(content, tmp_path):
    (tmp_path / "result.json").write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match="is not what `jaxdyn verify --json` prints"):
        list(accused.accused(tmp_path / "result.json", tmp_path / "out", WEEK[0]))
