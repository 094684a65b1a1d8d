r"""How the bound of Theorems 3 and 4 is judged and drawn: from :math:`t = 10\,N\ln M/\eta` on, in every sequence."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.trials.one_layer import EXPONENT

__all__ = ["CAPTION", "LATE", "judge_bound", "late_enough", "plot_bound"]

LATE = 10  # the bound is judged from this many N ln M / eta steps on
CAPTION = (
    r"Left: $1 - p$ of trained sequences against $s = M\eta t/N$, median and central 90% of the sequences of all runs, and the "
    r"bound. Right: exponent c of the mean probability of a run, median and central 90% of runs, and its limit $1 - \ln 2/\ln s$."
)


def late_enough(ds: xr.Dataset) -> xr.DataArray:
    """Which records are late enough for the bound.

    Raises:
        Inconclusive: if none is.
    """
    late = ds.late >= LATE
    if not bool(late.any()):
        raise jd.Inconclusive(f"no record is late enough: the bound is judged from {LATE} N ln M / eta steps on")
    return late


def judge_bound(ds: xr.Dataset) -> list[jd.Check]:
    """Every sequence obeys the bound once t is late, and the exponent of the mean is near its limit at the last time."""
    late = late_enough(ds)
    end = ds.isel(record=-1)
    return [
        jd.at_least("probability minus the bound, every sequence", (ds.measured_bound - ds.predicted_bound).where(late), 0.0),
        jd.at_most(
            "exponent of the mean against 1 - ln 2/ln s, last time", abs(end.measured_exponent - end.predicted_exponent), 0.02
        ),
    ]


def plot_bound(ds: xr.Dataset, fig: Figure) -> None:
    """What is missing to certainty against the bounds, and the exponents."""
    left, right = fig.subplots(1, 2)
    s, one = ds.s.isel(seed=0), ds.isel(seed=0)
    values = 1 - ds.measured_bound.transpose("seed", "sequence", "record").values
    plotting.band(left, s.values, values, "network, sequences of all runs")
    bounds = {"derived": f"bound, c = {EXPONENT}", "simplified": "bound, c = 1"}
    for form, style in zip(bounds, ("--", ":"), strict=True):
        if "form" in ds.dims and form in ds.form.values:
            missing = 1 - one.predicted_bound.sel(form=form)
            left.plot(s, missing.where(missing < 1), style, color=plotting.COLORS["theory"], label=bounds[form])
    left.set(xscale="log", yscale="log", xlabel=r"$s = M\eta t/N$", ylabel="$1 - p$")
    plotting.band(right, s.values, ds.measured_exponent.transpose("seed", "record").values, "exponent of the mean of a run")
    right.plot(s, one.predicted_exponent, "--", color=plotting.COLORS["theory"], label=r"$1 - \ln 2/\ln s$")
    right.set(xscale="log", xlabel=r"$s = M\eta t/N$", ylabel="exponent c")
