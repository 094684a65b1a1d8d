r"""The border of a map, fitted by a power law.

.. math:: y = c\,x^p

p is the slope of the principal axis of the border's points in (ln x, ln y), since both coordinates are equally uncertain. Its
interval is Student's, from the jackknife over consecutive parts of the border, since its points are not independent.
Source: Efron, The jackknife, the bootstrap and other resampling plans (1982), chapter 3.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.stats import mean_interval

__all__ = ["FEWEST", "Border", "fit", "has_law"]

BLOCKS = 8  # parts of the border for the jackknife
FEWEST = 2 * BLOCKS  # smallest number of points for a fit


@dataclasses.dataclass(frozen=True)
class Border:
    """A fitted border.

    ``exponent`` p with its 95% ``interval``, ``factor`` c, ``spread`` (root-mean-square distance of the points from the law, as a
    factor), the number of ``points``, and the ``step`` between the two cells around each of them (root mean square, as a factor),
    to which the factor is known at best.
    """

    exponent: float
    interval: tuple[float, float]
    factor: float
    spread: float
    points: int
    step: float


def has_law(border: Mapping[str, Any] | None) -> bool:
    """Whether a border, as stored in JSON with null for non-finite numbers, has a power law with a known exponent."""
    return border is not None and None not in (border["exponent"], border["factor"], *border["interval"])


def fit(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], step: float) -> Border:
    """Fit the principal axis of points (ln x, ln y); the slope's interval is from the jackknife over eight consecutive parts.

    ``step``: the distance of the cells around a point, as a factor.
    """
    slope, offset, away, order = _axis(x, y)
    parts = np.array_split(order, BLOCKS)
    angle = math.atan(slope)
    turned = []
    for part in parts:
        keep = np.setdiff1d(order, part)
        turn = math.atan(_axis(x[keep], y[keep])[0]) - angle
        turned.append((turn + math.pi / 2) % math.pi - math.pi / 2)
    pseudo = angle - (BLOCKS - 1) * np.array(turned)
    _, *ends = (float(v) for v in mean_interval(xr.DataArray(pseudo, dims="part"), "part"))
    low, high = (math.copysign(math.inf, a) if abs(a) >= math.pi / 2 else math.tan(a) for a in ends)
    return Border(slope, (low, high), math.exp(offset), math.exp(away), x.size, step)


def _axis(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[float, float, float, np.ndarray[Any, Any]]:
    """Slope and offset of the principal axis, the points' root-mean-square distance from it, and their order along it."""
    points = np.stack([x - x.mean(), y - y.mean()], 1)
    _, sizes, axes = np.linalg.svd(points, full_matrices=False)
    along = axes[0]
    order = np.argsort(points @ along)
    away = float(sizes[1]) / x.size**0.5
    if not abs(along[0]) > 1e-12:
        return math.inf, math.nan, away, order
    slope = float(along[1] / along[0])
    return slope, float(y.mean() - slope * x.mean()), away, order
