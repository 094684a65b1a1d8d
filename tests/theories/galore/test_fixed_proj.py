"""The judge of switching subspaces, on made-up ranks."""

import numpy as np

from jaxdyn.theories.galore import fixed_proj
from tests.theories.galore.helpers import passed, runs


def test_ranks_of_updates():
    rank = np.tile([4.0, 8.0, 10.0], (200, 1))
    full = np.full(200, 10.0)
    ds = runs(measured_rank=(("time",), rank), predicted_rank=(("time",), rank), measured_end=((), 0 * full),
              predicted_end=((), 0 * full), measured_final_rank=((), full), predicted_final_rank=((), full))  # fmt: skip
    assert passed(fixed_proj.judge_switching(ds)) == [True, True, True]
    assert passed(fixed_proj.judge_switching(ds.assign(measured_rank=ds.measured_rank + 1)))[1] is False
    assert passed(fixed_proj.judge_switching(ds.assign(measured_final_rank=ds.measured_final_rank - 1)))[2] is False
