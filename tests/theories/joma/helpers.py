"""What several test files of JoMA share: settings as trials see them, and judges asked for one answer."""

import numpy as np
from matplotlib.figure import Figure

from jaxdyn.engine.setting import columns, join, split


def inside(setting):
    """A setting as a trial sees it: swept numbers in its precision, switches by a number that may be traced."""
    cls = type(setting)
    static, swept = split(setting)
    return join(cls, static, {name: column[0] for name, column in columns(cls, static, [swept]).items()})


def upheld(judge, ds) -> bool:
    """Whether all checks of a judge pass."""
    with np.errstate(all="ignore"):
        return all(check.passed for check in judge(ds))


def distorted(ds, name, factor):
    """The data with one predicted variable times a factor."""
    return ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})


def panels(claim, ds) -> list:
    """The panels of a claim's figure that hold something."""
    fig = Figure()
    claim.plot(ds, fig)
    return [ax for ax in fig.axes if ax.has_data()]
