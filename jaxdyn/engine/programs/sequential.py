"""Chunks whose runs are made one after another; since their number is traced, chunks of all shapes share one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["Share", "distribute", "gather", "make_block", "room_for"]

Numbers: TypeAlias = "np.ndarray[Any, Any]"
Share: TypeAlias = "tuple[dict[str, Numbers], Numbers, Numbers]"  # swept values and seeds [device, room], counts [device, 2]
ROOM = 2**26  # bytes of results for which a program has room, unless a chunk needs more


def room_for(shapes: Any, most: int) -> int:
    """Number of runs for which a program has room: that of the largest chunk, unless the results of a run are large."""
    size: int = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(shapes))
    return max(1, min(most, ROOM // max(1, size)))


def make_block(one: Callable[[Any, Any, Any], Any], shapes: Any, room: int) -> Callable[[Any, Any, Any, Any], Any]:
    """The function that runs a device's share, cell after cell for each seed; results fill the first of ``room`` slots.

    Args:
        one: ``(swept values, seed, shared) -> results`` of one run; the shared arrays are an argument of the block, too.
        shapes: of its results.
        room: number of slots, at least the number of runs.
    """

    def block(swept: Any, seeds: Any, counts: Any, shared: Any) -> Any:
        cells, numbers, (n_cells, n_seeds) = {k: v[0] for k, v in swept.items()}, seeds[0], counts[0]

        def run(i: Any, j: Any, done: Any) -> Any:
            result = one({k: v[j] for k, v in cells.items()}, numbers[i], shared)
            place = i * n_cells + j
            return jax.tree.map(lambda out, x: jax.lax.dynamic_update_index_in_dim(out, x, place, 0), done, result)

        def of_seed(i: Any, done: Any) -> Any:
            return jax.lax.fori_loop(0, n_cells, lambda j, done: run(i, j, done), done)

        empty = jax.tree.map(lambda x: jnp.zeros((room, *x.shape), x.dtype), shapes)
        return jax.tree.map(lambda x: x[None], jax.lax.fori_loop(0, n_seeds, of_seed, empty))

    return block


def distribute(swept: Mapping[str, Numbers], seeds: Numbers, n_cells: int, devices: int, room: int) -> Share:
    """Every device's share of a chunk: all cells with some seeds or, if there are more cells than seeds, some cells with all seeds.

    Args:
        swept: values of each field, [cell].
        seeds: of the chunk.
        n_cells: number of cells, which ``swept`` does not give if no field is swept.
        devices: number of devices.
        room: number of slots of the program.
    """
    by_seed = len(seeds) >= n_cells
    cell_parts = np.array_split(np.arange(n_cells), 1 if by_seed else devices)
    seed_parts = np.array_split(np.arange(len(seeds)), devices if by_seed else 1)
    parts = [(c, s) for s in seed_parts for c in cell_parts]

    def filled(values: Numbers, chosen: list[Numbers]) -> Numbers:
        return np.stack([np.resize(values[part] if len(part) else values[:1], room) for part in chosen])

    of_cells = {k: filled(v, [c for c, _ in parts]) for k, v in swept.items()}
    return of_cells, filled(seeds, [s for _, s in parts]), np.array([(len(c), len(s)) for c, s in parts], np.int32)


def gather(results: Any, counts: Numbers, n_seeds: int) -> Any:
    """The results of all devices as arrays [seed, cell, ...]."""
    by_seed = counts[:, 1].sum() == n_seeds  # else all devices have all seeds

    def joined(leaf: Numbers) -> Numbers:
        parts = [own[: c * s].reshape(s, c, *own.shape[1:]) for own, (c, s) in zip(leaf, counts, strict=True)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, 0 if by_seed else 1)

    return jax.tree.map(lambda leaf: joined(np.asarray(leaf)), results)
