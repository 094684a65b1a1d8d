"""Judge and settings of the claim on the norm of solutions."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.claims import energy
from tests.theories.cogo.oracle import distorted


def test_judge_of_the_energy_rejects_distortions():
    (claim,) = energy.CLAIMS
    ds = jd.sweep(energy.trial, jd.grid(energy.Carriers, groups=("7",)), seeds=2)
    assert not distorted(claim, ds)
    assert distorted(claim, ds, predicted_energy=lambda v: 1.1 * v)
    assert distorted(claim, ds, loss=lambda v: v + 1e-19)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: energy.Carriers(groups=("5",)), "odd order of at least 7"),
    ],
)
def test_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()
