"""Recorded verdicts: written from a whole verification, shown of claims that were not run, and stale once checks have changed."""

import dataclasses
import json

import pytest

import jaxdyn as jd
from jaxdyn.engine import recorded
from jaxdyn.engine.payload import payload
from jaxdyn.engine.recorded import not_run, recorded_verdicts, write_verdicts


@pytest.fixture
def made(claim, tmp_path, monkeypatch):
    """A claim, and a folder with the result of its verification."""
    one = claim()
    (tmp_path / "result.json").write_text(json.dumps(payload([jd.verify(one)], 1.0)))
    monkeypatch.setattr(recorded, "RECORDED", tmp_path / "verdicts.json")
    recorded_verdicts.cache_clear()
    yield one, tmp_path
    recorded_verdicts.cache_clear()


def test_a_claim_that_was_not_run_has_its_last_verdict(made):
    one, folder = made
    assert not_run(one)["recorded"] is None
    assert write_verdicts(folder, recorded.RECORDED) == 1
    entry = not_run(one)
    result = json.loads((folder / "result.json").read_text())
    when = {name: result["environment"][name] for name in ("date", "commit", "device")}
    assert entry["recorded"] == {"verdict": result["claims"][0]["verdict"], "stale": False, **when}
    assert entry["verdict"] == "not run" and entry["title"] == one.title and entry["command"] == "jaxdyn verify toy.made"


def test_a_verdict_by_other_checks_is_stale(made):
    one, folder = made
    write_verdicts(folder, recorded.RECORDED)
    other = dataclasses.replace(one, controls={"halved": lambda ds: ds.assign(predicted_x=ds.predicted_x / 2)})
    assert not_run(other)["recorded"]["stale"]


def test_only_a_whole_verification_is_recorded(made):
    one, folder = made
    (folder / "result.json").write_text(json.dumps(payload([], 1.0, [one])))
    with pytest.raises(jd.UsageError, match=r"claims were left out \(1 not run\): it takes a verification of all claims"):
        write_verdicts(folder)
    with pytest.raises(jd.UsageError, match="holds no results of `jaxdyn verify`"):
        write_verdicts(folder / "nowhere")


def test_a_damaged_record_is_none(made):
    one, _ = made
    recorded.RECORDED.write_text("[1")
    assert not_run(one)["recorded"] is None
