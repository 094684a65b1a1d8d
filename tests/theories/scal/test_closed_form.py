"""Judges of optima and parabolas, on made-up runs."""

import numpy as np
import xarray as xr

from jaxdyn.theories.scal import closed_form
from tests.theories.galore.helpers import passed

BUDGETS = 10.0 ** np.arange(18, 22)


def optima(error=0.0):
    n = np.tile((BUDGETS / 6) ** 0.45, (2, 1))
    d = BUDGETS / 6 / n
    ds = {"predicted_n": n, "predicted_d": d, "measured_n": n * (1 + error), "measured_d": d / (1 + error)}
    ds |= {"n_fixed": 0 * n + 1e9, "n_equal": np.tile((BUDGETS / 120) ** 0.5, (2, 1)), "n_exchanged": d}
    return xr.Dataset({k: (("law", "budget"), v) for k, v in ds.items()}, coords={"law": list(closed_form.LAWS), "budget": BUDGETS})


def test_optima():
    assert passed(closed_form.judge(optima())) == [True, True]
    assert passed(closed_form.judge(optima(1e-8))) == [False, False]
    for name in ("n_fixed", "n_equal", "n_exchanged"):
        rival = closed_form.allocated(name)(optima())
        assert passed(closed_form.judge(rival)) == [False, False]
        np.testing.assert_allclose(6 * rival.predicted_n * rival.predicted_d, np.tile(BUDGETS, (2, 1)))


def test_parabolas():
    ds = xr.Dataset(
        {
            "predicted_slope": ("seed", [0.45]),
            "measured_slope": ("seed", [0.45]),
            "predicted_shift": (("seed", "budget"), [[0.036, 0.036]]),
            "measured_shift": (("seed", "budget"), [[0.036, 0.036]]),
        }
    )
    assert passed(closed_form.judge_parabola(ds)) == [True, True]
    assert passed(closed_form.judge_parabola(ds.assign(measured_slope=ds.measured_slope + 1e-3))) == [False, True]
    assert passed(closed_form.judge_parabola(ds.assign(predicted_shift=0 * ds.predicted_shift))) == [True, False]
