"""What programs are expected to cost, on a machine that has and has not run them."""

import dataclasses
import json

import pytest

import jaxdyn as jd
from jaxdyn.engine.base.devices import Devices, elsewhere
from jaxdyn.engine.base.reference import ref_to
from jaxdyn.engine.catalogue.registry import all_claims
from jaxdyn.engine.claims.setting import split
from jaxdyn.engine.programs.chunk import Program
from jaxdyn.engine.runs import costs as timings
from jaxdyn.engine.runs import planning
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.verification.verify import make_plan
from jaxdyn.report.terminal import announcement


@pytest.fixture(autouse=True)
def new_machine(tmp_path, monkeypatch):
    """A machine that has run nothing, as fast as the reference."""
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(timings, "REFERENCE", tmp_path / "costs.json")
    forget()
    yield tmp_path / "costs.json"
    monkeypatch.undo()
    forget()


def forget():
    for cached in (timings.measured_costs, timings.shipped_costs, timings.reference_costs):
        cached.cache_clear()


def ship(file, monkeypatch, toys, slower=1.0):
    (job,) = make_plan([toys.CLAIMS[0]]).jobs
    monkeypatch.setattr(timings, "calibrate", lambda: 0.01 * slower)
    file.write_text(
        json.dumps({"calibration_seconds": 0.01, "programs": {timings.program_name(job.program): [7.0, 0.5]}}), encoding="utf-8"
    )
    forget()


def test_costs_of_the_reference_machine_are_scaled(new_machine, toys, monkeypatch):
    ship(new_machine, monkeypatch, toys, slower=2.0)
    assert make_plan([toys.CLAIMS[0]]).seconds() == pytest.approx(2 * (7.0 + 32 * 0.5))


def test_what_has_not_run_at_its_size_is_a_guess(new_machine, toys, monkeypatch):
    ship(new_machine, monkeypatch, toys)
    known, larger = make_plan([toys.CLAIMS[0]]), make_plan([toys.CLAIMS[0]], overrides={"size": 50})
    assert known.guessed() == 0 and larger.guessed() == 1
    stored = [dataclasses.replace(job, done=job.chunks) for job in larger.jobs]
    assert not any(map(timings.guessed, stored))


def test_another_program_of_a_known_trial_costs_what_its_sizes_are(new_machine, toys, monkeypatch):
    ship(new_machine, monkeypatch, toys)
    quick = toys.CLAIMS[0].quick.setting().size
    assert make_plan([toys.CLAIMS[0]], overrides={"size": 5 * quick}).seconds() == pytest.approx(7.0 + 5 * 32 * 0.5)


def test_the_program_most_alike_is_taken(new_machine, monkeypatch):
    program = Program(ref_to(print), ref_to(print), (("group", "71"), ("steps", 400), ("every", 50), ("net", "wide")))
    name = f"{program.trial.title} "
    programs = {
        name + str((("group", "23"), ("steps", 100), ("every", 10), ("net", "wide"))): [1.0, 0.1],
        name + str((("group", "71"), ("steps", 100), ("every", 10), ("net", "wide"))): [2.0, 0.5],
        name + "(('group', <odd>))": [9.0, 9.0],
        "another:trial ()": [9.0, 9.0],
    }
    new_machine.write_text(json.dumps({"calibration_seconds": 0.01, "programs": programs}), encoding="utf-8")
    monkeypatch.setattr(timings, "calibrate", lambda: 0.01)
    forget()
    costs = timings.reference_costs()
    assert timings.cost_alike(program, costs) == (2.0, pytest.approx(4 * 0.5)), "one field of size fewer; records cost nothing"
    assert timings.cost_alike(Program(ref_to(len), ref_to(len), ()), costs) is None


def test_chunks_of_long_runs_are_short_on_every_machine(new_machine, toys, monkeypatch):
    monkeypatch.setattr(planning, "LONGEST", 4.0)
    for slower in (1.0, 1000.0):
        ship(new_machine, monkeypatch, toys, slower)
        (job,) = make_plan([toys.CLAIMS[0]]).jobs
        mapped = dataclasses.replace(job.program, executor="map")
        assert timings.runs_within(4.0, mapped) == 8 and timings.runs_within(0.1, mapped) == 1
        grid = toys.CLAIMS[0].quick
        (job,) = planning.plan([Request(toys.CLAIMS[0].trial, grid, tuple(range(32)))], store=None, executor="map")
        assert {chunk.runs for chunk in job.chunks} == {8} and job.runs == 32 * len(grid.cells())


def test_sizes():
    sizes = {"23": 529.0, "S4": 1.0, ("5", "S3", "8"): 90.0, (64, 128): 192.0, (): 1.0, 7: 7.0, 0: 1.0, 0.5: 1.0, None: 1.0}
    assert {value: timings.value_size(value) for value in sizes} == sizes


def test_what_this_machine_has_met_goes_first(new_machine, toys, monkeypatch):
    ship(new_machine, monkeypatch, toys, slower=1000.0)
    jd.verify(toys.CLAIMS[0])
    first = make_plan([toys.CLAIMS[0]]).seconds()
    assert first < 100.0
    jd.verify(toys.CLAIMS[0])
    (met,) = timings.measured_costs().values()
    assert met.again is not None and make_plan([toys.CLAIMS[0]]).seconds() == pytest.approx(met.again + 32 * met.run_seconds)
    more = make_plan([toys.CLAIMS[0]], seeds=64).seconds()
    assert more > met.compile_seconds, "another shape is compiled anew"


def test_what_was_met_on_one_platform_says_nothing_of_another(new_machine, toys, monkeypatch):
    ship(new_machine, monkeypatch, toys)
    with elsewhere(Devices("gpu")):
        unknown = make_plan([toys.CLAIMS[0]])
        assert unknown.guessed() == 1 and "duration unknown: 1 program never ran on a gpu here" in announcement(unknown, 1, 1)
        cost = {"runs": 32, "compile_seconds": 9.0, "run_seconds": 3.2}
        timings.remember(unknown.jobs, {job.program: cost for job in unknown.jobs})
        known = make_plan([toys.CLAIMS[0]])
        assert known.guessed() == 0 and known.seconds() == pytest.approx(timings.TRACING * 9.0 + 3.2)
        assert announcement(known, 1, 1).endswith(" expected")
    assert timings.measured_costs() == {} and make_plan([toys.CLAIMS[0]]).seconds() == pytest.approx(7.0 + 32 * 0.5)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"calibration_seconds": 0, "programs": {}}', '{"programs": 3}', "null"])
def test_an_odd_reference_costs_the_estimate_only(new_machine, toys, content):
    new_machine.write_text(content, encoding="utf-8")
    forget()
    assert make_plan([toys.CLAIMS[0]]).seconds() == pytest.approx(timings.COMPILE + 32 * timings.RUN)


def test_the_shipped_costs_know_the_programs_of_every_theory(monkeypatch):
    """Estimates on a new machine are honest: at least nine programs of ten were measured."""
    monkeypatch.undo()
    forget()
    measured = timings.reference_costs()
    trials = {name.split(" ")[0] for name in measured}
    claims = all_claims().values()
    programs = {Program(ref_to(c.trial), ref_to(c.quick.setting), split(cell)[0]) for c in claims for cell in c.quick.cells()}
    known = [program for program in programs if timings.program_name(program) in measured or program.trial.title in trials]
    assert len(programs) > 80 and len(known) >= 0.9 * len(programs)
