"""``jd.verify`` and the planning behind it."""

import concurrent.futures as cf
import dataclasses
import json

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn import theories
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.catalogue import library, registry
from jaxdyn.engine.judging.decision import Decision
from jaxdyn.engine.runs import costs as timings
from jaxdyn.engine.storage.cache import write_cached
from jaxdyn.engine.verification import verify as verify_module
from jaxdyn.engine.verification.payload import payload
from tests.engine.conftest import TOYS


@pytest.fixture(autouse=True)
def only_toys(monkeypatch):
    """No theory but the toys: these tests are about the engine."""
    monkeypatch.setattr(theories, "__path__", [])


@pytest.fixture(scope="module")
def verified(toys):
    """All toy claims, planned and run together."""
    return {v.claim.id: v for v in verify_module.run_plan(verify_module.make_plan(toys.CLAIMS), None)}


@pytest.mark.slow
def test_verdicts(verified):
    assert {i: v.verdict for i, v in verified.items()} == {
        "toy.decay": "upheld",
        "toy.decay_as_printed": "refuted",
        "toy.wrong": "refuted",
        "toy.open": "measured",
        "toy.toothless": "toothless",
        "toy.halves": "upheld",
        "toy.seeds": "upheld",
        "toy.raises": "error",
        "solver.decay": "upheld",
    }
    assert {i for i, v in verified.items() if not v.as_expected} == {"toy.wrong", "toy.toothless", "toy.raises"}


def test_claims_share_runs_and_programs(toys):
    plan = verify_module.make_plan(toys.CLAIMS)
    assert len(plan.jobs) == 2, "eight claims on one program, and the solver's"
    assert plan.runs == 4 * 4 + 4 * 4 + 3 * 2, "the main runs once, the control's, the solver's"


@pytest.mark.parametrize(("count", "few"), [(4, 4), (6, 6), (11, 6), (13, 7), (20, 10)])
def test_controls_are_run_with_half_of_the_seeds(toys, count, few):
    decay = next(c for c in toys.CLAIMS if c.id == "toy.decay")
    (task,) = verify_module.make_plan([decay], seeds=range(5, 5 + count)).tasks
    assert task.main.seeds == range(5, 5 + count)
    assert task.controls["sign descent"].seeds == range(5, 5 + few)
    sharp = dataclasses.replace(decay, controls={"sign descent": jd.Control({"optimizer": "sign"}, every_seed=True)})
    for claim, by in ((sharp, ()), (decay, "seed")):
        (task,) = verify_module.make_plan([claim], seeds=count, by=by).tasks
        assert task.controls["sign descent"].seeds == task.main.seeds


def test_fields_of_the_result(verified):
    result = verified["toy.decay"]
    assert [c.name for c in result.checks] == ["relative error"] and result.checks[0].passed
    assert [(c.name, c.rejected) for c in result.controls] == [("10% off", True), ("sign descent", True)]
    assert 1e-9 <= result.resolution["scale"]["x"] < 1.1e-9
    assert 0 < result.resolution["mix"]["sign descent"] < 1e-6
    assert result.data.measured_x.dims == ("rate", "lr", "seed", "entry") and result.data.sizes["seed"] == 4
    assert result.control_data.keys() == {"sign descent"}
    assert result.programs == 1 and result.compile_seconds > 0 and result.run_seconds > 0
    text = repr(result)
    assert (
        text.startswith("toy.decay: upheld (expected upheld)")
        and "ok   relative error" in text
        and "control 10% off: rejected" in text
    )


def test_what_differs_is_shown(verified):
    assert "FAIL relative error" in repr(verified["toy.wrong"])
    assert "control 10% off: NOT rejected" in repr(verified["toy.toothless"])
    assert "RuntimeError: the judge stumbled" in repr(verified["toy.raises"])


def test_payload_has_the_documented_shape(verified):
    whole = json.loads(json.dumps(payload(list(verified.values()), 1.0), allow_nan=False))
    assert (
        whole.keys() == {"claims", "not_run", "counts", "programs", "runs", "costs", "by_chance", "seconds", "environment"}
        and whole["programs"] == 2
    )
    for claim in whole["claims"]:
        assert claim.keys() >= {
            "id",
            "expected",
            "verdict",
            "resolution",
            "programs",
            "runs",
            "diverged",
            "compile_seconds",
            "run_seconds",
            "checks",
            "controls",
        }
        assert claim["resolution"].keys() == {"scale", "mix"}
        for check in claim["checks"]:
            assert check.keys() >= {"name", "value", "bound", "passed"} and type(check["passed"]) is bool
        for control in claim["controls"]:
            assert control.keys() >= {"name", "rejected", "checks"} and type(control["rejected"]) is bool
    assert {c["id"]: c["runs"] for c in whole["claims"]}["toy.decay"] == 16


def test_numbers_that_json_does_not_know_are_null(verified):
    result = verified["toy.decay"]
    check = dataclasses.replace(result.checks[0], value=float("nan"), bound=(float("-inf"), 1.0))
    odd = dataclasses.replace(result, checks=[check])
    entry = json.loads(json.dumps(payload([odd], 1.0), allow_nan=False))["claims"][0]
    assert entry["checks"][0]["value"] is None and entry["checks"][0]["bound"] == [None, 1.0]


# jd.verify ------------------------------------------------------------------------------------------------------------


def test_by_id_from_a_file():
    assert jd.verify("toy.decay", load=[TOYS], seeds=4).verdict == "upheld"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("toy.nothing", "no claim matches"),
        ("toy.*", "matches 8 claims; jd.verify takes one"),
        ("toy.deca", "did you mean toy.decay"),
    ],
)
def test_unknown_and_ambiguous_ids(name, message):
    with pytest.raises(jd.UsageError, match=message):
        jd.verify(name, load=[TOYS])


def test_overrides_and_seeds(toys):
    result = jd.verify(toys.CLAIMS[0], seeds=range(4, 8), rate=[0.5, 2.0], lr="0.02")
    assert result.verdict == "upheld"
    assert result.data.rate.values.tolist() == [0.5, 2.0] and result.data.lr.values.tolist() == [0.02]
    assert result.data.seed.values.tolist() == [4, 5, 6, 7]


def test_static_fields_can_be_swept(toys):
    result = jd.verify(toys.CLAIMS[0], size=[2, 3])
    assert result.verdict == "upheld" and result.programs == 2 and result.data.sizes["size"] == 2


def test_paper_scale_is_a_grid_of_its_own(toys):
    plan = verify_module.make_plan([toys.CLAIMS[0]], scale="paper")
    assert plan.tasks[0].main.grid.axes["rate"] == (0.5, 1.0, 2.0) and len(plan.tasks[0].main.seeds) == 8
    assert plan.jobs[0].program.compiler == "full"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rte": 1.0}, "Toy has no field 'rte'"),
        ({"rate": "fast"}, "rate='fast' is not allowed"),
        ({"rate": []}, "at least one value"),
        ({"rate": -1.0}, "rate is positive"),
        ({"scale": "huge"}, "scale='huge' is not allowed: it is quick or paper"),
        ({"seeds": 0}, "seeds=0 is not allowed"),
        ({"by": ["lr", "lr"]}, "lr is given twice"),
        ({"by": 3}, "by=3 is not allowed: it is the name of a field, or a list of names"),
        ({"by": [""]}, "by=.* is not allowed"),
        ({"load": 3}, "load=3 is not allowed: it is a list of the paths"),
        ({"seeds": -3}, "seeds=-3"),
        ({"seeds": [-1]}, "whole numbers from 0"),
        ({"seeds": [2**32]}, "whole numbers from 0"),
        ({"seeds": [1, 1]}, "different whole numbers"),
        ({"seeds": 2**60}, "seeds="),
        ({"seeds": "many"}, "seeds="),
        ({"by": ["size"]}, "does not sweep size: --by takes what is swept, rate, lr, seed; add --set size=v1,v2,…"),
        ({"by": ["nothing"]}, "does not sweep nothing: --by takes what is swept, rate, lr, seed; Toy has no field of that name"),
    ],
)
def test_wrong_use_is_one_sentence(toys, options, message):
    with pytest.raises(jd.UsageError, match=message) as error:
        jd.verify(toys.CLAIMS[0], **options)
    assert "\n" not in str(error.value)


def test_a_control_with_a_wrong_field_is_named(toys):
    claim = dataclasses.replace(toys.CLAIMS[0], controls={"odd": {"optimiser": "sign"}})
    with pytest.raises(jd.UsageError, match="toy.decay, control 'odd': Toy has no field 'optimiser'"):
        jd.verify(claim)


def test_by_one_and_two_fields(toys):
    result = jd.verify(toys.CLAIMS[0], by=["lr", "seed"], seeds=2, lr=[0.01, 1e30])
    assert result.verdict == "inconclusive", "half of the runs diverge"
    assert [c["verdict"] for c in result.by] == ["upheld", "upheld", "inconclusive", "inconclusive"]
    assert result.by[0]["at"] == {"lr": 0.01, "seed": 0}
    assert jd.verify(toys.CLAIMS[0], by="rate", seeds=2).by is not None, "one field may be given as a word"


def test_what_a_judge_needs_can_be_swept_away(toys):
    halves = next(c for c in toys.CLAIMS if c.id == "toy.halves")
    result = jd.verify(halves, lr=0.01)
    assert result.verdict == "inconclusive" and "more values on an axis" in result.message
    seeds = next(c for c in toys.CLAIMS if c.id == "toy.seeds")
    assert jd.verify(seeds, seeds=1).verdict == "inconclusive", "fewer seeds than the claim's own cut the data, too"


def test_a_diverging_cell_is_counted(toys):
    result = jd.verify(toys.CLAIMS[0], lr=[0.01, 1e30], seeds=2)
    assert result.diverged == 4 and "4 of 8 runs are not ok (diverged)" in result.message


def test_one_broken_trial_does_not_touch_other_claims():
    broken = load_file(TOYS.with_name("broken_toys.py"))
    outcomes = {v.claim.id: v for v in verify_module.run_plan(verify_module.make_plan(broken.CLAIMS), None)}
    assert outcomes["toy.good"].verdict == "upheld"
    for name, message in {
        "broken": "this trial is broken",
        "no_observables": "must return jd.observables",
        "clashing": "rate",
    }.items():
        outcome = outcomes[f"toy.{name}"]
        assert outcome.verdict == "error" and message in outcome.message
    json.dumps(payload(list(outcomes.values()), 1.0), allow_nan=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "jaxdyn verify toy.decay"),
        ({"seeds": 9}, "--seeds 9"),
        ({"seeds": range(3, 6)}, "--seeds 3:6"),
        ({"scale": "paper"}, "--scale paper"),
        ({"overrides": {"rate": [0.5, 1.0], "optimizer": "gd"}}, "--set rate=0.5,1.0 --set optimizer=gd"),
        ({"overrides": {"weights": (3, 4)}}, "--set weights=3:4"),
        ({"by": ["rate"]}, "--by rate"),
    ],
)
def test_the_command_repeats_the_task(toys, options, words):
    command = verify_module.make_plan([toys.CLAIMS[0]], **options).tasks[0].command
    assert command.startswith("jaxdyn verify toy.decay") and words in command
    assert ("--seeds" in command) == ("seeds" in options)


def test_seeds_that_the_command_line_cannot_say_are_not_said_wrongly(toys):
    command = verify_module.make_plan([toys.CLAIMS[0]], seeds=[0, 5, 7]).tasks[0].command
    assert command == "# only from Python: seeds=[0, 5, 7] cannot be given on the command line"


def test_expected_seconds_come_from_earlier_calls(toys, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    timings.measured_costs.cache_clear()
    claim = toys.CLAIMS[0]
    before = verify_module.make_plan([claim]).seconds()
    jd.verify(claim)
    after = verify_module.make_plan([claim]).seconds()
    assert before == pytest.approx(timings.COMPILE + 32 * timings.RUN) and 0 < after < before
    (tmp_path / timings.CACHED).write_text("[broken", encoding="utf-8")
    timings.measured_costs.cache_clear()
    assert verify_module.make_plan([claim]).seconds() == before
    timings.measured_costs.cache_clear()


@pytest.mark.parametrize("content", [[], "word", {"a": 1}, None])
def test_an_odd_timings_file_costs_the_estimate_only(toys, tmp_path, monkeypatch, content):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    write_cached(timings.CACHED, content)
    timings.measured_costs.cache_clear()
    assert jd.verify(toys.CLAIMS[0]).verdict == "upheld"
    timings.measured_costs.cache_clear()


def test_a_cache_that_cannot_be_written_costs_nothing_else(toys, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "file" / "cache"))
    timings.measured_costs.cache_clear()
    assert jd.verify(toys.CLAIMS[0]).verdict == "upheld"
    assert [e["id"] for e in registry.catalogue([TOYS])][0] == "toy.decay"
    timings.measured_costs.cache_clear()


# Registry -------------------------------------------------------------------------------------------------------------

IDS = ["joma.erf", "joma.exp", "cogo.loss", "cogo.loss_as_printed"]


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ([], IDS),
        (["joma"], ["joma.erf", "joma.exp"]),
        (["joma.e*", "joma.erf"], ["joma.erf", "joma.exp"]),
        (["*_as_printed", "joma.exp"], ["cogo.loss_as_printed", "joma.exp"]),
        (["cogo.loss"], ["cogo.loss"]),
        (["joma.e[rx]?"], ["joma.erf", "joma.exp"]),
    ],
)
def test_patterns(patterns, chosen):
    assert registry.select_ids(IDS, patterns) == chosen


def test_a_pattern_that_matches_nothing_gets_a_hint():
    with pytest.raises(jd.UsageError, match="no claim matches 'joma.erg'; did you mean joma.erf"):
        registry.select_ids(IDS, ["joma", "joma.erg"])
    with pytest.raises(jd.UsageError, match="theories are: cogo, joma"):
        registry.select_ids(IDS, ["zzz"])
    with pytest.raises(jd.UsageError, match="those of your own file need --load FILE"):
        registry.select_ids(IDS, ["zzz"])
    with pytest.raises(jd.UsageError, match="; your own are mine.a, mine.b, mine.c …\\)"):
        registry.select_ids(
            [*IDS, "mine.a", "mine.b", "mine.c", "mine.d"], ["joma.erg"], own=["mine.a", "mine.b", "mine.c", "mine.d"]
        )


def test_files_without_a_pattern_are_the_files_claims():
    assert [claim.id for claim in registry.select([], [TOYS])] == [claim.id for claim in load_file(TOYS).CLAIMS]
    with pytest.raises(jd.UsageError, match="two claims are called toy.decay"):
        registry.select([], [TOYS, TOYS])


def test_files_without_claims_and_with_twins_are_refused(tmp_path):
    for text in ("", "CLAIMS = 3\n", "CLAIMS = ['toy.decay']\n"):
        (tmp_path / "none.py").write_text(text, encoding="utf-8")
        with pytest.raises(jd.UsageError, match="none.py has no CLAIMS list"):
            registry.all_claims([tmp_path / "none.py"])
    (tmp_path / "none.py").write_text("CLAIMS = []\n", encoding="utf-8")
    with pytest.raises(jd.UsageError, match="none.py has no claims: its CLAIMS list is empty"):
        registry.all_claims([tmp_path / "none.py"])
    (tmp_path / "copy.py").write_text(TOYS.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(jd.UsageError, match="two claims are called toy.decay; the second is in .*copy.py"):
        registry.all_claims([TOYS, tmp_path / "copy.py"])


def test_the_catalogue_follows_a_users_file(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "mine.py"
    text = TOYS.read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    assert [e["id"] for e in registry.catalogue([file])][:2] == ["toy.decay", "toy.decay_as_printed"]
    file.write_text(text.replace('"toy.decay"', '"toy.renamed"'), encoding="utf-8")
    assert registry.catalogue([file])[0]["id"] == "toy.renamed"
    assert not list((tmp_path / "cache").glob("catalogue-others*"))


def test_the_catalogue_follows_installed_plugins(tmp_path, monkeypatch, toys):
    """A package that offers claims through an entry point is listed as soon as it is installed."""
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path))
    assert registry.catalogue() == []

    class Point:
        name, value, group, dist = "toys", "toys_of_a_plugin", "jaxdyn.claims", None

        def load(self):
            return toys

    monkeypatch.setattr(library, "entry_points", lambda **group: [Point()])
    assert "toy.decay" in {e["id"] for e in registry.catalogue()}


def test_the_package_offers_what_it_names():
    import jaxdyn

    assert all(getattr(jaxdyn, name) is not None for name in jaxdyn.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jaxdyn.nothing


def test_data_of_failed_runs_reach_the_result(toys):
    """Kept and told by status, not dropped."""
    result = jd.verify(toys.CLAIMS[0], lr=[0.01, 1e30], seeds=2)
    assert not np.isfinite(result.data.measured_x.sel(lr=1e30)).any() and (result.data.status.sel(lr=1e30) != 0).all()


@pytest.mark.parametrize("cluster", ["dask", 5, dict])
def test_a_cluster_is_an_executor(toys, cluster):
    for call in (
        lambda: jd.verify(toys.CLAIMS[0], cluster=cluster),
        lambda: jd.map(toys.CLAIMS[0], over={"lr": [0.1]}, cluster=cluster),
    ):
        with pytest.raises(jd.UsageError, match="cluster=.* is not allowed: cluster is None or a concurrent.futures.Executor"):
            call()


@pytest.mark.parametrize("out", [5, b"x", "", "a\0b"])
def test_a_folder_is_a_path(toys, out):
    for call in (lambda: jd.verify(toys.CLAIMS[0], out=out), lambda: jd.map(toys.CLAIMS[0], over={"lr": [0.1]}, out=out)):
        with pytest.raises(jd.UsageError, match="out=.* is not allowed: out is the path of a folder"):
            call()


@pytest.mark.parametrize("wrong", [None, 3, ["toy.decay"]])
def test_what_is_no_claim_is_refused(wrong):
    for call in (jd.verify, lambda claim: jd.map(claim, over={"lr": (0.1, 1.0)})):
        with pytest.raises(jd.UsageError, match="claim=.* is not allowed: it is an id, or a jd.Claim"):
            call(wrong)
    if not isinstance(wrong, list):
        with pytest.raises(jd.UsageError, match="claim=.* is not allowed"):
            jd.verify_many(wrong)


def test_what_another_process_cannot_decide_is_decided_here(toys):
    """A worker with another version of a claim's file has no decision."""
    (task,) = (plan_ := verify_module.make_plan([toys.CLAIMS[0]], seeds=2)).tasks
    nothing, decided = cf.Future(), cf.Future()
    nothing.set_result(None)
    decided.set_result(Decision("measured"))
    here = Decision("refuted")
    for future, verdict in ((nothing, "refuted"), (decided, "measured")):
        (result,) = verify_module.run_plan(plan_, None, conclude=lambda *_, f=future: verify_module.Elsewhere(f, lambda: here))
        assert result.verdict == verdict and result.claim is task.claim
