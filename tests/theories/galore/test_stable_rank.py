"""Judges of the stable rank, on made-up data."""

import numpy as np

from jaxdyn.theories.galore import stable_rank
from tests.theories.galore.helpers import passed, runs


def test_bounds_are_judged_while_the_gradient_is_no_rounding_error():
    size = np.tile([1.0, 1e-3, 2e-5, 1e-7], (200, 1))
    rank, delta = np.tile([3.0, 1.5, 1.5, 2.0], (200, 1)), np.tile([1.0, 1e-3, 1e-5, 1e-8], (200, 1))
    rest = delta * np.array([1.0, 0.5, 0.5, 2.0])
    ds = runs(measured_bound=(("time",), rank), predicted_bound=(("time",), rank + np.array([1.0, 0.001, 0.001, -1.0])),
              measured_rest=(("time",), rest), predicted_rest=(("time",), delta),
              measured_square=(("time",), 1 + rest**2), predicted_square=(("time",), 1 + delta**2),
              remaining=(("time",), size), delta=(("time",), delta)).expand_dims(kind=["entries"])  # fmt: skip

    def judged(**changed):
        return passed(stable_rank.judge_bound(ds.assign(**changed)))

    assert all(judged())
    assert judged(predicted_bound=ds.predicted_bound + 0.1)[1] is False
    assert judged(predicted_bound=ds.predicted_bound - 0.01)[0] is False
    for k, name in enumerate(("rest", "square")):
        assert judged(**{f"predicted_{name}": ds[f"predicted_{name}"] / 2})[2 + k] is False
        assert judged(**{f"predicted_{name}": ds[f"predicted_{name}"] * 2})[4 + k] is False
    assert judged(predicted_rest=ds.predicted_rest**2)[6] is False


def test_rates_are_judged_by_their_order():
    one = np.full(200, -0.5)
    ds = runs(measured_first_order=((), one), predicted_first_order=((), one * 1.0005),
              measured_second_order=((), one), predicted_second_order=((), one * 2))  # fmt: skip
    assert passed(stable_rank.judge_rate(ds)) == [True] and passed(stable_rank.judge_rank_one(ds)) == [False]
