"""The deeper network's judge on small runs; settings that are refused."""

import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.lazy import depth as depth_claims
from tests.theories.li2.helpers import rejects


def test_judge_of_depth_rejects_distortions_and_the_masks_alone():
    ds = jd.sweep(depth_claims.trial, jd.grid(depth_claims.Upper, below=6), seeds=16)
    one = ds.sel(form="derived")
    assert all(c.passed for c in depth_claims.judge(one))
    assert not all(c.passed for c in depth_claims.judge(ds.sel(form="printed")))
    assert rejects(depth_claims.judge, one, "sent", 0.9) and rejects(depth_claims.judge, one, "sent", 1.1)


@pytest.mark.parametrize("fields", [{"below": 0}])
def test_settings_refuse(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed"):
        depth_claims.Upper(**fields)
