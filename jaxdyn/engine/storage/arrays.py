"""Arrays of runs with the names of their axes, as they come from a device and as they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Arrays"]


@dataclass(frozen=True)
class Arrays:
    """Arrays of a chunk, their axis names and coordinates, and its cost.

    Leading axes: seed and cell; if ``zipped``, the run and an axis of length 1. Arrays of a shard may be read on demand
    (:class:`jaxdyn.engine.storage.shard.Stored`).
    """

    arrays: Mapping[str, np.ndarray[Any, Any]]
    dims: dict[str, tuple[str, ...]]
    coords: dict[str, tuple[Any, ...]]
    facts: dict[str, Any] = field(default_factory=dict)
    zipped: bool = False
    forms: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]] = field(default_factory=dict)  # of arrays that are not read yet

    def form(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """The dtype of an array, and its shape beyond the leading axes."""
        return self.forms.get(name) or (self.arrays[name].dtype, self.arrays[name].shape[2:])
