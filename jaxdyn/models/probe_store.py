"""What a probe has measured, on disk: one netCDF file for each instrument and checkpoint, written whole, named by its content.

A file's name holds what it depends on (weights, tokens, the instruments' own source, their functions as they were loaded, and
functions of one's own in the network) and the checksum of its bytes: what was measured of another text or by other code is not
taken for this one's, and damage is noticed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Int

from jaxdyn.engine.base.reference import edited
from jaxdyn.engine.judging.digest import content
from jaxdyn.engine.programs.chunk import flags, switches
from jaxdyn.engine.programs.direct import versions_of
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.errors import StoreError
from jaxdyn.instruments import registry
from jaxdyn.nn import choices

if TYPE_CHECKING:
    from jaxdyn.instruments import Instrument
    from jaxdyn.models.loading import Model
    from jaxdyn.nn import Transformer

__all__ = ["identities", "read", "write", "code_of_instruments"]

SKIPPED = "skipped"  # attribute of a file that says why there is nothing in it
OF = "measured_as"  # attribute of a file: what its name has in front of the checksum
CURE = "remove it to have it measured again"
SOURCES = ("nn", "instruments", "metrics.py", "linalg.py", "sampling.py", "stats.py", "models/tokenizer.py", "models/pieces.py")
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "xarray", "tokenizers")


@functools.cache
def code_of_instruments() -> bytes:
    """A digest of the source that all instruments use."""
    package = Path(__file__).parents[1]
    files = [f for name in SOURCES for f in ((package / name).rglob("*.py") if (package / name).is_dir() else [package / name])]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(str(file.relative_to(package)).encode() + file.read_bytes() + edited(file).encode())
    return digest.digest()


@functools.cache
def _text(file: str) -> bytes:
    """A module's source, as it was when the first model was measured."""
    return Path(file).read_bytes()


def identities(model: Model, pieces: Int[np.ndarray, "piece n"], chosen: Sequence[Instrument]) -> dict[str, str]:
    """By instrument a digest of everything that its measurements depend on, but for its name.

    Its module, options of JAX and of compilers, versions of libraries and the device are among it, as for stored runs.
    """
    digest = hashlib.blake2b(code_of_instruments(), digest_size=10)
    digest.update(repr((switches(), flags(), versions_of(LIBRARIES), jax.devices()[0].device_kind)).encode())
    for field, name in _own_kinds(model.shape):  # a name says nothing of what the function does
        digest.update((content(choices.own(field, name)) or secrets.token_hex(8)).encode())
    digest.update(repr(model.shape).encode() + repr(pieces.shape).encode() + np.ascontiguousarray(pieces).tobytes())
    if model.tokenizer is not None:
        digest.update(model.tokenizer.inner.to_str().encode())
    for path, leaf in jax.tree_util.tree_leaves_with_path(model.params):
        digest.update(jax.tree_util.keystr(path).encode())
        digest.update(np.ascontiguousarray(jax.device_get(leaf)).view(np.uint8).data)
    homes, found = registry.homes(), {}
    for one in chosen:
        own = digest.copy()
        if one.name in homes:
            own.update(_text(str(homes[one.name].__file__)))
        own.update((content(one) or secrets.token_hex(8)).encode())  # what is not known is measured again
        found[one.name] = own.hexdigest()
    return found


def _own_kinds(shape: Transformer) -> list[tuple[str, str]]:
    """Fields of a network that name functions of one's own, with the names."""
    kinds = [(f.name, kind) for f in dataclasses.fields(shape) for kind in choices.names(getattr(shape, f.name))]
    return [(field, kind) for field, kind in kinds if isinstance(kind, str) and ":" in kind]


def write(folder: Path, name: str, which: str, ds: xr.Dataset | str, seconds: float) -> None:
    """Write an instrument's Dataset, or the sentence that says why there is none."""
    ds = xr.Dataset(attrs={SKIPPED: ds}) if isinstance(ds, str) else ds
    data = bytes(ds.assign_attrs({"seconds": seconds, OF: f"{name}.{which}"}).to_netcdf(engine="h5netcdf"))
    atomic_write(folder / f"{name}.{which}.{hashlib.sha256(data).hexdigest()}.nc", data)


def read(folder: Path, name: str, which: str) -> tuple[xr.Dataset | str, float] | None:
    """A stored Dataset or sentence, and how many seconds it took; None: not measured yet.

    Raises:
        StoreError: for a file that cannot be read, whose bytes are not those that were written, or that had another name.
    """
    for file in sorted(folder.glob(f"{name}.{which}.*.nc")):
        try:
            data = file.read_bytes()
        except OSError as error:
            raise StoreError(f"{file} cannot be read: {error.strerror or error}; {CURE}") from error
        if hashlib.sha256(data).hexdigest() != file.name.split(".")[-2]:
            raise StoreError(f"{file} is damaged: its bytes do not match its checksum; {CURE}")
        ds = xr.load_dataset(io.BytesIO(data), engine="h5netcdf")
        attrs: dict[Any, Any] = dict(ds.attrs)
        seconds, of = float(attrs.pop("seconds")), attrs.pop(OF, None)
        if of != f"{name}.{which}":
            raise StoreError(f"{file} was renamed: it holds what was measured as {of}; {CURE}")
        ds.attrs = attrs
        return (str(attrs[SKIPPED]) if SKIPPED in attrs else ds), seconds
    return None
