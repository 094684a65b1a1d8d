"""The data that a study was judged on, kept with it where they are small, so that a changed judge costs no run.

A file ``ID.npz`` next to the study: the variables of the main runs and of each control as arrays, and an index of their names, axes
and attributes. Arrays keep their dtypes; what NumPy cannot write without pickle is not kept.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

__all__ = ["LARGEST", "pack", "unpack"]

LARGEST = 200_000  # bytes of a file


def pack(data: xr.Dataset, controls: Mapping[str, xr.Dataset]) -> bytes | None:
    """A file with the data; None where it would be larger than :data:`LARGEST`, or cannot be written."""
    index, arrays = list[Any](), dict[str, Any]()
    for name, ds in ((None, data), *controls.items()):
        variables = list[Any]()
        for label, variable in ds.variables.items():
            array = f"{len(index)}.{len(variables)}"
            arrays[array] = variable.values
            variables.append([label, variable.dims, label in ds.coords, variable.attrs, array])
        index.append([name, ds.attrs, variables])
    buffer = io.BytesIO()
    try:
        if any(array.dtype.hasobject for array in arrays.values()):
            return None
        np.savez_compressed(buffer, index=np.array(json.dumps(index)), **arrays)
    except (TypeError, ValueError):  # an attribute that is no JSON
        return None
    return buffer.getvalue() if buffer.tell() <= LARGEST else None


def unpack(content: bytes) -> tuple[xr.Dataset, dict[str, xr.Dataset]] | None:
    """The data and those of the controls; None where the file is damaged."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            read = {name: _dataset(attrs, variables, file) for name, attrs, variables in json.loads(str(file["index"]))}
        return read.pop(None), read
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None


def _dataset(attrs: Any, variables: Any, file: Any) -> xr.Dataset:
    found: dict[bool, dict[str, xr.Variable]] = {True: {}, False: {}}
    for label, dims, is_coordinate, own, array in variables:
        found[is_coordinate][label] = xr.Variable(dims, file[array], own)
    return xr.Dataset(found[False], found[True], attrs)
