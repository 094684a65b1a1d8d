"""The judge of the softmax form on made-up remainders."""

import numpy as np
import pytest
import xarray as xr

from jaxdyn.errors import Inconclusive
from jaxdyn.theories.galore import grad_form
from tests.theories.galore.helpers import passed

rng = np.random.default_rng(0)


def test_remainders_need_all_sizes_and_the_right_order():
    sizes = np.array(grad_form.SIZES)
    linear = rng.normal(size=(50, 1, 1, 3, 3)) * np.ones((1, sizes.size, 1, 1, 1))
    off = rng.normal(size=linear.shape) * sizes[:, None, None, None]
    ds = xr.Dataset(
        {name: (("seed", "size", "place", "row", "col"), value) for name, value in (("predicted_linear", linear),
                                                                                  ("measured_linear", linear + off))},
        coords={"size": sizes},
    )  # fmt: skip
    assert passed(grad_form.judge_logits(ds)) == [True, True]
    assert passed(grad_form.judge_logits(ds.assign(measured_linear=ds.predicted_linear + off**2)))[1] is False
    assert passed(grad_form.judge_logits(ds.assign(measured_linear=0.9 * ds.measured_linear)))[0] is False
    assert passed(grad_form.judge_logits(ds.assign(predicted_linear=0 * ds.predicted_linear))) == [False, False]
    with pytest.raises(Inconclusive):
        grad_form.judge_logits(ds.isel(size=slice(0, 2)))


def test_errors_are_relative_to_the_first_term_and_not_to_a_gradient_that_vanishes():
    first = xr.DataArray([[3.0, 4.0]], dims=("row", "col"))
    ds = xr.Dataset({"predicted_gradient": 0 * first, "measured_gradient": 1e-12 * first, "targets_alone": first})
    assert float(grad_form.form_error(ds)) == pytest.approx(1e-12)
