"""Seeds are added while a check is undecided, and what they add is what asking for them at once gives."""

import dataclasses
import json
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn import stats
from jaxdyn.cli.main import main
from jaxdyn.engine.base.devices import Devices, elsewhere
from jaxdyn.engine.base.reference import load_file
from jaxdyn.engine.judging.decision import Decision
from jaxdyn.engine.judging.estimate import Look, look, spent
from jaxdyn.engine.programs import program
from jaxdyn.engine.verification.verify import conclude, make_plan, run_plan

FILE = Path(__file__).parents[1] / "growing.py"


@pytest.fixture(scope="module")
def claims():
    return {claim.id: claim for claim in load_file(FILE).CLAIMS}


@pytest.fixture(scope="module")
def verified(claims):
    return {v.claim.id: v for v in run_plan(make_plan(list(claims.values())), None)}


def seeds_of(result):
    return len(result.task.main.seeds)


@pytest.mark.slow
def test_seeds_are_doubled_until_the_check_is_decided(verified):
    found = {name: (v.verdict, seeds_of(v), v.task.terms.look) for name, v in verified.items()}
    assert found == {
        "grow.mean": ("upheld", 32, 4),
        "grow.wrong": ("refuted", 64, 5),
        "grow.open": ("measured", 4, 1),  # a reading is never undecided
        "grow.clear": ("upheld", 4, 1),
        "grow.control": ("upheld", 64, 5),  # its check passes at once, its control is undecided until then
    }
    for v in verified.values():
        assert v.task.main.seeds == range(seeds_of(v)) and v.data.sizes["seed"] == seeds_of(v)


def test_where_time_is_over_before_seeds_are_added_a_claim_is_left_for_the_next_call(claims):
    """It is not inconclusive: with the seeds that it may have it would be decided."""
    until, judged = time.monotonic() + 60, []

    def late(task, data, controls):
        decision = conclude(task.claim, data, controls, task.by, task.terms)
        judged.append((task.claim.id, decision.undecided))
        moment.setattr(time, "monotonic", lambda: until + 1)
        return decision

    with pytest.MonkeyPatch.context() as moment:
        found = run_plan(make_plan([claims["grow.mean"]]), None, conclude=late, until=until)
    assert judged == [("grow.mean", True)] and found == []


def test_controls_have_half_of_the_seeds_that_there_are_now(verified):
    found = {name: [ds.sizes["seed"] for ds in v.control_data.values()] for name, v in verified.items()}
    assert found == {"grow.mean": [16], "grow.wrong": [32], "grow.open": [], "grow.clear": [4], "grow.control": [32]}


def test_costs_of_all_looks_add_up(verified):
    (cost,) = verified["grow.control"].costs  # of the last look of all: one program serves all claims
    own = {"grow.mean": 32 + 16, "grow.wrong": 64 + 32, "grow.open": 0, "grow.clear": 4 + 4, "grow.control": 60 + 32}
    assert cost.runs == sum(own.values()), "main runs and controls, those of several claims once"
    assert cost.compile_seconds > 0 and cost.run_seconds > 0
    entry = verified["grow.mean"].to_json()
    assert (entry["seeds"], entry["look"], entry["runs"], entry["seed_range"]) == (32, 4, 32, "0:32")
    assert entry["command"] == "jaxdyn verify grow.mean --seeds 32" and entry["tested"] == "32 draws."


@pytest.mark.parametrize("name", ["grow.mean", "grow.wrong", "grow.control"])
def test_the_result_is_that_of_asking_for_as_many_at_once(claims, verified, name):
    """But for rounding: chunks of other sizes are other programs."""
    grown = verified[name]
    at_once = jd.verify(claims[name], seeds=seeds_of(grown))
    xr.testing.assert_allclose(grown.data, at_once.data, rtol=1e-14)
    assert (grown.verdict, grown.task.command, grown.task.terms) == (at_once.verdict, at_once.task.command, at_once.task.terms)
    for own, other in zip((grown, *grown.controls), (at_once, *at_once.controls), strict=True):
        for check, same in zip(own.checks, other.checks, strict=True):
            assert (check.passed, check.level) == (same.passed, same.level)
            assert check.interval == pytest.approx(same.interval, rel=1e-12)


def test_the_look_before_was_undecided(claims, verified):
    before = jd.verify(claims["grow.mean"], seeds=16)
    assert before.verdict == "inconclusive" and before.checks[0].passed is None and seeds_of(before) == 16
    assert before.checks[0].level == pytest.approx(1 - 0.003 / 2**3), "the third look"


@pytest.mark.parametrize("options", [{"seeds": 4}, {"seeds": range(4)}, {"seeds": 7}, {"by": "shift"}, {"by": "seed"}])
def test_seeds_that_were_asked_for_stay(claims, options):
    result = jd.verify(claims["grow.mean"], **options)
    assert (
        seeds_of(result) == len(list(options.get("seeds", range(4))))
        if not isinstance(options.get("seeds"), int)
        else options["seeds"]
    )
    assert result.verdict == "inconclusive" and "undecided: mean" in result.message


@pytest.mark.parametrize(("most", "seeds"), [(None, 4), (4, 4), (6, 6), (8, 8), (12, 12)])
def test_no_more_than_the_claim_allows(claims, most, seeds):
    result = jd.verify(dataclasses.replace(claims["grow.mean"], max_seeds=most))
    assert (result.verdict, seeds_of(result)) == ("inconclusive", seeds)


def test_fresh_seeds_grow_from_where_they_start(claims):
    (result,) = run_plan(make_plan([claims["grow.mean"]], fresh=1000), None)
    assert result.verdict == "upheld" and result.task.main.seeds == range(1000, 1000 + seeds_of(result))
    assert seeds_of(result) in (8, 16, 32, 64) and result.task.command == "jaxdyn verify grow.mean --fresh 1000"


def test_an_accelerator_compiles_once_however_much_seeds_grow(claims, verified, monkeypatch):
    compile_block, lengths = program.compile_block, []

    def counted(of, block, swept, seeds, shared):
        lengths.append(seeds.shape)
        return compile_block(of, block, swept, seeds, shared)

    monkeypatch.setattr(program, "compile_block", counted)
    with elsewhere(Devices("gpu")):
        (grown,) = run_plan(make_plan([claims["grow.mean"]]), None)
    assert lengths == [(4 + 4,)] and seeds_of(grown) == 32, "those of the claim and of its control at first"
    xr.testing.assert_allclose(grown.data, verified["grow.mean"].data, rtol=1e-14)


def test_a_task_grows_by_doubling(claims):
    (task,) = make_plan([claims["grow.mean"]]).tasks
    sizes = []
    while task is not None:
        sizes.append((len(task.main.seeds), len(task.controls["negative"].seeds), task.terms.look, task.narrowed))
        task = task.grown()
    assert sizes == [(4, 4, 1, False), (8, 6, 2, False), (16, 8, 3, False), (32, 16, 4, False), (64, 32, 5, False)]
    (asked_for,) = make_plan([claims["grow.mean"]], seeds=4).tasks
    assert asked_for.grown() is None


@pytest.mark.slow
def test_a_store_has_the_runs_of_all_looks(claims, tmp_path, chunks_run, same_bits):
    first = jd.verify(claims["grow.mean"], out=tmp_path)
    ran = len(chunks_run)
    assert ran > 0
    again = jd.verify(claims["grow.mean"], out=tmp_path)
    assert len(chunks_run) == ran, "nothing is run anew"
    assert same_bits(first.data, again.data)
    assert all(getattr(again, part.name) == getattr(first, part.name) for part in dataclasses.fields(Decision))
    at_once = jd.verify(claims["grow.mean"], out=tmp_path, seeds=32)
    assert len(chunks_run) == ran and same_bits(first.data, at_once.data)


def test_looks_take_the_runs_that_were_stored_at_once(claims, tmp_path, chunks_run):
    jd.verify(claims["grow.mean"], out=tmp_path, seeds=32)
    ran = len(chunks_run)
    assert jd.verify(claims["grow.mean"], out=tmp_path).verdict == "upheld" and len(chunks_run) == ran


def test_each_outcome_is_told_once(claims):
    told = []
    run_plan(
        make_plan([claims["grow.mean"], claims["grow.clear"]]), None, concluded=lambda v: told.append((v.claim.id, seeds_of(v)))
    )
    assert told == [("grow.clear", 4), ("grow.mean", 32)]


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "64"])
def test_max_seeds_is_a_number_of_seeds(claims, most):
    with pytest.raises(jd.UsageError, match="max_seeds=.* is not allowed: it is a whole number of at least 1"):
        dataclasses.replace(claims["grow.mean"], max_seeds=most)


# the command line


def verify(capsys, *words):
    code = main(["verify", *words, "--load", str(FILE), "--json", "--out", "out"])
    printed = capsys.readouterr()
    (claim,) = json.loads(printed.out)["claims"]
    return code, claim, printed.err


RESULT = ("verdict", "seeds", "look", "checks", "controls", "resolution", "message")


@pytest.mark.slow
def test_two_workers_and_a_second_call(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("jaxdyn.theories.__path__", [])
    code, first, _ = verify(capsys, "grow.mean", "--workers", "2")
    assert code == 0 and (first["verdict"], first["seeds"], first["look"]) == ("upheld", 32, 4)
    assert sum(cost["runs"] for cost in json.loads(Path("out/result.json").read_text(encoding="utf-8"))["costs"]) == 48
    code, again, _ = verify(capsys, "grow.mean", "--workers", "2")
    assert code == 0 and {k: again[k] for k in RESULT} == {k: first[k] for k in RESULT}
    assert again["run_seconds"] == 0.0, "nothing is run anew"
    code, at_once, _ = verify(capsys, "grow.mean", "--seeds", "32", "--workers", "1")
    assert code == 0 and {k: at_once[k] for k in RESULT} == {k: first[k] for k in RESULT}
    code, few, _ = verify(capsys, "grow.mean", "--seeds", "4", "--workers", "1")
    assert code == 1 and (few["verdict"], few["seeds"]) == ("inconclusive", 4)


# simulations: a true law at its bound

ALPHA, LAWS = 0.2, 150


def ever_refused(judge, draw, spending):
    """The share of true laws that are refused at any of four looks, from 4 to 32 seeds."""
    rng, count = np.random.default_rng(0), 0
    for _ in range(LAWS):
        numbers = xr.DataArray(draw(rng, 32), dims="seed")
        for n in (4, 8, 16, 32):
            asked = Look(lambda x: [judge(x)], spent(look(n, 4)) if spending else 1.0)
            if asked(numbers[:n])[0].passed is False:
                count += 1
                break
    return count / LAWS


def mean_is(numbers):
    return jd.mean_within("mean", numbers, over="seed", low=0.0, high=0.0, level=1 - ALPHA)


def share_is(numbers):
    return jd.share_within("share", numbers, over="seed", low=0.5, high=0.5, level=1 - ALPHA)


@pytest.mark.parametrize(
    ("judge", "draw"),
    [
        pytest.param(mean_is, lambda rng, n: rng.normal(size=n), id="mean"),
        pytest.param(share_is, lambda rng, n: rng.random(n) < 0.5, id="share", marks=pytest.mark.slow),
    ],
)
def test_a_true_law_is_refused_as_often_as_allowed_although_seeds_are_added(judge, draw):
    """Looks that share the error keep it; the same looks at the whole error each do not."""
    noise = 2.5 * (ALPHA * (1 - ALPHA) / LAWS) ** 0.5
    assert ever_refused(judge, draw, spending=True) <= ALPHA + noise
    assert ever_refused(judge, draw, spending=False) > ALPHA + noise


CELLS = 6


def missed(make, draw, clustered):
    """How often the interval misses the truth for cells that are copies of one another."""
    rng, count = np.random.default_rng(1), 0
    for _ in range(LAWS):
        numbers = xr.DataArray(np.tile(draw(rng, 10), (CELLS, 1)), dims=("lr", "seed"))
        count += make(numbers if clustered else numbers.transpose("seed", "lr")).passed is False
    return count / LAWS


@pytest.mark.parametrize(
    ("make", "draw"),
    [
        (lambda x: jd.mean_within("m", x, over=["lr", "seed"], low=0, high=0, level=1 - ALPHA), lambda rng, n: rng.normal(size=n)),
        (
            lambda x: jd.share_within("s", x, over=["lr", "seed"], low=0.5, high=0.5, level=1 - ALPHA),
            lambda rng, n: rng.random(n) < 0.5,
        ),
    ],
    ids=["mean", "share"],
)
def test_runs_of_one_seed_are_no_independent_runs(make, draw):
    """Six copies of each seed's number: the interval is that of the ten seeds, and misses as often as it says."""
    noise = 2.5 * (ALPHA * (1 - ALPHA) / LAWS) ** 0.5
    assert missed(make, draw, clustered=True) <= ALPHA + noise
    assert missed(make, draw, clustered=False) > 2 * ALPHA


def test_a_mean_over_settings_is_taken_first():
    numbers = xr.DataArray(np.random.default_rng(0).normal(size=(3, 5, 8)), dims=("lr", "rate", "seed"))
    whole = jd.mean_reading("m", numbers, over=["lr", "rate", "seed"])
    cells = jd.mean_within("m", numbers, over=["lr", "seed"], low=-9)
    alone = jd.mean_within("m", numbers[0, 0], over="seed", low=-9)
    share = jd.share_reading("s", numbers > 0, over=["lr", "rate", "seed"])
    by_seed = numbers.mean(["lr", "rate"])
    half = stats.bonferroni_t(1, 8, 0.997) * float(by_seed.std(ddof=1)) / 8**0.5
    assert whole.ends == pytest.approx((float(by_seed.mean()) - half, float(by_seed.mean()) + half))
    assert alone.interval == jd.mean_within("m", numbers[0, 0], over="seed", low=-9).interval, "one setting is no cluster"
    per_rate = jd.mean_within("m", numbers.mean("lr"), over="seed", low=-9)
    assert cells.interval == pytest.approx(per_rate.interval) and cells.worst == per_rate.worst
    hits = float((numbers > 0).mean()) * 8
    assert share.ends == pytest.approx(tuple(map(float, stats.wilson_ends(hits, 8, 0.997))))


def test_without_seeds_among_the_axes_settings_are_the_runs():
    numbers = xr.DataArray(np.arange(6.0), dims="lr")
    half = stats.bonferroni_t(1, 6, 0.997) * float(numbers.std(ddof=1)) / 6**0.5
    assert jd.mean_reading("m", numbers, over="lr").ends == pytest.approx((2.5 - half, 2.5 + half))


def test_axes_after_the_seed_are_a_runs_own_and_count_as_runs():
    """Graphs of one seed, say, that are drawn anew; axes of settings stand before the seed in a Dataset of runs."""
    numbers = xr.DataArray(np.random.default_rng(0).normal(size=(3, 5, 4)), dims=("lr", "seed", "graph"))
    one = numbers.mean("lr").values.ravel()
    half = stats.bonferroni_t(1, 20, 0.997) * one.std(ddof=1) / 20**0.5
    found = jd.mean_reading("m", numbers, over=["lr", "seed", "graph"])
    assert found.ends == pytest.approx((one.mean() - half, one.mean() + half))
