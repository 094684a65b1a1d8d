"""The judge of the claims on many linear nodes."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.joma.claims.low_rank import low_rank_judge

from ..helpers import distorted, upheld


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
