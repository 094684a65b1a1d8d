"""The deeper network's judge on small runs."""

import jaxdyn as jd
from jaxdyn.theories.li2.lazy import depth
from tests.theories.li2.helpers import rejects


def test_judge_of_depth_rejects_distortions_and_the_masks_alone():
    ds = jd.sweep(depth.trial, jd.grid(depth.Upper, below=6), seeds=16)
    one = ds.sel(form="derived")
    assert all(c.passed for c in depth.judge(one))
    assert not all(c.passed for c in depth.judge(ds.sel(form="printed")))
    assert rejects(depth.judge, one, "sent", 0.9) and rejects(depth.judge, one, "sent", 1.1)
