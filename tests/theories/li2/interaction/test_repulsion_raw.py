"""Signs along a small training; settings that are refused."""

import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.theories.li2.interaction import repulsion_raw


def test_signs_along_training_with_all_pairs_counted():
    small = {"group": "5", "samples": 12, "hidden": 8, "counted": 28, "records": 2, "every": 3}
    ds = jd.sweep(repulsion_raw.trial, jd.grid(repulsion_raw.Similar, activation=["square", "relu"], **small), seeds=2)
    assert set(np.unique(ds.measured_sign)) <= {-1.0, 0.0, 1.0} and list(ds.epoch) == [0, 3, 6]
    agree = (ds.measured_sign == ds.predicted_sign).mean("pair")
    np.testing.assert_allclose(agree.sel(which="most similar"), agree.sel(which="random"))
    values = {c.name: c.value for c in repulsion_raw.judge(ds)}
    assert values["its excess over random pairs, at the end"] == 0


@pytest.mark.parametrize("fields", [{"counted": 40_000}, {"samples": 530}])
def test_more_pairs_than_there_are_are_refused(fields):
    with pytest.raises(jd.UsageError, match=f"{next(iter(fields))}=.*not allowed: .* is at most"):
        repulsion_raw.Similar(**fields)
