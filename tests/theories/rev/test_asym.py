"""Judges of the asymmetry."""

import numpy as np

from jaxdyn.theories.rev import asym
from tests.theories.rev.helpers import distorted, passed, plain


def test_asymmetry_judges(cot_runs):
    ds, leaked = plain(cot_runs), plain(cot_runs, leak=1.0)
    assert passed(asym.judge, ds) and passed(asym.judge_skip, ds)
    np.testing.assert_allclose(asym.asymmetry(ds.predicted_entry.isel(matrix=0)), (M := ds["size"].values) / (M - 2), rtol=1e-9)
    assert not passed(asym.judge, distorted(ds, "entry", 1.1))
    assert not passed(asym.judge_skip, distorted(ds, "entry", 0.9))
    assert not passed(asym.judge, leaked) and not passed(asym.judge_skip, leaked)
