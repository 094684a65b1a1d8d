"""The files that ship with the package are written from plans and shards."""

import json

import pytest

import jaxdyn as jd
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.programs import direct
from jaxdyn.engine.programs.chunk import program_name
from jaxdyn.engine.runs.blocks import Runs
from jaxdyn.engine.runs.costs import REFERENCE, read_costs, reference_times
from jaxdyn.engine.verification.verify import make_plan
from jaxdyn.maintain import shipped
from jaxdyn.maintain.shipped import theory_programs, write_costs

from ..engine.conftest import TOYS


@pytest.fixture
def claim(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    return load_file(TOYS).CLAIMS[0]


def test_costs_are_written_from_a_folder(claim, tmp_path):
    with pytest.raises(jd.UsageError, match="holds no shards"):
        write_costs(tmp_path)
    jd.verify(claim, out=tmp_path / "out")
    assert write_costs(tmp_path / "out", tmp_path / "costs.json") == 1
    costs = json.loads((tmp_path / "costs.json").read_text(encoding="utf-8"))
    (job,) = make_plan([claim]).jobs
    assert list(costs["programs"]) == [program_name(job.program)] and costs["calibration_seconds"] > 0


def test_costs_are_added_in_seconds_of_the_reference_machine(claim, tmp_path, monkeypatch):
    """Programs that there are no more are left out; this machine takes twice as long."""
    jd.verify(claim, out=tmp_path / "out")
    monkeypatch.setattr(shipped, "calibrate", lambda: 2.0)
    assert write_costs(tmp_path / "out", tmp_path / "here.json") == 1
    (own,) = json.loads((tmp_path / "here.json").read_text(encoding="utf-8"))["programs"].items()
    kept = program_name(theory_programs(["lyu"])[0])
    monkeypatch.setattr(shipped, "theory_programs", lambda: theory_programs(["lyu"]))
    there = {"calibration_seconds": 1.0, "programs": {kept: [3.0, 0.5], "gone:trial ()": [1.0, 1.0], own[0]: [9.0, 9.0]}}
    (tmp_path / "costs.json").write_text(json.dumps(there), encoding="utf-8")
    assert write_costs(tmp_path / "out", tmp_path / "costs.json") == 1
    costs = json.loads((tmp_path / "costs.json").read_text(encoding="utf-8"))
    assert costs["calibration_seconds"] == 1.0 and costs["programs"].keys() == {kept, own[0]}
    assert costs["programs"][kept] == [3.0, 0.5]
    assert costs["programs"][own[0]] == pytest.approx([x / 2 for x in own[1]], rel=0.01, abs=1e-3)


@pytest.mark.slow
def test_programs_are_those_that_are_planned(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    programs = theory_programs(["lyu", "morwani"])
    planned = [job.program for job in make_plan(registry.select(["lyu", "morwani"])).jobs]
    assert len(set(programs)) == len(programs) > 1
    assert set(map(Runs.program_key, programs)) == set(map(Runs.program_key, planned))


@pytest.mark.slow
def test_what_is_shipped_is_what_tracing_and_listing_say(tmp_path, monkeypatch):
    monkeypatch.setattr(shipped, "theory_programs", lambda: theory_programs(["lyu"]))
    claims, programs = shipped.write_shipped(tmp_path)
    catalogue = json.loads((tmp_path / "catalogue.json").read_text(encoding="utf-8"))
    assert len(catalogue["claims"]) == claims == len(registry.catalogue()) and catalogue["claims"] == registry.catalogue()
    monkeypatch.setattr(direct, "SHIPPED", tmp_path / "programs.json")
    monkeypatch.setattr(direct, "in_use", lambda: True)
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    direct.shipped_programs.cache_clear()
    assert direct.untraced(theory_programs(["lyu"])) == set()
    facts = direct.facts_of(theory_programs(["lyu"]))
    direct.shipped_programs.cache_clear()
    assert facts == {program: direct.traced_facts(program) for program in theory_programs(["lyu"])} and len(facts) == programs
    assert not (tmp_path / "cache" / direct.PROGRAMS).exists(), "nothing was left to trace"


def test_nearly_all_expected_time_is_that_of_programs_that_were_timed():
    """A guess may be wrong by orders of magnitude, and with it the minutes that are announced, and what fits into some minutes."""
    timed = read_costs(REFERENCE)[1]
    programs = theory_programs()
    seconds = {name: sum(reference_times(program)) for program in programs if (name := program_name(program))}
    guessed = {name: each for name, each in seconds.items() if name not in timed}
    assert sum(guessed.values()) <= 0.1 * sum(seconds.values()), f"python -m jaxdyn.maintain costs: {sorted(guessed)}"
