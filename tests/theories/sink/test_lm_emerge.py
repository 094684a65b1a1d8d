"""The judge of sinks in a language model, on made-up weights."""

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn.theories.sink import lm_emerge
from jaxdyn.theories.sink.language import BEGINS


def made(weight):
    """Three runs of two layers and four heads, of which one ends with a weight on the first token."""
    rng = np.random.default_rng(0)
    alpha = np.full((2, 3, 2, 2, 4), 0.05)
    alpha[:, :, -1, 0, 0] = weight + 0.01 * rng.normal(size=(2, 3))
    dims = ("begins", "seed", "step", "layer", "head")
    return xr.Dataset(
        {
            "measured_alpha": (dims, alpha),
            "validation": (dims[:3], np.tile([5.5, 2.0], (2, 3, 1))),
            "uniform": (dims[:2], np.full((2, 3), 0.1)),
        },
        coords={"begins": list(BEGINS)},
    )


def test_a_sink_is_found_where_one_is():
    assert [c.passed for c in lm_emerge.judge(made(0.6))] == [True] * 3
    assert [c.passed for c in lm_emerge.judge(made(0.1))] == [True, False, False]
    assert [c.passed for c in lm_emerge.judge(jd.swap(measured_alpha="uniform")(made(0.6)))] == [True, False, False]
