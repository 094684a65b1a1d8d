"""Recorded verdicts: written from a whole verification, shown of claims that were not run, and stale once checks have changed."""

import dataclasses
import json

import pytest

import jaxdyn as jd
from jaxdyn.engine.verification import last_verdicts as recorded
from jaxdyn.engine.verification.last_verdicts import not_run, recorded_verdicts, write_verdicts
from jaxdyn.engine.verification.payload import payload
from jaxdyn.engine.verification.verify import make_plan, run_plan


@pytest.fixture
def made(claim, tmp_path, monkeypatch):
    """A claim, and a folder with the result of its verification."""
    one = claim()
    (tmp_path / "result.json").write_text(json.dumps(payload([jd.verify(one)], 1.0)), encoding="utf-8")
    monkeypatch.setattr(recorded, "RECORDED", tmp_path / "verdicts.json")
    recorded_verdicts.cache_clear()
    yield one, tmp_path
    recorded_verdicts.cache_clear()


def test_a_claim_that_was_not_run_has_its_last_verdict(made):
    one, folder = made
    assert not_run(one)["last_verdict"] is None
    assert write_verdicts(folder, recorded.RECORDED) == 1
    entry = not_run(one)
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    when = {name: result["environment"][name] for name in ("date", "commit", "device")}
    assert entry["last_verdict"] == {"verdict": result["claims"][0]["verdict"], "stale": False, **when}
    assert entry["verdict"] == "not run" and entry["title"] == one.title and entry["command"] == "jaxdyn verify toy.made"


def test_a_verdict_by_other_checks_is_stale(made):
    one, folder = made
    write_verdicts(folder, recorded.RECORDED)
    other = dataclasses.replace(one, controls={"halved": lambda ds: ds.assign(predicted_x=ds.predicted_x / 2)})
    assert not_run(other)["last_verdict"]["stale"]


def test_verdicts_of_another_call_are_added(made):
    one, folder = made
    write_verdicts(folder, recorded.RECORDED)
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    result["claims"][0] |= {"id": "toy.other", "verdict": "refuted"}
    result["environment"]["date"] = "later"
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    assert write_verdicts(folder, recorded.RECORDED) == 1
    both = recorded_verdicts()
    assert (both["toy.other"]["verdict"], both["toy.other"]["date"]) == ("refuted", "later")
    assert both[one.id]["date"] != "later" and not_run(one)["last_verdict"]["stale"] is False


def test_skipped_claims_and_other_seeds_are_not_recorded(made):
    one, folder = made
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    result["claims"][0]["verdict"] = "skipped"
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    assert write_verdicts(folder, recorded.RECORDED) == 0
    for options in ({"fresh": 4000}, {"seeds": range(3, 4)}):
        results = run_plan(make_plan([one], **options), None)
        (folder / "result.json").write_text(json.dumps(payload(results, 1.0)), encoding="utf-8")
        with pytest.raises(jd.UsageError, match="toy.made was run with other seeds or settings than its own"):
            write_verdicts(folder, recorded.RECORDED)
    with pytest.raises(jd.UsageError, match="holds no results of `jaxdyn verify`"):
        write_verdicts(folder / "nowhere")


def test_a_damaged_record_is_none(made):
    one, _ = made
    recorded.RECORDED.write_text("[1", encoding="utf-8")
    assert not_run(one)["last_verdict"] is None
