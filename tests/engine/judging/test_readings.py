"""Verdicts of measured claims: what agrees with the record, and whom the readings tell apart."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.judging.decision import Terms
from jaxdyn.engine.judging.verdict import decide
from jaxdyn.status import DIVERGED
from tests.engine.handmade import data, failing, judge, reading

DRAWS = np.random.default_rng(0).normal(0, 0.1, (1, 8, 1))


def runs(error=0.5, spread=1.0):
    """Measured over predicted is 1 + error, but for a spread over eight seeds."""
    return data(error + spread * DRAWS, seeds=8)


def verdict(claim, ds=None, **fields):
    return decide(claim(expected="measured", controls={}, judge=reading, **fields), runs() if ds is None else ds, {})


def test_readings_have_no_mark(claim):
    decision = verdict(claim)
    (ratio,) = decision.readings
    assert decision.verdict == "measured" and decision.checks == [] and decision.resolution == {"scale": {}, "mix": {}}
    assert ratio.interval[0] < ratio.value < ratio.interval[1] and abs(ratio.value - 1.5) < 0.1


def test_the_record_is_compared_by_its_prediction_interval(claim):
    (ratio,) = verdict(claim).readings
    low, high = ratio.interval
    own = {"ratio": (low, ratio.value, high)}
    assert verdict(claim, recorded=own).verdict == "measured"
    half = high - ratio.value
    for shift, agrees in ((1.3, True), (1.5, False), (-1.3, True), (-1.5, False)):
        found = {"ratio": tuple(v + shift * half for v in (low, ratio.value, high))}
        decision = verdict(claim, recorded=found)
        assert (decision.verdict == "measured") is agrees, shift
        assert agrees or "not what was recorded: ratio" in decision.message


def test_few_seeds_do_not_agree_more_easily(claim):
    (ratio,) = verdict(claim).readings
    own = {"ratio": (ratio.interval[0], ratio.value, ratio.interval[1])}
    made = claim(expected="measured", controls={}, judge=reading, recorded=own)
    assert decide(made, runs(), {}, Terms(seeds=(8, 16))).verdict == "measured"
    decision = decide(made, runs(), {}, Terms(seeds=(8, 32)))
    assert decision.verdict == "inconclusive" and decision.message.startswith("8 seeds are too few to agree with the record of 32")


def test_other_settings_have_no_record_nor_its_number_of_seeds(claim):
    own = {"ratio": (0.0, 0.1, 0.2)}
    made = claim(expected="measured", controls={}, judge=reading, recorded=own, recorded_seeds=16)
    assert decide(made, runs(), {}).verdict == "inconclusive"
    assert decide(made, runs(), {}, Terms(recorded=False)).verdict == "measured"


def test_an_opponent_is_told_apart_outside_the_interval_and_the_record(claim):
    (ratio,) = verdict(claim).readings
    rivals = {"no effect": jd.off({"ratio": 1.0}), "the same": {"ratio": ratio.value}}
    decision = verdict(claim, rivals=rivals)
    assert decision.verdict == "toothless" and decision.message == "not told apart by any reading: the same"
    assert [(o.rejected, o.apart) for o in decision.rivals] == [(True, ["ratio"]), (False, [])]
    wide = {"ratio": (0.9, ratio.value, 2.1)}  # what was recorded holds the rival, whatever this run says
    assert verdict(claim, rivals={"no effect": {"ratio": 1.0}}, recorded=wide).verdict == "toothless"


def test_a_rival_that_changes_nothing_is_not_told_apart(claim):
    assert verdict(claim, rivals={"the same": lambda ds: ds}).verdict == "toothless"


def test_nan_tells_nothing_apart(claim):
    decision = verdict(claim, rivals={"no number": {"ratio": float("nan")}})
    assert decision.verdict == "toothless" and not decision.rivals[0].rejected


def test_rivals_by_their_predictions_and_controls_by_their_data(claim):
    half = {"half of it": jd.scaled(predicted_z=0.5)}
    decision = decide(
        claim(expected="measured", judge=reading, rivals=half, controls={"moved": jd.scaled(measured_z=3.0)}), runs(), {}
    )
    assert decision.verdict == "measured" and [o.apart for o in (*decision.controls, *decision.rivals)] == [["ratio"]] * 2


def test_checks_and_readings_are_not_mixed(claim):
    mixed = decide(claim(expected="measured", controls={}, judge=judge), runs(), {})
    assert mixed.verdict == "error" and "a measured claim has readings" in mixed.message
    wrong = decide(claim(judge=reading), runs(), {})
    assert wrong.verdict == "error" and "is a reading, which decides nothing" in wrong.message


def test_a_gate_that_is_not_met_comes_first(claim):
    gated = lambda ds: [jd.gate("trained", ds.measured_z, at_least=99.0), *reading(ds)]  # noqa: E731
    decision = decide(claim(expected="measured", controls={}, judge=gated), runs(), {})
    assert decision.verdict == "inconclusive" and decision.message.startswith("gate not met: trained")


def test_records_are_of_the_readings_that_there_are(claim):
    decision = verdict(claim, recorded={"other": 1.0})
    assert decision.verdict == "error" and "readings and records differ in other, ratio" in decision.message


@pytest.mark.parametrize("recorded", [{"ratio": (1.0, 2.0)}, {"ratio": (3.0, 2.0, 1.0)}, {"ratio": "1"}, {"ratio": True}])
def test_a_record_is_a_number_with_its_interval(claim, recorded):
    with pytest.raises(jd.UsageError, match=r"it records \(low, value, high\)"):
        claim(expected="measured", controls={}, judge=reading, recorded=recorded)


SCATTER = np.array([-0.1, 0.1, -0.05, 0.05])[None, :, None] * np.ones((2, 1, 3))


def measured(claim, **fields):
    return claim(expected="measured", **fields)


def test_readings_are_of_the_mean_over_seeds(claim):
    (found,) = decide(measured(claim), data(SCATTER), {}).readings
    assert found.value == pytest.approx(1.0)
    low, high = decide(measured(claim), data(SCATTER), {}).readings[0].ends
    half = 8.8915 * np.std([-0.1, 0.1, -0.05, 0.05], ddof=1) / 2  # the quantile of t_3 at .997, two-sided, from scipy
    assert (1 - low, high - 1) == pytest.approx((half, half), rel=1e-3), "four seeds, not eight runs"


def test_all_that_it_reads_is_recorded_or_nothing(claim):
    two = lambda ds: [*reading(ds), jd.Reading("largest", float(ds.measured_z.max()))]  # noqa: E731
    made = measured(claim, judge=two, recorded={"ratio": (0.99, 1.0, 1.01), "largest": 2.0})
    assert decide(made, data(), {}).verdict == "measured"
    found = decide(made, data(0.005), {})
    assert found.verdict == "inconclusive" and found.message.startswith("not what was recorded: largest: 2.01, recorded was 2")
    assert "differ in largest" in decide(measured(claim, judge=two, recorded={"ratio": 1.0}), data(), {}).message


def test_a_control_with_runs_of_its_own_is_told_apart(claim):
    made = measured(claim, controls={"other": {"rate": 2.0}})
    assert decide(made, data(), {"other": data(0.5)}).verdict == "measured"
    alike = decide(made, data(SCATTER), {"other": data(0.01)})
    assert alike.verdict == "toothless" and alike.message == "not told apart by any reading: other"


def test_a_control_that_diverges_is_no_reading(claim):
    blown = {"blown": jd.Control({"rate": 9.0}, diverges=True)}
    assert decide(measured(claim, controls=blown), data(), {"blown": data(status=failing(8, DIVERGED))}).verdict == "measured"
    decision = decide(measured(claim, controls={"blown": {"rate": 9.0}}), data(), {"blown": data(status=failing(8, DIVERGED))})
    assert decision.verdict == "toothless" and decision.controls[0].reason == "all runs: diverged"


def test_an_opponent_that_cannot_be_read_is_not_told_apart(claim):
    def picky(ds):
        if float(ds.predicted_z.max()) == 4.0:
            raise jd.Inconclusive("too few points")
        return reading(ds)

    decision = decide(measured(claim, judge=picky), data(), {})
    assert decision.verdict == "toothless" and decision.controls[0].reason == "too few points"
    undecided = decide(measured(claim, judge=picky), data(prediction=4.0), {})
    assert undecided.verdict == "inconclusive" and undecided.message == "too few points"


def test_disagreement_comes_before_missing_teeth(claim):
    same = {"same": lambda ds: ds.copy()}
    assert decide(measured(claim, controls=same, recorded={"ratio": 3.0}), data(), {}).verdict == "inconclusive"


def test_looks_do_not_widen_readings(claim):
    first, third = (decide(measured(claim), data(SCATTER), {}, Terms(look=k)).readings for k in (1, 3))
    assert first == third


@pytest.mark.parametrize("kind", [jd.mean_reading, jd.share_reading])
def test_a_reading_is_one_number(kind):
    ds = data()
    with pytest.raises(jd.UsageError, match="reading 'x': it is one number; there is one for each entry of lr"):
        kind("x", (ds.measured_z > 0).isel(entry=0), over="seed")
    whole, cell = (kind("x", (ds.measured_z > 0).isel(entry=0, lr=lr), over="seed") for lr in (0, [0]))
    assert whole == cell, "a cell of --by keeps its axes"
    with pytest.raises(jd.Inconclusive):
        kind("x", ds.measured_z.isel(entry=0, lr=0, seed=[]) > 0, over="seed")
    with pytest.raises(jd.UsageError, match="over='step' is not allowed"):
        kind("x", ds.measured_z > 0, over="step")
