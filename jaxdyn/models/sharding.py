"""A model on several devices, by JAX's own means: each matrix is cut along one axis, over the mesh's axis ``model``.

Queries, keys, values and the MLP's units are cut by columns, what follows them by rows, so that a block needs one sum over the
devices after its attention and one after its MLP; embedding and read-out are cut by tokens. What the number of devices does not
divide is on all of them. Source: arXiv:1909.08053, section 3.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Shaped

from jaxdyn.errors import UsageError

__all__ = ["AXIS", "mesh", "placer", "spec"]

AXIS = "model"
COLUMNS, ROWS, TOKENS = ("q", "k", "v", "gate", "up"), ("o", "down"), ("embed", "head")


def mesh(count: int | None = None) -> Mesh:
    """A mesh of the first devices, by default of all, along the axis ``model``."""
    devices = jax.devices()[:count]
    return jax.make_mesh((len(devices),), (AXIS,), axis_types=(jax.sharding.AxisType.Auto,), devices=devices)


def spec(path: str, size: tuple[int, ...], devices: int) -> PartitionSpec:
    """How the parameter of this path and size is cut."""
    name = path.removeprefix("blocks/")
    axis = None
    if name in TOKENS:
        axis = 0
    elif name in ROWS:
        axis = len(size) - 2
    elif name.removesuffix("_bias") in COLUMNS:
        axis = len(size) - 1
    if axis is None or size[axis] % devices:
        return PartitionSpec()
    return PartitionSpec(*(AXIS if i == axis else None for i in range(len(size))))


def placer(over: Mesh | None) -> Any:
    """The function that puts a parameter on its devices; without a mesh on JAX's default device.

    Raises:
        UsageError: for a mesh without the axis ``model``.
    """
    if over is None:
        return lambda path, array: jax.device_put(array)
    if AXIS not in over.axis_names:
        raise UsageError(f"mesh with the axes {', '.join(map(str, over.axis_names))} is not allowed: it has an axis called {AXIS}")
    count = over.shape[AXIS]

    def place(path: str, array: Shaped[np.ndarray, "..."]) -> jax.Array:
        return jax.device_put(array, NamedSharding(over, spec(path, array.shape, count)))

    return place
