r"""p_50, the share of pairs at which half of the subsets retain their node, and its bootstrap intervals.

Letters as in ``features/thm4_retention.py``; an interval comes from resampling the subsets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

import jaxdyn as jd

__all__ = ["DRAWS", "LEVELS", "MAIN", "Halves", "constant", "halves", "slope"]

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)  # thresholds on the mass
MAIN = 0.6
DRAWS = 400  # bootstrap samples


class Halves(NamedTuple):
    """p_50 for each energy, start and threshold, for the subsets of the data and for ``DRAWS`` bootstrap samples of them."""

    p: Float[np.ndarray, "object start level"]
    drawn: Float[np.ndarray, "object start level draw"]

    def interval(self) -> Float[np.ndarray, "2 object start level"]:
        """The central 95% of the bootstrap samples."""
        return np.quantile(self.drawn, [0.025, 0.975], axis=-1, method="nearest")


def halves(ds: xr.Dataset, levels: tuple[float, ...] = LEVELS, above_chance: bool = False) -> Halves:
    """p_50: the median over subsets of the p from which each one retains its node.

    If a subset loses its node at j of its values of p, the j smallest count as lost, and its own p is the middle, on a
    logarithmic scale, of the next two. The values differ between subsets, so that the median is not tied to the grid.

    Args:
        ds: with axes c and seed.
        levels: thresholds.
        above_chance: whether they are thresholds on (mass - share) / (1 - share), where share is the irrep's share of the
            dimensions, the mean mass of a random node, which is large in small groups.

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
    return Halves(_median(own), _median(own[..., again]))


def _median(logs: Float[np.ndarray, "... unit"]) -> Float[np.ndarray, "..."]:
    """The median of p; NaN where it is outside the values of p."""
    ordered = np.sort(logs, -1)
    count = logs.shape[-1]
    value = np.exp((ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2)
    return np.where((value > 0) & np.isfinite(value), value, np.nan)


def constant(values: xr.DataArray) -> xr.DataArray:
    """A number of each start that is the same in all runs."""
    return values.mean([d for d in values.dims if d != "start"])


def slope(x: Float[np.ndarray, " start"], p: Float[np.ndarray, "start draw"]) -> tuple[float, float, float]:
    """Least-squares slope of ln p over x for the first column, and the central 95% of the slopes for the others."""
    x = x - x.mean()
    slopes = x @ np.log(p) / (x @ x)
    return float(slopes[0]), *(float(q) for q in np.quantile(slopes[1:], [0.025, 0.975]))
