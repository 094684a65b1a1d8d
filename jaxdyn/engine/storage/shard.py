"""Shards: one netCDF file per chunk, content-addressed, written atomically, checked on reading.

A shard's file name contains the chunk's identity and the checksum of its bytes, so that one ``rename`` completes a chunk. The
program and the chunk are named in its content as well, so that a shard that was moved or renamed is not taken for another's.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.engine.storage.arrays import Arrays
from jaxdyn.engine.storage.seeds import Seeds, seed_array, seeds_of
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import StoreError, UsageError

__all__ = ["Stored", "mark_used", "open_shard", "read_shard", "stored_shards", "write_shard"]

CURE = "remove it to have its runs computed again"
LARGE = 4096  # bytes from which arrays are compressed; smaller ones would grow
PACKING = {"zlib": True, "shuffle": True, "complevel": 1}  # lossless; higher levels take longer and save 3% more
BLOCK = 1 << 25  # bytes that are packed at a time: the smaller blocks that HDF5 chooses take a fifth more
SAMPLE, WORTH = 2**14, 0.8  # numbers of a sample, of which there are at most five; share of the bytes that packing may leave
SHARD = re.compile(r"(?P<chunk>[0-9a-f]{20})\.(?P<checksum>[0-9a-f]{64})\.nc")


def _folder(store: str | Path, program_id: str) -> Path:
    return Path(store) / "shards" / program_id


def _packing(variable: xr.DataArray) -> dict[str, Any]:
    """Encoding of an array: compressed as a whole, or in blocks of rows; as it is where that would save little."""
    if variable.nbytes < LARGE or not _packs_well(variable.values):
        return {}
    rows, *rest = variable.shape
    return {**PACKING, "chunksizes": (max(1, min(rows, rows * BLOCK // variable.nbytes)), *rest)}


def _packs_well(array: np.ndarray[Any, Any]) -> bool:
    """Whether samples of an array lose at least a fifth: the digits of random numbers take long to pack, and stay."""
    flat, step = array.reshape(-1), max(1, array.size // 4)
    samples = [flat[start : start + SAMPLE] for start in range(0, flat.size, step)]
    shuffled = [np.frombuffer(one.tobytes(), np.uint8).reshape(-1, array.itemsize).T.tobytes() for one in samples]
    return sum(len(zlib.compress(one, 1)) for one in shuffled) < WORTH * sum(map(len, shuffled))


def write_shard(
    store: str | Path, program_id: str, chunk_id: str, cells: Sequence[tuple[Any, ...]], seeds: Seeds, result: Arrays
) -> Path:
    """Write one finished chunk: temporary file in the same folder, fsync, rename.

    Args:
        store: the output folder.
        program_id: identity of the program.
        chunk_id: identity of the chunk.
        cells: values of the swept fields.
        seeds: of the runs.
        result: the arrays, and facts about them.
    """
    variables = {name: (("seed", "cell", *result.dims[name]), array) for name, array in result.arrays.items()}
    ds = xr.Dataset(variables, coords={"seed": seed_array(seeds, np.int64)})
    ds.attrs = {
        "cells": json.dumps(cells),
        "coords": json.dumps(result.coords),
        "facts": json.dumps(result.facts, default=str),
        "program": program_id,
        "chunk": chunk_id,
        "zipped": int(result.zipped),
    }
    packed = {name: _packing(variable) for name, variable in ds.data_vars.items()}
    buffer = io.BytesIO()  # in memory first: the HDF5 library does not survive a disk that fills up
    with contextlib.closing(xr.backends.H5NetCDFStore.open(buffer, mode="w", lock=False)) as file:  # used here only
        ds.dump_to_store(file, encoding=packed)
    data = buffer.getvalue()
    target = _folder(store, program_id) / f"{chunk_id}.{hashlib.sha256(data).hexdigest()}.nc"
    atomic_write(target, data)
    return target


def read_shard(path: Path) -> tuple[list[tuple[Any, ...]], Arrays]:
    """The cells and the arrays of a shard.

    Raises:
        StoreError: the file cannot be read or is damaged, or it belongs to another program or chunk than its folder and name
            say.
    """
    with _opened(path, io.BytesIO(_whole(path))) as ds:
        return _content(ds, {str(name): var.values for name, var in ds.data_vars.items()})


def open_shard(path: Path) -> tuple[list[tuple[Any, ...]], Arrays]:
    """The cells and the arrays of a shard, each read, and the file checked, on demand; errors as for :func:`read_shard`."""
    with _opened(path, path) as ds:
        return _content(ds, Stored(path))


class Stored(Mapping[str, "np.ndarray[Any, Any]"]):
    """The arrays of a shard, each read anew whenever it is asked for."""

    def __init__(self, path: Path) -> None:
        """The arrays of the shard at this path."""
        self.path = path

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        with _opened(self.path, io.BytesIO(_whole(self.path))) as ds:
            array: np.ndarray[Any, Any] = ds[name].values
        return array

    def __iter__(self) -> Iterator[str]:
        with _opened(self.path, self.path) as ds:
            return iter(list(map(str, ds.data_vars)))

    def __len__(self) -> int:
        return len(list(iter(self)))


def _whole(path: Path) -> bytes:
    """The bytes of a shard, checked against its checksum."""
    name = SHARD.fullmatch(path.name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}; {CURE}") from error
    if name is None or hashlib.sha256(data).hexdigest() != name["checksum"]:
        raise StoreError(f"{path} is damaged: its bytes do not match its checksum; {CURE}")
    return data


@contextlib.contextmanager
def _opened(path: Path, file: Path | io.BytesIO) -> Iterator[xr.Dataset]:
    """Open a shard, if it belongs to the program and chunk of its path."""
    name = SHARD.fullmatch(path.name)
    try:
        with xr.open_dataset(file, engine="h5netcdf", decode_times=False, cache=False) as ds:
            own = ds.attrs["program"], ds.attrs["chunk"]
            if name is None or own != (path.parent.name, name["chunk"]):
                raise StoreError(f"{path} was moved or renamed: it holds runs of {own[0]}/{own[1]}; move it back, or {CURE}")
            yield ds
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        if isinstance(error, UsageError):
            raise
        raise StoreError(f"{path} is damaged: it is not a shard; {CURE}") from error


def _content(ds: xr.Dataset, arrays: Mapping[str, np.ndarray[Any, Any]]) -> tuple[list[tuple[Any, ...]], Arrays]:
    """The cells and the arrays of an open shard, as :func:`write_shard` got them."""
    cells = [tuple(cell) for cell in json.loads(ds.attrs["cells"])]
    coords = {axis: tuple(values) for axis, values in json.loads(ds.attrs["coords"]).items()}
    dims = {str(name): tuple(map(str, var.dims[2:])) for name, var in ds.data_vars.items()}
    forms = {str(name): (var.dtype, var.shape[2:]) for name, var in ds.data_vars.items()}
    facts = json.loads(ds.attrs["facts"]) | {"seeds": seeds_of(ds.seed.values)}
    return cells, Arrays(arrays, dims, coords, facts, bool(ds.attrs.get("zipped", 0)), forms)


def mark_used(path: Path) -> None:
    """Set a shard's time of last access to now, which most systems do not do by themselves."""
    with contextlib.suppress(OSError):
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))


def stored_shards(store: str | Path, program_id: str) -> list[Path]:
    """All shards of a program, recognised by their names; other files are ignored."""
    return sorted(p for p in _folder(store, program_id).glob("*.nc") if SHARD.fullmatch(p.name))
