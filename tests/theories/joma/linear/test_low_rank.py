"""The judge of the claims on many linear nodes."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.linear.low_rank import UNATTENDED, low_rank_judge, row_sum_judge
from jaxdyn.theories.joma.linear.training import LinearLayer, trial
from tests.theories.joma.helpers import distorted, upheld


@pytest.mark.parametrize("variable", ["path", "srank_v", "srank_rate"])
def test_derived_form_is_upheld_and_a_distortion_rejected(linear_runs, variable):
    main = linear_runs.sel(form="derived")
    assert int(linear_runs.status.max()) == 0
    assert upheld(low_rank_judge, main), low_rank_judge(main)
    for factor in (0.9, 1.1):
        assert not upheld(low_rank_judge, distorted(main, variable, factor))


def test_printed_form_is_refuted(linear_runs):
    assert not upheld(low_rank_judge, linear_runs.sel(form="printed"))


def test_low_rank_needs_a_leading_row_for_its_verdict(linear_runs):
    main = linear_runs.sel(form="derived")
    with pytest.raises(jd.Inconclusive, match="boost"):
        low_rank_judge(main.assign(margin=main.margin * 0 + 1.1))


def test_without_learned_attention_rows_grow_at_one_speed(linear_runs):
    rival = UNATTENDED(linear_runs.sel(form="derived"))
    assert not upheld(low_rank_judge, rival)
    assert float(rival.predicted_srank_rate.std("time").max()) < 1e-12


def test_row_sum_form_is_right_for_one_node():
    ds = jd.sweep(trial, jd.grid(LinearLayer, tokens=4, samples=8, nodes=[1, 2], step=8e-3), seeds=2).sel(form="printed")
    one = ds.sel(nodes=[1])
    assert upheld(row_sum_judge, one)
    assert not upheld(row_sum_judge, distorted(one, "path", 1.001))
    assert not upheld(row_sum_judge, ds)
