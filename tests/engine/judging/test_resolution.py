"""Resolution against thresholds known in closed form, and maps of where a claim holds."""

import dataclasses

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.engine.judging import resolution
from jaxdyn.engine.judging.resolution import FLOOR, HALVINGS, blend, smallest
from jaxdyn.engine.judging.verdict import by_cells, decide
from jaxdyn.status import DIVERGED, OK
from tests.engine.handmade import data, doubled, failing, judge

STEP = 10 ** (14 / 2**HALVINGS)  # the bisection finds a threshold to this factor

# Resolution -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [0.3, 1e-2, 1e-5, 1e-11])
def test_scale_finds_the_threshold(claim, bound):
    """M = p: |1/(1+e) - 1| > b and |1/(1-e) - 1| > b first hold together at e = b / (1 - b)."""
    exact = lambda ds: [jd.at_most("error", jd.relative_error(ds, "z", "entry"), bound)]  # noqa: E731
    found = decide(claim(judge=exact), data(), {}).resolution["scale"]["z"]
    assert bound / (1 - bound) <= found <= bound / (1 - bound) * STEP * (1 + 1e-3)


def test_scale_counts_both_signs(claim):
    """M = p (1 + d): stretching the prediction first improves it; only beyond (1+d)/(1-b) - 1 are both signs rejected."""
    found = decide(claim(), data(0.005), {}).resolution["scale"]["z"]
    want = 1.005 / 0.99 - 1
    assert want <= found <= want * STEP


def test_scale_of_each_prediction(claim):
    ds = data().assign(
        predicted_w=lambda d: d.predicted_z,
        measured_w=lambda d: d.measured_z,
        predicted_n=("entry", np.arange(3)),
        measured_n=("entry", np.arange(3)),
    )

    def both(ds):
        errors = {"z": 0.01, "w": 0.1}
        return [jd.at_most(name, jd.relative_error(ds, name, "entry"), bound) for name, bound in errors.items()]

    scale = decide(claim(judge=both), ds, {}).resolution["scale"]
    assert 0.0101 < scale["z"] < 0.0101 * STEP * 1.01 and 0.111 < scale["w"] < 0.112 * STEP
    assert scale["n"] is None, "whole numbers do not scale"


def test_predictions_that_the_judge_does_not_read_are_left_out(claim):
    """Claims share trials: another claim's prediction is not this one's business."""
    ds = data().assign(predicted_w=lambda d: d.predicted_z, measured_w=lambda d: d.measured_z)
    assert decide(claim(), ds, {}).resolution["scale"].keys() == {"z"}


@pytest.mark.parametrize("error", [jd.Inconclusive("too few points"), np.linalg.LinAlgError("SVD did not converge")])
def test_a_judge_that_gives_up_without_numbers_still_reads_them(claim, error):
    """A fit needs finite points: whatever the engine tries on the way, such a judge has its resolution."""

    def fitted(ds):
        if not np.isfinite(ds.predicted_z).any():
            raise error
        return judge(ds)

    decision = decide(claim(judge=fitted), data(), {})
    assert decision.verdict == "upheld"
    assert 0.0101 < decision.resolution["scale"]["z"] < 0.0102 * STEP


def test_a_judge_that_cannot_do_without_a_prediction_is_asked_about_half_of_it(claim):
    """Without any prediction there is no ratio; undecided is not rejected, and the search starts at a half."""

    def ratio(ds):
        if float(abs(ds.predicted_z).max()) == 0:
            raise jd.Inconclusive("nothing is predicted")
        return judge(ds)

    assert 0.0101 < decide(claim(judge=ratio), data(), {}).resolution["scale"]["z"] < 0.0102 * STEP


def test_a_judge_that_stumbles_over_a_distortion_rejects_it(claim):
    """Scaled by 1 - 1 a prediction is zero, and its logarithm no number to fit."""

    def logarithmic(ds):
        if float(abs(ds.predicted_z).max()) == 0:
            raise ValueError("array must not contain infs or NaNs")
        return judge(ds)

    decision = decide(claim(judge=logarithmic), data(), {})
    assert decision.verdict == "upheld"
    assert 0.0101 < decision.resolution["scale"]["z"] < 0.0102 * STEP


def test_scale_is_null_where_no_distortion_is_rejected(claim):
    signs = lambda ds: [jd.at_least("same sign", ds.predicted_z * ds.measured_z, 0.0)]  # noqa: E731
    flipped = {"flipped": lambda ds: ds.assign(predicted_z=-ds.predicted_z)}
    decision = decide(claim(judge=signs, controls=flipped), data(), {})
    assert decision.resolution["scale"] == {"z": None}
    assert decision.verdict == "upheld", "half of a flipped sign is still seen: the mix is finite"
    # (1 - a) p + a (-p) is negative from a = 1/2 on; the measurement is the same on both sides
    assert 0.5 <= decision.resolution["mix"]["flipped"] <= 0.5 * STEP


def test_the_smallest_share_that_is_rejected():
    for threshold in (0.7, 1e-3, 1e-13):
        assert threshold <= smallest(lambda share, t=threshold: share >= t) <= threshold * STEP * (1 + 1e-9)
    assert smallest(lambda share: False) is None
    assert smallest(lambda share: True) == 0.0, "however small: there is no size to speak of"
    assert smallest(lambda share: share > 10.0**FLOOR) == pytest.approx(10.0**FLOOR, rel=STEP - 1)
    assert smallest(lambda share: share < 0.6, starts=(1.0, 0.5)) == 0.0, "a start that is rejected comes first"


def test_a_sign_a_count_and_an_order_have_no_resolution(claim):
    """What rejects every distortion, however small, is sharp but says nothing of sizes: null, not the floor of the search."""

    def exact(ds):
        same = (ds.measured_z == ds.predicted_z).astype(float)
        return [jd.at_least("equal", same, 1.0)]

    decision = decide(claim(judge=exact), data(), {})
    assert decision.verdict == "upheld" and decision.resolution == {"scale": {"z": None}, "mix": {"doubled": None}}


@pytest.mark.parametrize("off", [0.02, 0.5, 100.0])
def test_mix_finds_the_threshold(claim, off):
    """The blend's measurement is p (1 + a off): rejected from a = b / off on."""
    fields = claim(controls={"adam": {"optimizer": "sign"}})
    found = decide(fields, data(), {"adam": data(off)}).resolution["mix"]["adam"]
    assert 0.01 / off * (1 - 1e-9) <= found <= 0.01 / off * STEP


def test_mix_of_a_function(claim):
    """(1-a) p + a 2p against p: off by a / (1 + a), rejected from b / (1 - b) on."""
    found = decide(claim(), data(), {}).resolution["mix"]["doubled"]
    assert 0.01 / 0.99 <= found <= 0.01 / 0.99 * STEP


def test_failed_runs_stay_out_of_the_blend(claim):
    fields = claim(controls={"adam": {"optimizer": "sign"}})
    error = np.full((2, 4, 1), 0.5)
    error[0, 0] = 1e9
    found = decide(fields, data(), {"adam": data(error, status=failing(1))}).resolution["mix"]["adam"]
    assert 0.02 * (1 - 1e-9) <= found <= 0.02 * STEP


def test_a_control_with_fewer_seeds_is_blended_into_the_runs_with_these(claim):
    fields = claim(controls={"adam": {"optimizer": "sign"}})
    error = np.full((2, 4, 1), 0.5)
    error[:, 2:] = 1e9
    some = data(error).isel(seed=[0, 1])
    found = decide(fields, data(), {"adam": some}).resolution["mix"]["adam"]
    assert 0.02 * (1 - 1e-9) <= found <= 0.02 * STEP
    assert decide(fields, data(), {"adam": some.assign_coords(seed=[7, 8])}).resolution["mix"]["adam"] is None


def test_infinite_numbers_are_blended_without_a_word():
    infinite = np.array([np.inf, -np.inf, np.inf, 1.0])
    main, control = (
        data(0.5).isel(lr=[0], entry=[0]).assign(measured_z=(("lr", "seed", "entry"), e[None, :, None]))
        for e in (infinite, -infinite)
    )
    with np.errstate(all="raise"):
        ends = [blend(main, control, share).measured_z.values.ravel().tolist() for share in (0, 1)]
        between = blend(main, control, 0.25).measured_z.values.ravel()
    assert ends == [infinite.tolist(), (-infinite).tolist()]
    assert np.isnan(between[:3]).all() and between[3] == 0.5


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        (data(0.5, lr=[0.1]), "another shape"),
        (data(0.5, lr=[0.1, 0.3]), "another lr"),
        (data(0.5).isel(entry=[0, 1]), "another shape"),
        (data(0.5).drop_vars("measured_z").assign(measured_z=(("lr", "entry", "seed"), np.full((2, 3, 4), 3.0))), "another shape"),
    ],
    ids=["fewer", "other values", "shorter", "turned"],
)
def test_shapes_that_cannot_be_blended_give_null_with_the_reason(claim, control, reason):
    decision = decide(claim(controls={"adam": {"optimizer": "sign"}}), data(), {"adam": control})
    assert decision.controls[0].rejected and decision.resolution["mix"]["adam"] is None
    assert reason in decision.controls[0].reason
    assert decision.verdict == "upheld", "the scale is finite"


def test_judges_meet_zeros_without_warnings(claim):
    """Distorted by 1, the prediction is zero and the error infinite; the suite turns warnings into errors."""
    tight = decide(claim(judge=lambda ds: [jd.at_most("e", jd.relative_error(ds, "z", "entry"), 0.999)]), data(), {})
    assert tight.verdict == "toothless" and tight.resolution["scale"]["z"] is None


def test_a_judge_that_writes_into_its_data_changes_nobody_elses(claim):
    def writing(ds):
        ds["error"] = jd.relative_error(ds, "z", "entry")
        return [jd.at_most("relative error", ds["error"], 0.01)]

    fields = {"controls": {"adam": {"optimizer": "sign"}}}
    ds, other = data(0.001), data(0.5)
    assert decide(claim(judge=writing, **fields), ds, {"adam": other}) == decide(claim(**fields), data(0.001), {"adam": data(0.5)})
    assert "error" not in ds and "error" not in other


def test_judging_is_deterministic_and_leaves_the_data_alone(claim):
    ds, other = data(0.001), data(0.5)
    fields = claim(controls={"adam": {"optimizer": "sign"}, "doubled": doubled})
    copy = ds.copy(deep=True)
    first, second = decide(fields, ds, {"adam": other}), decide(fields, ds, {"adam": other})
    assert dataclasses.asdict(first) == dataclasses.asdict(second)
    assert ds.identical(copy)


# Maps -----------------------------------------------------------------------------------------------------------------


def test_each_cell_is_judged_by_itself(claim):
    error = np.zeros((2, 4, 1))
    error[1, 2] = 0.5
    ds = data(error, status=np.array([[DIVERGED, OK, OK, OK], [OK] * 4]))
    loose = by_cells(claim(min_ok=0.5), ds, ["lr"])
    found = [(c["at"]["lr"], c["verdict"], c["failed"]) for c in loose]
    assert found == [(0.1, "upheld", None), (0.2, "refuted", "relative error")]
    assert [c["checks"][0]["passed"] for c in loose] == [True, False] and loose[1]["checks"][0]["value"] == pytest.approx(0.5)
    assert [c.get("left_out") for c in loose] == [{"of": 4, "diverged": 1, "outside": 0}, None]
    strict = by_cells(claim(), ds, ["lr"])
    assert strict[0]["verdict"] == "inconclusive" and "1 of 4 runs is not ok (diverged)" in strict[0]["failed"]
    both = by_cells(claim(), ds, ["lr", "seed"])
    assert len(both) == 8 and both[6]["at"] == {"lr": 0.2, "seed": 2}
    assert [c["verdict"] for c in both] == ["inconclusive", *["upheld"] * 5, "refuted", "upheld"]


def test_a_cell_that_lacks_what_the_judge_needs_is_inconclusive(claim, toys):
    def slope(ds):
        return [jd.at_most("ratio", ds.measured_z.isel(lr=1) / ds.measured_z.isel(lr=0), 2.0)]

    assert {c["verdict"] for c in by_cells(claim(judge=slope), data(), ["lr"])} == {"inconclusive"}
    errors = by_cells(claim(judge=toys.raises), data(), ["lr"])
    assert [(c["verdict"], c["failed"]) for c in errors] == [("error", errors[0]["failed"])] * 2
    assert errors[0]["failed"].startswith("RuntimeError: the judge stumbled (")


def test_maps_over_words(claim):
    ds = data().assign_coords(lr=["gd", "sign"])
    assert [c["at"] for c in by_cells(claim(), ds, ["lr"])] == [{"lr": "gd"}, {"lr": "sign"}]
    mixed = data().assign_coords(lr=np.array([None, 3], object))
    assert [c["at"] for c in by_cells(claim(), mixed, ["lr"])] == [{"lr": None}, {"lr": 3}]


# Many seeds -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch):
    """Two seeds are distorted at most."""
    monkeypatch.setattr(resolution, "SEEDS", 2)


def counting(sizes):
    def asked(ds):
        sizes.append(ds.sizes["seed"])
        return judge(ds)

    return asked


def test_of_many_seeds_the_first_are_distorted(claim, few):
    """The resolution is that of the first seeds alone; the verdict, its checks and its opponents are of all."""
    error = np.zeros((2, 6, 3))
    error[:, 1], error[:, 4] = 0.002, 0.009
    sizes = []
    controls = {"twice": doubled, "other data": {"lr": 1.0}}
    other = data(1.0, seeds=6)
    decision = decide(claim(judge=counting(sizes), controls=controls), data(error, seeds=6), {"other data": other})
    alone = decide(claim(controls=controls), data(error[:, :2], seeds=2), {"other data": data(1.0, seeds=2)})
    assert decision.verdict == "upheld" and decision.checks[0].value == pytest.approx(0.009)
    assert decision.resolution == alone.resolution | {"seeds": 2}
    assert sizes.count(6) == 1 + len(decision.controls) + len(decision.rivals), "no distorted data have all seeds"
    assert sizes.count(2) > 20


def test_a_judge_that_needs_all_seeds_is_asked_with_all(claim, few):
    def judge_of_many(ds):
        jd.need(ds, seed=4)
        return judge(ds)

    decision = decide(claim(judge=judge_of_many), data(seeds=6), {})
    assert decision.verdict == "upheld" and "seeds" not in decision.resolution
    assert decision.resolution["scale"] == decide(claim(), data(seeds=6), {}).resolution["scale"]


def test_few_seeds_are_all_distorted(claim):
    assert "seeds" not in decide(claim(), data(seeds=6), {}).resolution
