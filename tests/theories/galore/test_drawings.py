"""The figures of trained networks draw what they are given."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from jaxdyn.theories.galore import drawings


def noise(ranks=(1, 2)):
    dims, shape = ("finder", "rank", "noisy", "seed", "time"), (2, len(ranks), 3, 4, 5)
    left = np.random.default_rng(0).random(shape)
    coords = {"finder": ["svd", "orthonormal"], "rank": list(ranks), "noisy": [0, 1, 2], "seed": range(4)}
    return xr.Dataset({"measured_left": (dims, left), "predicted_left": (dims, left)}, coords)


def test_changes_are_drawn_for_what_was_predicted():
    values = (("seed", "entry"), np.ones((2, 3)))
    for names in (("sgd", "adam"), ("change",)):
        ds = xr.Dataset({f"{side}_{name}": values for name in names for side in ("predicted", "measured")}, {"seed": range(2)})
        fig = Figure()
        drawings.plot_changes(ds, fig)
        assert len(fig.axes) == len(names)


@pytest.mark.parametrize(
    ("draw", "ds"),
    [(drawings.plot_noise, noise((1,)).isel(rank=0, noisy=0)), (drawings.plot_rank, noise().isel(finder=0))],
    ids=["noise", "rank"],
)
def test_distances_have_a_line_of_the_theory(draw, ds):
    fig = Figure()
    draw(ds, fig)
    (ax,) = fig.axes
    assert [line for line in ax.get_lines() if line.get_linestyle() == "--"]
