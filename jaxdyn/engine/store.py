"""Stored results: one netCDF shard per chunk, content-addressed, written atomically, checked on reading.

A shard's file name carries the chunk's identity and the checksum of its bytes, so that one ``rename`` makes a chunk done. The
program and the chunk stand in its content as well: a shard that was moved or renamed is not taken for another's.
Layout of an output folder: ``jaxdyn.json`` (what the folder is), ``shards/<program>/<chunk>.<sha256>.nc``,
and what a verification adds: ``conclusions/<claim>.gz``, ``result.json``, ``figures.json.gz``, ``index.html``.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from filelock import FileLock, Timeout

from jaxdyn.engine.chunk import UNSEEN, Chunk, Result
from jaxdyn.engine.setting import one_line
from jaxdyn.errors import StoreError, UsageError

__all__ = ["atomic_write", "check_writable", "open_folder", "read_shard", "stored_runs", "whole_path", "write_shard"]

MARKER, FORMAT = "jaxdyn.json", 1
LOCK, OWNER = ".lock", ".lock-owner"
LARGE = 4096  # bytes of an array from which on it is compressed; a smaller one would grow
PACKING = {"zlib": True, "shuffle": True, "complevel": 1}  # lossless; higher levels take longer and save 3% more
BLOCK = 1 << 25  # bytes that are packed at a time: blocks as small as HDF5 would choose take a fifth more
SHARD = re.compile(r"(?P<chunk>[0-9a-f]{20})\.(?P<checksum>[0-9a-f]{64})\.nc")


@contextlib.contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Turn an operating system's refusal into one sentence."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write to {path}: {error.strerror or error}; choose another output folder or free some space"
        ) from error


def atomic_write(path: Path, content: bytes | str) -> None:
    """Write a file so that it is either the old one or the whole new one, also after a crash."""
    data = content.encode() if isinstance(content, str) else content
    with _plain_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".tmp-{secrets.token_hex(8)}"
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def open_folder(out: str | Path, purpose: str) -> Iterator[Path]:
    """Hold an output folder for one process; make it if it is new.

    Args:
        out: the folder.
        purpose: what it is for, e.g. ``"verify"`` or ``"sweep of module:trial"``; a folder of another purpose is refused.

    Returns:
        Its whole path: chunks may run where another folder is the working directory.

    Raises:
        UsageError: no path.
        StoreError: not a folder of this purpose, not empty and not ours, not writable, or in use by another process.
    """
    path = whole_path(out)
    with _plain_errors(path):
        if path.exists() and not path.is_dir():
            raise StoreError(f"{path} is a file; an output folder is needed")
        path.mkdir(parents=True, exist_ok=True)
        present = [entry.name for entry in path.iterdir()]
    marker = path / MARKER
    if marker.exists():
        _check_marker(marker, purpose)
    elif any(name not in (LOCK, OWNER) and not name.startswith(".tmp-") for name in present):
        raise StoreError(f"{path} holds files that are not jaxdyn's; choose a new or empty output folder")
    with _locked(path):
        if not marker.exists():
            atomic_write(marker, json.dumps({"format": FORMAT, "purpose": purpose}))
        _clear_leftovers(path)
        yield path


def whole_path(out: Any) -> Path:
    """The whole path of an output folder, given as a text or a ``Path``.

    Raises:
        UsageError: anything else, an empty text, or one with characters that no file's name has.
    """
    try:
        encoded = os.fsencode(out) if isinstance(out, str | Path) else b""
    except UnicodeEncodeError:
        encoded = b""
    if not encoded or b"\0" in encoded:
        raise UsageError(f"out={one_line(out)} is not allowed: out is the path of a folder")
    path = Path(out)
    with _plain_errors(path):
        return path.absolute()


def _clear_leftovers(path: Path) -> None:
    """Remove what a killed run left, and shards that only the call that wrote them could use."""
    for leftover in (*path.glob(".tmp-*"), *path.glob("conclusions/.tmp-*"), *path.glob("shards/*/.tmp-*")):
        with contextlib.suppress(OSError):
            leftover.unlink()
    for shards in path.glob(f"shards/{UNSEEN}*"):
        shutil.rmtree(shards, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a folder's lock; its holder is named in a second file, since a locked file cannot be read on some systems."""
    lock, owner = FileLock(path / LOCK), path / OWNER
    with _plain_errors(path):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            name = "unknown"
            with contextlib.suppress(OSError):
                name = owner.read_text().strip() or name
            raise StoreError(f"{path} is in use by process {name}; wait until it ends or choose another output folder") from None
    try:
        atomic_write(owner, str(os.getpid()))
        yield
    finally:
        lock.release()


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written later, after hours of work.

    Raises:
        StoreError: the path is a folder, or its folder cannot be made or written to.
    """
    if path.is_dir():
        raise StoreError(f"cannot write to {path}: Is a directory; give the path of a file")
    probe = path.parent / f".tmp-{secrets.token_hex(8)}"
    atomic_write(probe, "")
    probe.unlink(missing_ok=True)


def _check_marker(marker: Path, purpose: str) -> None:
    try:
        marker_facts = json.loads(marker.read_text())
        format_, own_purpose = marker_facts["format"], marker_facts["purpose"]
    except (ValueError, KeyError, TypeError, OSError):
        raise StoreError(f"{marker} is damaged; choose another output folder, or remove this one") from None
    if format_ != FORMAT:
        raise StoreError(
            f"{marker.parent} was written in format {format_}, this version writes format {FORMAT}; choose another output folder"
        )
    if own_purpose != purpose:
        raise StoreError(
            f"{marker.parent} holds the results of another job ({own_purpose}, not {purpose}); choose another output folder"
        )


def _folder(store: str | Path | None, program_id: str) -> Path:
    assert store is not None, "only chunks with a store are written"
    return Path(store) / "shards" / program_id


def _packing(variable: xr.DataArray) -> dict[str, Any]:
    """How an array is packed: as a whole, or so many of its rows at a time as a block holds."""
    rows, *rest = variable.shape
    return {**PACKING, "chunksizes": (max(1, min(rows, rows * BLOCK // variable.nbytes)), *rest)}


def write_shard(chunk: Chunk, result: Result, facts: dict[str, Any]) -> Path:
    """Write one finished chunk: temporary file in the same folder, fsync, rename."""
    variables = {name: (("seed", "cell", *result.dims[name]), array) for name, array in result.arrays.items()}
    ds = xr.Dataset(variables, coords={"seed": np.asarray(chunk.seeds, np.int64)})
    ds.attrs = {
        "cells": json.dumps(chunk.cells),
        "coords": json.dumps(result.coords),
        "facts": json.dumps(facts, default=str),
        "program": chunk.program_id,
        "chunk": chunk.identity(),
        "zipped": int(result.zipped),
    }
    packed = {name: _packing(variable) for name, variable in ds.data_vars.items() if variable.nbytes >= LARGE}
    buffer = io.BytesIO()  # in memory first: the HDF5 library does not survive a disk that fills up
    with contextlib.closing(xr.backends.H5NetCDFStore.open(buffer, mode="w", lock=False)) as file:  # the buffer is ours alone
        ds.dump_to_store(file, encoding=packed)
    data = buffer.getvalue()
    target = _folder(chunk.store, chunk.program_id) / f"{chunk.identity()}.{hashlib.sha256(data).hexdigest()}.nc"
    atomic_write(target, data)
    return target


def read_shard(path: Path) -> tuple[list[tuple[Any, ...]], Result]:
    """The cells and the arrays of a shard.

    Raises:
        StoreError: the file cannot be read, its bytes are not those that were written, or it is the shard of another program or
            chunk than its folder and its name say.
    """
    cure = "remove it to have its runs computed again"
    name = SHARD.fullmatch(path.name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}; {cure}") from error
    if name is None or hashlib.sha256(data).hexdigest() != name["checksum"]:
        raise StoreError(f"{path} is damaged: its bytes do not match its checksum; {cure}")
    try:
        ds = xr.load_dataset(io.BytesIO(data), engine="h5netcdf", decode_times=False)
        own = ds.attrs["program"], ds.attrs["chunk"]
    except (OSError, ValueError, KeyError) as error:
        raise StoreError(f"{path} is damaged: it is not a shard; {cure}") from error
    if own != (path.parent.name, name["chunk"]):
        raise StoreError(f"{path} was moved or renamed: it holds runs of {own[0]}/{own[1]}; move it back, or {cure}")
    return _content(ds)


def _content(ds: xr.Dataset) -> tuple[list[tuple[Any, ...]], Result]:
    """The cells and the arrays that :func:`write_shard` put into a shard."""
    cells = [tuple(cell) for cell in json.loads(ds.attrs["cells"])]
    coords = {axis: tuple(values) for axis, values in json.loads(ds.attrs["coords"]).items()}
    arrays = {str(name): var.values for name, var in ds.data_vars.items()}
    dims = {str(name): tuple(map(str, var.dims[2:])) for name, var in ds.data_vars.items()}
    facts = json.loads(ds.attrs["facts"]) | {"seeds": ds.seed.values.tolist()}
    return cells, Result(arrays, dims, coords, facts, bool(ds.attrs.get("zipped", 0)))


def stored_runs(store: str | Path, program_id: str) -> list[Path]:
    """All shards of a program: what has the name of one; other files and folders are not ours."""
    return sorted(p for p in _folder(store, program_id).glob("*.nc") if SHARD.fullmatch(p.name))
