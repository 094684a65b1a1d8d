"""The judge of sinks in a language model, on made-up weights."""

import numpy as np
import pytest
import xarray as xr

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


def test_the_largest_weight_of_any_head_is_read():
    gate, *readings = lm_emerge.judge(made(0.6))
    assert gate.passed and [r.value for r in readings] == pytest.approx([0.6, 0.6], abs=0.02)
    assert [r.name for r in readings] == list(lm_emerge.SINKS)
    (claim,) = lm_emerge.CLAIMS
    assert claim.recorded.keys() == lm_emerge.SINKS.keys()
