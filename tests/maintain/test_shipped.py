"""The files that ship with the package are written from plans and shards."""

import json

import pytest

import jaxdyn as jd
from jaxdyn.engine.reference import load_file
from jaxdyn.engine.timings import program_name
from jaxdyn.engine.verify import make_plan
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
    costs = json.loads((tmp_path / "costs.json").read_text())
    (job,) = make_plan([claim]).jobs
    assert list(costs["programs"]) == [program_name(job.program)] and costs["calibration_seconds"] > 0


def test_programs_are_as_planned_without_how_they_are_executed():
    programs = theory_programs()
    assert len(set(programs)) == len(programs) > 80
    assert {p.executor for p in programs} == {"auto"}
