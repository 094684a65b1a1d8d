"""Judges of the stable rank, on made-up data."""

import numpy as np

from jaxdyn.theories.galore import stable_rank
from tests.theories.galore.helpers import passed, runs


def test_bounds_are_judged_while_the_gradient_is_no_rounding_error():
    size = np.tile([1.0, 1e-3, 1e-7], (200, 1))
    rank, delta = np.tile([3.0, 1.5, 2.0], (200, 1)), np.tile([1.0, 1e-4, 1e-8], (200, 1))
    ds = runs(measured_bound=(("time",), rank), predicted_bound=(("time",), rank + np.array([1.0, 0.001, -1.0])),
              remaining=(("time",), size), delta=(("time",), delta))  # fmt: skip
    assert passed(stable_rank.judge_bound(ds)) == [True, True]
    assert passed(stable_rank.judge_bound(ds.assign(predicted_bound=ds.predicted_bound + 0.1))) == [True, False]
    assert passed(stable_rank.judge_bound(ds.assign(predicted_bound=ds.predicted_bound - 0.01)))[0] is False


def test_rates_are_judged_by_their_order():
    one = np.full(200, -0.5)
    ds = runs(measured_first_order=((), one), predicted_first_order=((), one * 1.01),
              measured_second_order=((), one), predicted_second_order=((), one * 2))  # fmt: skip
    assert passed(stable_rank.judge_rate(ds)) == [True] and passed(stable_rank.judge_rank_one(ds)) == [False]
