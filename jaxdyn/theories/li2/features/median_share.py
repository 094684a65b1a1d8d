r"""p_50, the share of pairs at which half of the subsets retain their node, and its bootstrap intervals.

Letters as in ``features/thm4_retention.py``; an interval comes from resampling the subsets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.li2.dynamics import retention as theory

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)  # thresholds on the mass
MAIN = 0.6
DRAWS = 400  # bootstrap samples
LEVEL = 0.997  # of the intervals of readings
COLORS: dict[str, str] = dict(zip(theory.OBJECTS, ("measured", "control", "theory"), strict=True))


class Halves(NamedTuple):
    """p_50 for each energy, start and threshold, for the subsets of the data and for ``DRAWS`` bootstrap samples of them."""

    p: Float[np.ndarray, "object start level"]
    drawn: Float[np.ndarray, "object start level draw"]

    def both(self, kind: int, level: int) -> Float[np.ndarray, "start draw"]:
        """p_50 for the subsets of the data, then for the bootstrap samples."""
        return np.concatenate([self.p[kind, :, level, None], self.drawn[kind, :, level]], 1)

    def interval(self) -> Float[np.ndarray, "2 object start level"]:
        """The central 95% of the bootstrap samples."""
        return np.quantile(self.drawn, [0.025, 0.975], axis=-1, method="nearest")


def halves(ds: xr.Dataset, levels: tuple[float, ...] = LEVELS, above_chance: bool = False, kept: float = 0.5) -> Halves:
    """p_50: the median over subsets of the p from which each one retains its node.

    If a subset loses its node at j of its values of p, the j smallest count as lost, and its own p is the middle, on a
    logarithmic scale, of the next two. The values differ between subsets, so that the median is not tied to the grid.

    Args:
        ds: with axes c and seed.
        levels: thresholds.
        above_chance: whether they are thresholds on (mass - share) / (1 - share), where share is the irrep's share of the
            dimensions, the mean mass of a random node, which is large in small groups.
        kept: the share of the subsets that retain their node, in place of a half.

    Raises:
        Inconclusive: with fewer than three values of c, or fewer than eight subsets.
    """
    jd.need(ds, c=3)
    # masses and shares of pairs, a row for each subset
    joined = ds[["measured_mass", "p"]].stack(unit=("seed", "subset")).dropna("unit")
    if (units := joined.sizes["unit"]) < 8:
        raise jd.Inconclusive(f"at least 8 subsets are needed, got {units}")
    mass = joined.measured_mass.transpose("object", "start", "unit", "c").values
    if above_chance:
        share = constant(ds.share).values[:, None, None]
        mass = (mass - share) / (1 - share)
    # each subset's own p
    x = np.sort(np.log(joined.p.transpose("start", "unit", "c").values))
    x = np.pad(x, ((0, 0), (0, 0), (1, 1)), constant_values=((0, 0), (0, 0), (-np.inf, np.inf)))
    lost = np.sum(mass[:, :, None] <= np.array(levels)[:, None, None], -1)  # object start level unit
    middle = np.broadcast_to(((x[..., 1:] + x[..., :-1]) / 2)[None, :, None], (*lost.shape, x.shape[-1] - 1))
    own = np.take_along_axis(middle, lost[..., None], -1)[..., 0]
    # the median over subsets, and over bootstrap samples of them
    again = np.random.default_rng(0).integers(units, size=(DRAWS, units))
    return Halves(quantile(own, kept), quantile(own[..., again], kept))


def quantile(logs: Float[np.ndarray, "... unit"], kept: float) -> Float[np.ndarray, "..."]:
    """The quantile of p, the median for 1/2; NaN where it is outside the values of p."""
    ordered = np.sort(logs, -1)
    place, part = divmod(kept * (logs.shape[-1] - 1), 1)
    value = np.exp((1 - part) * ordered[..., int(place)] + part * ordered[..., int(place) + (part > 0)])
    return np.where((value > 0) & np.isfinite(value), value, np.nan)


def constant(values: xr.DataArray) -> xr.DataArray:
    """A number of each start that is the same in all runs."""
    return values.mean([d for d in values.dims if d != "start"])


def law(ds: xr.Dataset) -> Float[np.ndarray, " start"]:
    """The law ln M / M of every start."""
    order = constant(ds.order).values
    return np.asarray(np.log(order) / order)


def estimated(name: str, drawn: Float[np.ndarray, " draw"], log: bool = False) -> jd.Reading:
    """The first number, with a normal interval by the spread of the others, its bootstrap samples; ``log``: of the logarithm."""
    drawn = np.log(drawn) if log else drawn
    spread = drawn[1:][np.isfinite(drawn[1:])]
    half = stats.bonferroni_z(1, LEVEL) * (np.std(spread) if len(spread) else np.nan)
    value, *ends = (float(np.exp(x) if log else x) for x in (drawn[0], drawn[0] - half, drawn[0] + half))
    return jd.Reading(name, value, (ends[0], ends[1]))


def slope(x: Float[np.ndarray, " start"], p: Float[np.ndarray, "start draw"]) -> tuple[float, float, float]:
    """Least-squares slope of ln p over x for the first column, and the central 95% of the slopes for the others."""
    x = x - x.mean()
    slopes = x @ np.log(p) / (x @ x)
    low, high = np.quantile(slopes[1:], [0.025, 0.975])
    return float(slopes[0]), float(low), float(high)


def plot_halves(ax: Axes, ds: xr.Dataset) -> None:
    """p_50 at the main threshold over M, and the theorem's law through the first point of each energy."""
    order, halved = constant(ds.order).values, halves(ds, (MAIN,))
    low, high = halved.interval()
    for k, kind in enumerate(ds.object.values):
        p, color = halved.p[k, :, 0], plotting.COLORS[COLORS[str(kind)]]
        ax.errorbar(order, p, [p - low[k, :, 0], high[k, :, 0] - p], fmt="o", capsize=2.5, color=color, label=str(kind))
        ax.plot(
            order, p[0] * law(ds) / law(ds)[0], "--", linewidth=1, color=color, label=r"$\propto \ln M / M$" if k == 0 else None
        )
    ax.set(xscale="log", yscale="log", xlabel="M", ylabel=r"$p_{50}$")
    ax.set_xticks(order, [f"{m:g}" for m in order])
    ax.xaxis.set_minor_formatter(NullFormatter())
    few_ticks(ax.yaxis)


def few_ticks(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis of about a decade."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
