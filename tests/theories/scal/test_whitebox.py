"""The linear model's judges on made-up runs."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.scal import whitebox
from tests.theories.galore.helpers import passed

PARAMETERS = ("E", "A", "B", "alpha", "beta")


def made(shift=(0.002, 0.003, -0.02), floor=0.01):
    p = np.array(whitebox.POWERS)
    a = np.repeat(1 / (1 + p)[:, None], 3, 1)
    loss = np.ones((3, 4, 5))
    ds = {
        "predicted_exponent": (("p", "approach"), a),
        "measured_exponent": (("p", "approach"), a + np.array(shift)),
        "predicted_loss": (("p", "time", "size"), loss),
        "measured_loss": (("p", "time", "size"), loss),
        "sum_of_limits": (("p", "time", "size"), 1.5 * loss),
        "parameters": (("p", "parameter"), np.full((3, 5), floor)),
    }
    return xr.Dataset(ds, coords={"p": p, "approach": list(whitebox.APPROACHES), "parameter": list(PARAMETERS)})


def test_exponents_and_losses():
    assert passed(whitebox.judge(made())) == [True, True, True]
    assert passed(whitebox.judge(made((0.002, 0.03, 0)))) == [True, True, False]
    assert passed(whitebox.judge(jd.swap(predicted_loss="sum_of_limits")(made()))) == [False, True, True]


def test_the_additive_fit():
    readings = {r.name: r.value for r in whitebox.judge_fit(made())}
    assert list(readings) == [name.format(p) for name in (whitebox.MISSED, whitebox.FLOOR) for p in whitebox.POWERS]
    np.testing.assert_allclose(list(readings.values()), [-0.02] * 3 + [0.01] * 3)
