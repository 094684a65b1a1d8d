"""Judges of the asymmetry."""

import numpy as np

from jaxdyn.theories.rev.claims import asym
from tests.theories.rev.helpers import distorted, passed, plain


def test_asymmetry_judges(reversal_runs, cot_runs):
    ds = plain(reversal_runs)
    assert passed(asym.judge, ds)
    np.testing.assert_allclose(asym.asymmetry(ds.measured_entry.isel(matrix=0)), 1)
    assert not passed(asym.judge, distorted(ds, "entry", 1.1))
    assert not passed(asym.judge, plain(reversal_runs, "printed"))
    assert passed(asym.judge_still, ds)
    assert not passed(asym.judge_still, reversal_runs.sel(form="derived", context="both", leak=0.0))
    chains = plain(cot_runs).sel(eta=0.5)
    assert passed(asym.judge_skip, chains)
    assert not passed(asym.judge_skip, distorted(chains, "entry", 0.9))
    assert not passed(asym.judge_skip, cot_runs.sel(form="derived", context="entity", leak=1.0, eta=0.5))
