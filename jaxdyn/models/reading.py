"""From the tensors of a checkpoint to the decoder's parameters: found, checked, cast, and stacked by layer."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree, Shaped

from jaxdyn.errors import UsageError
from jaxdyn.models.archive import Archive
from jaxdyn.models.families import Family
from jaxdyn.models.tensor_slice import TensorSlice, extracted, sizes
from jaxdyn.nn import Transformer

__all__ = ["located", "parameters"]

ALIGNMENT = 64  # bytes


def located(shape: Transformer, family: Family, archive: Archive) -> dict[str, TensorSlice]:
    """Where each parameter stands in this checkpoint, by its path in ours. Only sizes are looked at.

    Raises:
        UsageError: for tensors that are missing, of another size, or of no use to this network.
    """
    bare = not any(name.startswith(family.prefix) for name in archive.entries)
    slices = family.slices(shape)
    if bare:
        slices = {ours: at._replace(name=at.name.removeprefix(family.prefix)) for ours, at in slices.items()}
    _read_out(slices, family, archive)
    used: set[str] = set()
    for ours, at in slices.items():
        for name in _names(shape, ours, at):
            archive.check(name, at.size)
            used.add(name)
    heads = ("lm_head.weight", "embed_out.weight") if shape.tied else ()  # a copy of the embedding
    others = sorted(name for name in archive.entries if name not in used and name not in heads and not family.is_buffer(name))
    if others:
        raise UsageError(
            f"{archive.entries[others[0]].file}: the model's configuration has no place for the tensor {others[0]}"
            + (f" and {len(others) - 1} others" if len(others) > 1 else "")
        )
    for name in heads:
        _refuse_other_head(archive, name, slices["embed"])
    return slices


def _read_out(slices: dict[str, TensorSlice], family: Family, archive: Archive) -> None:
    """Look for the read-out, or the embedding that is one, under all its names: of two equal tensors a file may hold either."""
    ours = "head" if "head" in slices else "embed"
    if slices[ours].name not in archive.entries:
        there = [name for name in family.heads if name in archive.entries]
        slices[ours] = slices[ours]._replace(name=there[0] if there else slices[ours].name)


def _refuse_other_head(archive: Archive, name: str, embed: TensorSlice) -> None:
    """Refuse a read-out that is not the embedding, though the configuration says so."""
    if name in archive.entries:
        head, table = archive.read(name, embed.size), archive.read(embed.name, embed.size)
        if not np.array_equal(head, table):
            raise UsageError(f"{archive.entries[name].file}: {name} differs from the embedding, but tie_word_embeddings=True")


def _names(shape: Transformer, ours: str, at: TensorSlice) -> list[str]:
    """Names of a parameter's tensors: one for each layer, or one."""
    layers = range(shape.layers) if ours.startswith("blocks/") else range(1)
    return [at.name.replace("{i}", str(i)) for i in layers]


def parameters(
    shape: Transformer, slices: Mapping[str, TensorSlice], archive: Archive, place: Callable[[str, Shaped[np.ndarray, "..."]], Any]
) -> PyTree:
    """The decoder's parameters; at any time one of them is in memory twice, if devices cannot use its bytes as they are.

    A thread for each processor reads tensors: most of the time NumPy calculates and copies without the interpreter.

    Args:
        shape: the decoder.
        slices: where its parameters stand, from :func:`located`.
        archive: the tensors.
        place: ``place(path, array)`` puts an array on its devices.

    Raises:
        UsageError: as of :meth:`Archive.read`, and for numbers that are too large for the decoder's dtype.
    """
    params: dict[str, Any] = {"blocks": {}}
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for path, size in sizes(shape).items():
            at, names = slices[path], _names(shape, path, slices[path])
            array = _aligned((len(names), *size), jnp.dtype(shape.dtype))

            def fill(part: Shaped[np.ndarray, "..."], name: str, at: TensorSlice = at) -> None:
                found = extracted(at, archive.read(name, at.size), part.shape)
                with np.errstate(over="ignore"):
                    part[...] = found
                if jnp.finfo(found.dtype).max > jnp.finfo(part.dtype).max and not np.isfinite(part).all():
                    file = archive.entries[name].file
                    raise UsageError(f"{file}: tensor {name} has numbers that are too large for {part.dtype}: choose another dtype")

            list(threads.map(fill, array, names))
            if path.startswith("blocks/"):
                params["blocks"][path.removeprefix("blocks/")] = place(path, array)
            else:
                params[path] = place(path, array[0])
    return params


def _aligned(size: tuple[int, ...], dtype: np.dtype) -> Shaped[np.ndarray, "..."]:
    """An array that begins where JAX's CPU backend wants arrays to begin; others it would copy."""
    count = math.prod(size) * dtype.itemsize
    room = np.empty(count + ALIGNMENT, np.uint8)
    first = -room.ctypes.data % ALIGNMENT
    return room[first : first + count].view(dtype).reshape(size)
