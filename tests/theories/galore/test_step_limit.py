"""The judge of the largest step size on made-up data."""

import numpy as np

from jaxdyn.theories.galore import step_limit
from tests.theories.galore.helpers import passed, runs


def test_the_limit_of_the_step_size():
    excess = np.tile([-1e-12] * 6 + [0.05, 0.6], (200, 1))[:, :, None]
    ds = runs(measured_bound=(("step", "time"), 2 + excess), predicted_bound=(("step", "time"), 0 * excess + 2),
              remaining=(("step", "time"), 0 * excess + 1), rank_start=(("step",), 0 * excess[..., 0] + 3))  # fmt: skip
    ds = ds.assign_coords(step=step_limit.SHARES)
    assert passed(step_limit.judge(ds)) == [True] * 3
    assert passed(step_limit.judge(step_limit.REVERSED(ds))) == [False] * 3
    assert passed(step_limit.judge(step_limit.NEVER(ds)))[1:] == [False] * 2
    assert (
        passed(step_limit.judge(step_limit.CLAIMS[0].rivals["nothing moves: the stable rank of the start"](ds)))[1:] == [False] * 2
    )
