"""The judge on made-up data, and a setting that is refused."""

import numpy as np
import pytest

from jaxdyn.errors import UsageError
from jaxdyn.theories.galore import parallel_part
from tests.theories.galore.helpers import passed, runs


def test_a_span_of_all_dimensions_is_refused():
    with pytest.raises(UsageError, match="not allowed"):
        parallel_part.Free(span=8)


def test_the_end_and_its_rank():
    end = np.ones((200, 2, 2))
    ds = runs(measured_end=(("row", "col"), end), predicted_end=(("row", "col"), end),
              measured_rank=((), np.full(200, 3.0)), predicted_rank=((), np.full(200, 3.0)))  # fmt: skip
    assert passed(parallel_part.judge(ds)) == [True, True]
    assert (
        passed(parallel_part.judge(ds.assign(predicted_end=0 * ds.predicted_end, measured_rank=2 * ds.measured_rank)))
        == [False] * 2
    )
