"""What a verdict rests on: teeth, gates, undecided intervals, assumptions, recorded findings, on laws made by hand."""

import dataclasses
import math
import re

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.engine.claims.contract import COUNTED, counted_as, provenance
from jaxdyn.engine.judging.decision import Terms, teeth
from jaxdyn.engine.judging.verdict import by_cells, decide
from jaxdyn.status import DIVERGED, OK
from tests.engine.handmade import data, doubled, judge, reading


def still(ds):
    """The mechanism switched off: nothing moves."""
    return ds.assign(predicted_z=0 * ds.predicted_z + 1.0)


def two_checks(ds):
    """One check that the law passes alone, and one that anything passes."""
    return [*judge(ds), jd.at_most("a bound without teeth", abs(ds.measured_z).max(), 1e9)]


# teeth


def test_a_check_that_rejects_nothing_makes_the_claim_toothless(claim):
    decision = decide(claim(judge=two_checks, rivals={"nothing moves": still}), data(), {})
    assert decision.verdict == "toothless"
    assert decision.message == "rejects no control and no rival: a bound without teeth"
    assert teeth(decision.checks, [*decision.controls, *decision.rivals]) == {
        "relative error": ["doubled", "nothing moves"],
        "a bound without teeth": [],
    }


def test_a_rival_that_nothing_rejects_makes_the_claim_toothless(claim):
    decision = decide(claim(rivals={"nothing moves": still, "the same again": lambda ds: ds}), data(), {})
    assert decision.verdict == "toothless" and decision.message == "not rejected by any check: the same again"


def test_every_row_and_every_column_with_teeth_is_upheld(claim):
    def sign(ds):
        return [*judge(ds), jd.at_least("sign of the prediction", ds.predicted_z, 0.0)]

    rivals = {"nothing moves": still, "the other way": lambda ds: ds.assign(predicted_z=-ds.predicted_z)}
    decision = decide(claim(judge=sign, rivals=rivals), data(), {})
    assert decision.verdict == "upheld"
    assert teeth(decision.checks, decision.rivals)["sign of the prediction"] == ["the other way"]


def test_a_rival_for_which_the_judge_cannot_decide_is_not_rejected(claim):
    def hesitant(ds):
        if float(ds.predicted_z.max()) == 1.0:
            raise jd.Inconclusive("too few points")
        return judge(ds)

    decision = decide(claim(judge=hesitant, rivals={"nothing moves": still}), data(), {})
    assert decision.verdict == "toothless" and decision.rivals[0].reason == "too few points"


def test_a_measured_claim_is_told_apart_from_its_opponents(claim):
    alone = claim(expected="measured", controls={})
    assert decide(alone, data(), {}).verdict == "measured", "it may stand alone"
    decision = decide(claim(expected="measured", rivals={"nothing moves": still}), data(), {})
    assert decision.verdict == "measured" and decision.rivals[0].rejected and decision.rivals[0].apart == ["ratio"]
    assert [r.value for r in decision.rivals[0].readings] == [2.0]
    alike = {"nothing moves": still, "the same again": lambda ds: ds}
    decision = decide(claim(expected="measured", rivals=alike, controls={"another same": lambda ds: ds.copy()}), data(), {})
    assert decision.verdict == "toothless"
    assert decision.message == "not told apart by any reading: another same, the same again"
    assert decision.rivals[1].apart == [] and decision.rivals[1].readings == decision.readings


def test_what_a_rival_says_of_readings_is_told_apart_as_well(claim):
    says = {"as predicted": {"ratio": 1.0}, "twice": {"ratio": lambda ds: 2 * float(ds.predicted_z.mean() / 2)}}
    decision = decide(claim(expected="measured", controls={}, rivals=says), data(0.5), {})
    assert decision.verdict == "measured" and [o.apart for o in decision.rivals] == [["ratio"], ["ratio"]]
    decision = decide(claim(expected="measured", controls={}, rivals={"as it is": {"ratio": 1.5}}), data(0.5), {})
    assert decision.verdict == "toothless"
    decision = decide(claim(expected="measured", controls={}, rivals={"of another": {"rate": 1.5}}), data(0.5), {})
    assert decision.verdict == "error" and "rival 'of another' speaks of 'rate'; the judge has 'ratio'" in decision.message


def test_a_reading_of_an_opponent_within_the_record_tells_nothing(claim):
    """The record's interval is wider than the run's own: what lies inside of it agrees with the record."""
    slightly = lambda ds: ds.assign(predicted_z=ds.predicted_z / 1.1)  # noqa: E731
    made = {"expected": "measured", "controls": {"slightly off": slightly}}
    assert decide(claim(**made), data(), {}).verdict == "measured"
    assert decide(claim(**made, recorded={"ratio": (0.8, 1.0, 1.2)}), data(), {}).verdict == "toothless"
    assert decide(claim(**made, recorded={"ratio": (0.95, 1.0, 1.05)}), data(), {}).verdict == "measured"


def test_a_gate_of_a_measured_claim_that_is_not_met(claim):
    gated = lambda ds: [jd.gate("accuracy", 0.5, at_least=0.9), *reading(ds)]  # noqa: E731
    decision = decide(claim(expected="measured", judge=gated), data(), {})
    assert decision.verdict == "inconclusive" and "gate not met: accuracy" in decision.message
    assert [r.name for r in decision.readings] == ["ratio"] and [g.name for g in decision.gates] == ["accuracy"]


# gates


@pytest.mark.parametrize(("accuracy", "verdict"), [(0.99, "upheld"), (0.5, "inconclusive"), (np.nan, "inconclusive")])
def test_a_failed_gate_is_inconclusive_never_refuted(claim, accuracy, verdict):
    for error in (0.0, 0.5):

        def gated(ds):
            return [jd.gate("training accuracy", xr.DataArray(accuracy), at_least=0.95), *judge(ds)]

        decision = decide(claim(judge=gated), data(error), {})
        assert decision.verdict == (verdict if verdict == "inconclusive" or error == 0 else "refuted")
        assert [g.name for g in decision.gates] == ["training accuracy"] and [c.name for c in decision.checks] == ["relative error"]
        assert verdict == "upheld" or "gate not met: training accuracy" in decision.message


def test_a_gate_is_no_tooth(claim):
    """A control that only a gate would tell apart is not rejected."""

    def gated(ds):
        return [jd.gate("trained", ds.predicted_z, at_most=3.0), jd.at_most("anything", ds.measured_z, 1e9)]

    decision = decide(claim(judge=gated, controls={"doubled": doubled}), data(), {})
    assert decision.verdict == "toothless" and not decision.controls[0].rejected


def test_a_gate_of_one_run_that_is_not_met(claim):
    ds = data().assign(accuracy=(("lr", "seed"), [[1.0, 1.0, 0.3, 1.0], [1.0] * 4]))
    decision = decide(claim(judge=lambda d: [jd.gate("accuracy", d.accuracy, at_least=0.95), *judge(d)]), ds, {})
    assert decision.verdict == "inconclusive" and decision.gates[0].worst == {"lr": 0.1, "seed": 2}


def test_gates_alone_decide_nothing(claim):
    decision = decide(claim(judge=lambda ds: [jd.gate("trained", 1.0, at_least=0.5)]), data(), {})
    assert decision.verdict == "error" and "gates only" in decision.message
    with pytest.raises(jd.UsageError, match="give a lower bound, an upper bound, or both"):
        jd.gate("trained", 1.0)


# intervals


def means(values, **bounds):
    return jd.mean_within("mean", xr.DataArray(values, dims="seed", coords={"seed": range(len(values))}), over="seed", **bounds)


def test_a_mean_is_judged_with_its_interval():
    values = np.array([0.9, 1.0, 1.1, 1.0])
    half = 0.08164966 / 2 * 3.18245  # s / sqrt(n) times the quantile of t_3 from a printed table
    found = means(values, low=0.5, high=1.5, level=0.95)
    assert found.passed is True and found.interval == pytest.approx((1 - half, 1 + half), rel=1e-5)
    assert means(values, low=1.9).passed is False and means(values, high=0.2).passed is False
    astride = means(values, low=0.98)
    assert astride.passed is None and astride.needed > 4 and "runs would decide" in str(astride)


def test_so_many_runs_as_said_would_decide():
    rng = np.random.default_rng(0)
    few = means(rng.normal(1.0, 0.3, 12), low=0.9)
    assert few.passed is None
    many = means(rng.normal(1.0, 0.3, 4 * few.needed), low=0.9)
    assert many.passed is True


def test_one_mean_outside_for_certain_is_enough():
    values = xr.DataArray([[1.0, 1.1, 0.9, 1.0], [5.0, 5.1, 4.9, 5.0], [1.5, 2.5, 0.5, 1.6]], dims=("kind", "seed"))
    found = jd.mean_within("means", values.assign_coords(kind=["a", "b", "c"]), over="seed", low=0.0, high=2.0)
    assert found.passed is False and found.worst == {"kind": "b"} and found.value == 5.0


def test_runs_that_are_not_ok_do_not_count():
    clean, dirty = means([1.0, 1.2, 0.8, 1.1], low=0), means([1.0, np.nan, 1.2, 0.8, np.nan, 1.1], low=0)
    assert dataclasses.replace(dirty, worst={}) == dataclasses.replace(clean, worst={})
    with pytest.raises(jd.Inconclusive, match=r"at least two runs with a number, here 1 of 2; .*\(as 0/0\)"):
        means([1.0, np.nan], low=0)
    with pytest.raises(jd.Inconclusive, match="at least two runs$"):
        means([1.0], low=0)


def test_a_share_is_judged_with_its_interval():
    def share(hits, runs, **bounds):
        return jd.share_within("share", xr.DataArray(np.arange(runs) < hits, dims="seed"), over="seed", **bounds)

    assert share(8, 8, low=0.99).passed is None, "eight of eight say nothing of 99%"
    assert share(64, 64, low=0.8).passed is True and share(3, 64, low=0.5).passed is False
    low, high = share(30, 40, low=0.5, level=0.95).interval
    assert (low, high) == pytest.approx((0.5981, 0.8581), abs=1e-4)  # Wilson, by hand: (p + z²/2n ± z√(pq/n + z²/4n²)) / (1 + z²/n)


def test_a_root_mean_square_is_judged_with_the_interval_of_its_square():
    values = xr.DataArray([0.9, 1.0, 1.1, 1.0], dims="seed")
    half = 0.08164966 / 2 * 3.18245  # as above
    found = jd.rms_within("rms", values, over="seed", high=1.1, level=0.95)
    assert found.value == pytest.approx(1) and found.interval == pytest.approx(((1 - half) ** 0.5, (1 + half) ** 0.5), rel=1e-5)
    assert found.passed is True and found.bound == (-np.inf, 1.1)
    assert jd.rms_within("rms", values, over="seed", high=1.05, level=0.95).passed is None
    assert jd.rms_within("rms", values, over="seed", high=0.9, level=0.95).passed is False
    noise = jd.rms_within("rms", values - 1, over="seed", high=0.5, level=0.95)
    assert noise.passed is True and noise.interval == pytest.approx((-(half**0.5), half**0.5), rel=1e-5), "signed roots"


def test_an_undecided_check_makes_the_claim_inconclusive(claim):
    def mean(ds):
        return [jd.mean_within("mean", ds.measured_z.isel(entry=0), over=["lr", "seed"], low=1.95)]

    noisy = data(np.linspace(-0.1, 0.1, 24).reshape(2, 4, 3))
    decision = decide(claim(judge=mean), noisy, {})
    assert decision.verdict == "inconclusive" and "undecided: mean" in decision.message and "would decide" in decision.message


def test_nothing_is_refuted_for_lack_of_power(claim):
    """A refuted sibling whose interval contains the mark is inconclusive as well."""

    def mean(ds):
        ratio = (ds.measured_z / ds.predicted_z).isel(entry=0)
        return [jd.mean_within("ratio", ratio, over=["lr", "seed"], low=0.99, high=1.01)]

    forms = {"derived": 1.0, "printed": 1.001}
    ds = data(np.linspace(-0.05, 0.05, 24).reshape(2, 4, 3), forms=forms)
    refuted = claim(judge=mean, expected="refuted", form="printed", counterpart="derived", controls={})
    assert decide(refuted, ds, {}).verdict == "inconclusive"


# assumptions


def assumed(values):
    return data(error=np.where(np.asarray(values) > 1, 0.5, 0.0)[..., None]).assign(assumed_overlap=(("lr", "seed"), values))


def test_runs_outside_the_assumptions_are_kept_and_not_judged(claim):
    overlap = [[0.1, 0.2, 3.0, 0.4], [0.1, np.nan, 0.3, 0.2]]
    decision = decide(claim(assumes=(jd.below("overlap", 1.0),)), assumed(overlap), {})
    assert decision.verdict == "upheld" and decision.outside == 2 and decision.diverged == 0
    assert decide(claim(), assumed(overlap), {}).verdict == "refuted"


def test_no_run_inside_is_inconclusive(claim):
    decision = decide(claim(assumes=(jd.above("overlap", 10.0),)), assumed(np.ones((2, 4))), {})
    assert decision.verdict == "inconclusive" and "no run lies inside the assumptions (overlap > 10)" in decision.message


def test_cells_outside_are_so_in_a_map(claim):
    cells = by_cells(claim(assumes=(jd.below("overlap", 1.0),)), assumed([[0.5] * 4, [2.0] * 4]), ["lr"])
    assert [c["verdict"] for c in cells] == ["upheld", "inconclusive"]


def test_an_assumption_that_the_trial_does_not_give_is_named(claim):
    decision = decide(claim(assumes=(jd.below("drift", 1.0),)), assumed(np.ones((2, 4))), {})
    assert decision.verdict == "error" and "no assumed 'drift'; it gives overlap" in decision.message


def test_controls_are_judged_wherever_they_are(claim):
    """The breach of an assumption is a control's point."""
    control = doubled(data()).assign(assumed_overlap=(("lr", "seed"), np.full((2, 4), 9.0)))
    main = data().assign(assumed_overlap=(("lr", "seed"), np.zeros((2, 4))))
    made = claim(assumes=(jd.below("overlap", 1.0),), controls={"overlapping": {"rate": 0.2}})
    decision = decide(made, main, {"overlapping": control})
    assert decision.verdict == "upheld" and decision.controls[0].rejected


def test_a_run_that_is_not_ok_is_not_outside(claim):
    status = np.array([[DIVERGED, OK, OK, OK], [OK] * 4])
    ds = data(status=status).assign(assumed_overlap=(("lr", "seed"), np.where(status == OK, 0.1, np.nan)))
    decision = decide(claim(assumes=(jd.below("overlap", 1.0),), min_ok=0.5), ds, {})
    assert (decision.diverged, decision.outside) == (1, 0)


def test_observables_take_assumed_scalars_only():
    found = jd.observables(measured={"z": 1.0}, assumed={"overlap": 0.3})
    assert float(found.assumed["overlap"].value) == 0.3
    with pytest.raises(jd.UsageError, match="one number per run"):
        jd.observables(measured={"z": 1.0}, assumed={"overlap": jd.named(np.ones(2), "pair").value})


# recorded findings


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.0, "measured"), (0.005, "measured"), (0.009, "inconclusive"), (0.5, "inconclusive")]
)
def test_a_run_that_disagrees_with_what_was_found_is_inconclusive(claim, value, verdict):
    made = claim(expected="measured", recorded={"ratio": (0.995, 1.0, 1.005)})
    decision = decide(made, data(value), {})
    assert decision.verdict == verdict
    said = f"{1 + value:.4g}"
    words = (
        f"not what was recorded: ratio: {said} [{said}, {said}], recorded was 1 [0.995, 1.005], with which values from 0.9929 to"
    )
    assert decision.message == (None if verdict == "measured" else f"{words} 1.007 agree")
    assert decide(made, data(value), {}, Terms(recorded=False)).verdict == "measured"


def test_fewer_runs_do_not_agree_more_easily(claim):
    """So few seeds that their interval is expected to be 1.5 times as wide cannot agree, whatever they say."""
    error = np.array([-0.1, 0.1, -0.05, 0.05])[None, :, None] * np.ones((2, 1, 1))
    whole = decide(claim(expected="measured"), data(error), {}).readings[0]
    made = claim(expected="measured", recorded={"ratio": (whole.ends[0], whole.value, whole.ends[1])})
    for seeds, verdict in (((4, 4), "measured"), ((4, 9), "measured"), ((4, 10), "inconclusive")):
        decision = decide(made, data(error), {}, Terms(seeds=seeds))
        assert decision.verdict == verdict, seeds
    assert decision.message == "4 seeds are too few to agree with the record of 10: intervals are more than 1.5 times as wide"
    assert decide(claim(expected="measured"), data(error), {}, Terms(seeds=(4, 10))).verdict == "measured", "nothing was recorded"


@pytest.mark.parametrize(("names", "unlike"), [(["error"], "error, ratio"), ([], "ratio"), (["ratio", "slope"], "slope")])
def test_records_of_other_readings_are_an_error(claim, names, unlike):
    """A reading that was renamed would lose its record unnoticed."""
    decision = decide(claim(expected="measured", recorded=dict.fromkeys(names, (0.0, 1.0, 1.0))), data(), {})
    assert decision.verdict == "error"
    assert f"recorded= has each reading by its name; readings and records differ in {unlike}" in decision.message
    assert decide(claim(expected="measured"), data(), {}).verdict == "measured", "nothing was recorded yet"


# what can be stated


def test_a_claim_that_leaves_its_evidence_out_is_told_what_is_allowed(toys):
    with pytest.raises(jd.UsageError, match="toy.bare: evidence=None is not allowed: it is one of model, network, flow, reduced"):
        jd.Claim(
            id="toy.bare",
            title="Bare",
            statement="",
            source="",
            trial=toys.decay,
            quick=toys.GRID,
            judge=judge,
            controls={"doubled": doubled},
        )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"evidence": None}, "evidence=None is not allowed: it is one of model, network, flow"),
        ({"evidence": "simulation"}, "evidence='simulation' is not allowed: it is one of model, network, flow"),
        ({"evidence": "network", "rivals": {}}, "needs a rival with the mechanism switched off"),
        ({"evidence": "flow", "rivals": {}}, "a claim on a flow needs a rival"),
        ({"rivals": {"doubled": doubled}}, "'doubled' names a control and a rival"),
        *(
            ({"rivals": {"sgd": odd}}, "which is not allowed: a rival is a function Dataset -> Dataset, or")
            for odd in ({}, 3, "z", None)
        ),
        ({"recorded": {"a": (0, 1, 2)}}, "recorded= is of claims that are expected to be measured"),
        ({"evidence": "network", "rivals": {"nothing moves": still}}, "jd.off("),
        *(
            ({"expected": "measured", "recorded": {"a": record}}, "it records (low, value, high), in this order")
            for record in ((0, 1), (1.0, 0.0, 2.0), (0.0, 2.0, 1.0), (0.0, math.nan, 1.0), "1", True, None, [0.0, 1.0, 2.0])
        ),
        ({"bounds": 3}, "bounds=3 is not allowed"),
        ({"bounds": "derived: "}, "bounds='derived: ' is not allowed"),
        ({"bounds": "a guess"}, "bounds='a guess' is not allowed: it is 'paper', 'derived: from …' or jd.tuned"),
        ({"bounds": None}, "bounds=None is not allowed"),
        ({"expected": "refuted", "counterpart": "a", "id": "toy.wrong"}, "is called …_as_printed (as it stands"),
        ({"expected": "refuted", "counterpart": "a", "printed": None}, "printed= is missing"),
        ({"controls": {}}, "at least one negative control that its judge"),
    ],
)
def test_what_is_stated_wrongly_is_refused(claim, fields, message):
    with pytest.raises(jd.UsageError, match=re.escape(message)):
        claim(**fields)


def test_a_printed_form_takes_its_words_along(claim):
    made = claim(form="derived", rivals={"nothing moves": jd.off(still)}, evidence="network", bounds="derived")
    printed = made.as_printed(
        id="toy.law_as_printed", title="The law as printed", statement="s", form="printed", printed="eq. (7): $z = 2w$"
    )
    assert printed.printed == "eq. (7): $z = 2w$" and printed.rivals == {} and printed.evidence == "network"


def test_where_bounds_come_from():
    assert [provenance(b) for b in (None, "paper", "derived")] == [None, "the paper's own", "derived"]
    assert provenance("derived: from rounding in double precision") == "derived: from rounding in double precision"
    words = provenance(jd.tuned(on="0:8", confirmed_on="4000:4010"))
    assert words == "tuned on seeds 0:8, confirmed on seeds 4000:4010"


@pytest.mark.parametrize(("on", "confirmed_on"), [("0:8", "4:12"), ("0:8", "0:8"), ("8:0", "10:20"), ("0-8", "10:20"), ("0:8", "")])
def test_seeds_tuned_on_and_confirmed_on_differ(on, confirmed_on):
    with pytest.raises(jd.UsageError):
        jd.tuned(on=on, confirmed_on=confirmed_on)


@pytest.mark.parametrize("bound", [math.nan, math.inf, "1", True, np.float32(np.nan), np.True_, np.ones(1), 1j, None])
def test_bounds_of_assumptions_are_numbers(bound):
    for assumption in (jd.below, jd.above):
        with pytest.raises(jd.UsageError, match="overlap=.* is not allowed: overlap is a finite number"):
            assumption("overlap", bound)


@pytest.mark.parametrize("bound", [2, 2.0, np.int64(2), np.float32(2), np.array(2), jnp.float32(2)])
def test_bounds_of_assumptions_are_numbers_of_any_library(bound):
    assert jd.below("overlap", bound) == jd.below("overlap", 2.0) and jd.above("overlap", bound) == jd.above("overlap", 2.0)


def test_a_form_that_nobody_printed_is_no_misprint():
    forms = {"a.b_as_printed": "misprint", "a.b_naive": "beyond print", "a.b_beyond": "beyond print"}
    assert {name: counted_as(name, "refuted") for name in forms} == forms
    assert [counted_as("a.as_printed", expected) for expected in ("upheld", "measured")] == [COUNTED[0], COUNTED[-1]]


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((2.0, 1.0), "is not allowed: it is a dict of fields and their lowest and highest values"),
        ((1.0,), "is not allowed: it is a dict of fields and their lowest and highest values"),
        ((50.0, 60.0), "is not allowed: the claim runs at"),
    ],
)
def test_a_stated_domain_is_in_order_and_has_the_claims_own_values(claim, ends, words):
    one = claim()
    field = next(iter(one.quick.axes))
    with pytest.raises(jd.UsageError, match=words):
        claim(holds={field: ends})
    own = one.quick.axes[field]
    assert claim(holds={field: (min(own), max(own))}).holds
    with pytest.raises(jd.UsageError, match="names no field"):
        claim(holds={"no_field": (0.0, 1.0)})
