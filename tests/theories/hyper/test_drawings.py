"""The figure of trained encoders has a line for each of them."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn.theories.hyper import drawings


def test_accuracy_against_loss_for_each_encoder():
    dims, shape = ("encoder", "seed", "step"), (2, 3, 4)
    curve = (dims, np.random.default_rng(0).random(shape))
    ends = (dims[:2], np.ones(shape[:2]))
    ds = xr.Dataset(
        {"measured_loss": curve, "measured_accuracy": curve, "predicted_final": ends, "predicted_least": ends, "status": ends},
        {"encoder": ["linear", "mlp"], "seed": range(3)},
    )
    fig = Figure()
    drawings.plot(ds, fig)
    assert [line.get_label() for line in fig.axes[0].get_lines()][:2] == ["linear", "mlp"]
