"""Judges of composed solutions, and settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.cogo.solutions import zf_constructions
from tests.theories.cogo.oracle import distorted


def test_judges_of_the_constructions_reject_distortions_and_every_control_is_far_off():
    six, mixed, alone = zf_constructions.CLAIMS
    ds = jd.sweep(zf_constructions.trial, jd.grid(zf_constructions.Modular, groups=("7",)), seeds=2)
    naive, ds = ds.sel(form="naive"), ds.sel(form="derived")
    for claim, name in ((six, "energy"), (mixed, "bare"), (alone, "alone"), (six, "nodes")):
        assert all(c.passed for c in claim.judge(ds))
        assert distorted(claim, ds, **{f"predicted_{name}": lambda v: 1.1 * v})
    assert distorted(six, ds, loss=lambda v: v + 1e-19)
    assert not all(c.passed for c in alone.judge(naive))
    for claim in (six, mixed):
        for control in claim.controls.values():
            assert float(claim.judge(control.breach(ds))[0].value) > 0.1
        assert [c.passed for c in claim.judge(zf_constructions.MEMORISED(ds))][2:4] == [False, False]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: zf_constructions.Modular(groups=()), "at least one group is needed"),
        (lambda: zf_constructions.Modular(groups=("5", "6")), "6.* is not allowed: every group has an odd order of at least 5"),
    ],
)
def test_settings_refuse_in_one_sentence(make, message):
    with pytest.raises(jd.UsageError, match=message):
        make()
