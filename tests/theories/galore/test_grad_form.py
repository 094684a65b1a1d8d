"""Short runs of the trials on the form of gradients, and the judge of the softmax form on made-up remainders."""

import numpy as np
import pytest
import xarray as xr

import jaxdyn as jd
from jaxdyn.errors import Inconclusive
from jaxdyn.theories.galore import grad_form
from tests.theories.galore.helpers import passed


@pytest.mark.slow
def test_chains_and_logits():
    ds = jd.sweep(grad_form.chain_trial, jd.grid(grad_form.Chain, depth=2, layer=["leaky", "bias"], steps=20), 3)
    error = jd.relative_error(ds, "gradient", "row col").max(("seed", "place"))
    assert error.sel(layer="leaky") < 1e-10 < error.sel(layer="bias")
    ds = jd.sweep(grad_form.logits_trial, jd.grid(grad_form.Logits, size=1e-4, depth=2), 3)
    assert float(jd.relative_error(ds, "linear", "place row col").max()) < 1e-3


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
