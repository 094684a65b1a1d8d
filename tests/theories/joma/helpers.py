"""What several test files of JoMA share: settings as trials see them, and judges asked for one answer."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from jaxdyn.engine.claims.edits import Off
from jaxdyn.engine.claims.setting import columns, join, split
from jaxdyn.engine.judging.check import holds


def inside(setting):
    """A setting as a trial sees it: swept numbers in its precision, switches by a number that may be traced."""
    cls = type(setting)
    static, swept = split(setting)
    return join(cls, static, {name: column[0] for name, column in columns(cls, static, [swept]).items()})


def upheld(judge, ds) -> bool:
    """Whether all checks of a judge pass."""
    with np.errstate(all="ignore"):
        return all(check.passed for check in judge(ds))


def theory(rival):
    """What a rival is: also the one with the mechanism switched off."""
    return rival.rival if isinstance(rival, Off) else rival


def refutes(judge, rival, ds) -> bool:
    """Whether a judge rejects a rival: its predictions, or what it says of checks."""
    if not isinstance(words := theory(rival), Mapping):
        return not upheld(judge, words(ds))
    bounds = {check.name: check.bound for check in judge(ds)}
    said = {name: value(ds) if callable(value) else value for name, value in words.items()}
    return any(holds(bounds[name], value) is False for name, value in said.items())


def distorted(ds, name, factor):
    """The data with one predicted variable times a factor."""
    return ds.assign({f"predicted_{name}": factor * ds[f"predicted_{name}"]})


def panels(claim, ds) -> list:
    """The panels of a claim's figure that hold something."""
    fig = Figure()
    claim.plot(ds, fig)
    return [ax for ax in fig.axes if ax.has_data()]
