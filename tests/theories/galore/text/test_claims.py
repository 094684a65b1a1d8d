"""Judges of the runs on a text, on made-up perplexities, losses and ranks."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.theories.galore import published
from jaxdyn.theories.galore.text import claims
from jaxdyn.theories.galore.text.trial import METHODS, PUBLISHED
from tests.theories.galore.helpers import passed

FACTORS, SEEDS = (1 / 3, 1.0, 3.0), 3
STEPS, MATRICES = (0, 40, 80), ("q 0", "q 1")


def order(ratio, best=1):
    """Perplexities that are ``ratio`` times full Adam's at each method's best factor, 30 at the others; seeds differ by 1%."""
    p = np.full((len(METHODS), len(FACTORS), SEEDS), 30.0) * (1 + 0.01 * np.arange(SEEDS))
    p[:, best] = 10 * np.asarray(ratio)[:, None] * (1 + 0.01 * np.arange(SEEDS))
    loss = np.stack([np.full_like(p, np.log(256)), np.log(p)], -1)[..., None] * np.ones(2)
    paper = np.asarray([published.PERPLEXITY[name][0] for name in PUBLISHED])[:, None, None] * np.ones(p.shape)
    dims = ("optimizer", "factor", "seed")
    data = {"measured_perplexity": (dims, p), "predicted_perplexity": (dims, paper), "loss": ((*dims, "step", "part"), loss)}
    coords = {
        "optimizer": list(METHODS),
        "factor": list(FACTORS),
        "seed": range(SEEDS),
        "step": [0, 160],
        "part": ["valid", "test"],
    }
    return xr.Dataset(data, coords)


PAPER = np.asarray([published.PERPLEXITY[name][0] for name in PUBLISHED]) / published.PERPLEXITY["full"][0]


def test_rates_are_chosen_on_the_validation_part():
    ds = order(np.ones(len(METHODS)))
    ds["loss"] = ds.loss.where((ds.part == "test") | (ds.step == 0) | (ds.factor != 3.0), 0.1)
    assert set(claims.tuned(ds).factor.values.ravel()) == {3.0}
    assert set(claims.tuned(order(np.ones(len(METHODS)), best=0)).factor.values.ravel()) == {1 / 3}


def test_ratios_are_taken_run_by_run():
    ratio = np.linspace(1, 2, len(METHODS))
    np.testing.assert_allclose(claims.ratios(order(ratio)).transpose("optimizer", "seed"), ratio[:, None] * np.ones(SEEDS))
    np.testing.assert_allclose(claims.ratios(order(ratio), "scaled").mean("seed"), ratio / ratio[1])


def test_the_paper_s_order_passes_and_equality_does_not():
    assert all(passed(claims.judge_order(order(PAPER))))
    checks = claims.judge_order(order(np.ones(len(METHODS))))
    assert [c.passed for c in checks if "factor" in c.name or c.name.endswith("W = BA")] == [False]
    for rival in next(c for c in claims.CLAIMS if c.id == "galore.ppl_order").rivals.values():
        assert not all(passed(claims.judge_order(rival(order(PAPER)))))


def test_ablation_takes_one_axis_at_a_time():
    every, rank, alpha = [0.0, 10.0, 50.0], [2.0, 8.0], [0.25, 1.0]
    p = 10 * np.ones((3, 2, 2, SEEDS)) * np.array([1.05, 1, 1])[:, None, None, None] * np.array([1.3, 1])[:, None, None]
    dims = ("every", "rank", "alpha", "seed")
    ds = xr.Dataset({"measured_perplexity": (dims, p)}, {"every": every, "rank": rank, "alpha": alpha, "seed": range(SEEDS)})
    checks = claims.judge_ablation(ds)
    np.testing.assert_allclose([c.value for c in checks], [1.05, 1, 1.3, 1])
    assert [c.passed for c in checks] == [True, True, False, True]


def bits(values):
    p = np.asarray(values)[None, :, None] * np.ones((2, 1, SEEDS))
    p[:, 1] *= np.array([1.0, 1.001, 0.999])
    loss = np.full((2, 2, SEEDS, 2, 2), np.log(256.0))
    coords = {"optimizer": ["full", "galore"], "moments": ["float32", "8bit"], "seed": range(SEEDS), "part": ["valid", "test"]}
    dims = ("optimizer", "moments", "seed")
    return xr.Dataset({"measured_perplexity": (dims, p), "loss": ((*dims, "step", "part"), loss)}, coords)


def test_eight_bit_is_judged_against_float32_run_by_run():
    claim = next(c for c in claims.CLAIMS if c.id == "galore.eight_bit")
    ds = bits([10, 10.05])
    assert all(passed(claims.judge_eight_bit(ds)))
    for rival in claim.rivals.values():
        assert not any(passed(claims.judge_eight_bit(rival(ds))))
    assert not any(passed(claims.judge_eight_bit(bits([10, 10.5]))))


def ranks(course):
    values = np.asarray(course, float)[None, :, None] * np.array([1, 1.01, 0.99])[:, None, None] * np.ones(len(MATRICES))
    noise = np.full((3, len(MATRICES)), 7.8)
    dims = ("seed", "step", "matrix")
    data = {"measured_stable_rank": (dims, values), "predicted_stable_rank": (dims, np.full(values.shape, 8.0))}
    coords = {"seed": range(3), "step": list(STEPS), "matrix": list(MATRICES)}
    return xr.Dataset(data | {"noise_rank": (("seed", "matrix"), noise)}, coords)


def test_ranks_are_low_and_fall():
    claim = next(c for c in claims.CLAIMS if c.id == "galore.lm_low_rank_grad")
    assert all(passed(claims.judge_ranks(ranks([2.3, 1.5, 1.8]))))
    for breach in (*(c.breach for c in claim.controls.values()), *claim.rivals.values()):
        assert not all(passed(claims.judge_ranks(breach(ranks([2.3, 1.5, 1.8])))))


@pytest.mark.parametrize("course", [[2.3, 2.3, 2.5], [7.9, 6.5, 7.0]])
def test_another_course_fails(course):
    assert not all(passed(claims.judge_ranks(ranks(course))))
