"""Judge of the norm of solutions, and settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.solutions import optimum
from tests.theories.cogo.oracle import distorted


def test_judge_of_the_energy_rejects_distortions():
    (claim,) = optimum.CLAIMS
    ds = jd.sweep(optimum.trial, jd.grid(optimum.Carriers, groups=("7",)), seeds=2)
    assert not distorted(claim, ds)
    for name in ("energy", "stationary"):
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: (1 + 1e-8) * v})
    gate = claim.judge(ds.assign(loss=ds.loss + 1e-19))[0]
    assert gate.gate and not gate.passed
    for rival in claim.rivals.values():
        assert not all(c.passed for c in claim.judge(rival(ds)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optimum.Carriers(groups=("5",)), "odd order of at least 7"),
    ],
)
def test_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()
