"""Judges of solutions on small Abelian groups, and settings that are refused."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.solutions import abelian
from tests.theories.cogo.oracle import distorted


def test_judges_of_small_groups_reject_distortions():
    groups, sufficient = abelian.CLAIMS
    ds = jd.sweep(abelian.trial, jd.grid(abelian.Small, groups=("5", "2x2")), seeds=2)
    for claim, name in ((groups, "omitted"), (sufficient, "hidden")):
        assert all(c.passed for c in claim.judge(ds))
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: 1.1 * v})
        for breach in [*(control.breach for control in claim.controls.values()), *claim.rivals.values()]:
            assert not all(c.passed for c in claim.judge(breach(ds)))
    np.testing.assert_allclose(ds.measured_omitted.sel(group="2x2"), 3 / 4, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: abelian.Small(groups=("5", "7")), "one of the groups has an even order"),
        (lambda: abelian.Small(groups=("4",)), "one of the groups has two pairs of frequencies"),
    ],
)
def test_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()
