"""Observables, the result of one run: arrays with named axes, checked when they are made.

A sweep puts the observables of all runs into one Dataset, in memory or through netCDF shards. Anything that a Dataset or a shard
cannot represent exactly is refused here, before anything has run. Number formats that NumPy lacks are widened without changing
any value: bfloat16 and floats of 8 bits or fewer become float32, integers of 2 and 4 bits become int8 and uint8.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.errors import UsageError, is_traced, whole
from jaxdyn.status import NAMES, OK

__all__ = ["Named", "Observables", "named", "observables", "refuse_clashes"]

Coordinates: TypeAlias = "tuple[tuple[str, tuple[Any, ...]], ...]"  # ((axis, values), ...): hashable, so static under jit
GROUPS = ("predicted", "measured", "recorded", "assumed")
PREFIXES = ("predicted_", "measured_", "assumed_")
NAMING = "a name begins with a letter or a digit and has printable characters other than '/'"
TAKEN = {"seed": "an axis of the runs", "cell": "an axis of stored runs", "status": "how a run ended", "form": "the axis of forms"}
# names for which ``ds.sel(name=...)`` would not select along an axis
SELECTION = dict.fromkeys(("method", "tolerance", "drop"), "an argument of xarray's sel")
STORED = {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
STORED |= {"float16", "float32", "float64", "complex64", "complex128"}
WIDER = ((jnp.floating, "float32"), (jnp.signedinteger, "int8"), (jnp.unsignedinteger, "uint8"))  # for formats of up to two bytes


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Named:
    """An array with one name per axis."""

    value: Any
    dims: tuple[str, ...] = dataclasses.field(metadata={"static": True})


def named(value: Any, dims: str = "") -> Named:
    """An array with names for its axes: ``named(z, "step token")``.

    Raises:
        UsageError: if the value is not an array, the number of names is not the number of axes, or a name is used twice.
    """
    _refuse_other_kinds("the value", value)
    if not isinstance(dims, str):
        raise UsageError(f'axis names {dims!r} are not allowed: they are one text, such as "step token"')
    item = Named(value, tuple(dims.split()))
    _refuse_axes("an array", item)
    return item


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Observables:
    """The result of one run; built by :func:`observables`."""

    predicted: dict[str, Named]
    measured: dict[str, Named]
    recorded: dict[str, Named]
    assumed: dict[str, Named]
    status: Any
    coords: Coordinates = dataclasses.field(metadata={"static": True})


def observables(
    *,
    predicted: Mapping[str, Any] | None = None,
    measured: Mapping[str, Any] | None = None,
    recorded: Mapping[str, Any] | None = None,
    assumed: Mapping[str, Any] | None = None,
    status: Any = OK,
    coords: Mapping[str, Sequence[Any]] | None = None,
) -> Observables:
    """The observables of one run.

    Args:
        predicted: the theory's quantities, from the theory's own equations. Their axes are among those of their measurements,
            except for one more axis ``form``, whose names are given in ``coords``.
        measured: the network's (or the solver's) quantities, with matching names and axes.
        recorded: further arrays, for figures and reports.
        assumed: scalars that the theorem's assumptions bound; ``assumed_NAME`` in the Dataset.
        status: an int from ``jaxdyn.status``. Runs with non-finite predictions or measurements count as diverged in any case. A
            traced status with an unknown code counts as a failure of the solver.
        coords: coordinates of axes that are known before the run, e.g. ``{"form": ("printed", "derived"), "step": steps}``:
            numbers, words or truth values, one per entry of the axis.

    Scalars are passed as they are, arrays through :func:`named`. All axes with the same name have the same length.

    Raises:
        UsageError: an array without axis names; a prediction without a measurement of the same name, or with an axis that its
            measurement lacks; a name, a kind of value or coordinates that a Dataset or a netCDF file cannot hold; an invalid
            status.
    """
    given = dict(zip(GROUPS, (predicted, measured, recorded, assumed), strict=True))
    groups = {word: _checked_group(word, group) for word, group in given.items()}
    for name, item in groups["predicted"].items():
        _refuse_unmatched(name, item, groups["measured"])
    lengths = _lengths(groups)
    _refuse_labels(groups, lengths)
    fixed = _coordinates(coords, lengths)
    _refuse_unnamed_forms(lengths, dict(fixed))
    return Observables(**groups, status=_status(status), coords=fixed)


def refuse_clashes(observed: Observables, axes: Iterable[str]) -> None:
    """Refuse observables that the axes of a grid would hide.

    Raises:
        UsageError: an array or an axis has the name of an axis of the grid.
    """
    arrays = [(word, name, item) for word in GROUPS for name, item in getattr(observed, word).items()]
    for word, name, item in arrays:
        for own, what in ((_label(word, name), "it"), *((axis, f"its axis {axis!r}") for axis in item.dims)):
            if own in axes:
                raise UsageError(f"{word} {name!r}: {what} has the name of a field that is swept, {own!r}; rename it")


def _label(word: str, name: str) -> str:
    """The array's name in the Dataset."""
    return name if word == "recorded" else f"{word}_{name}"


def _checked_group(word: str, group: Mapping[str, Any] | None) -> dict[str, Named]:
    if not isinstance(group, Mapping | None):
        raise UsageError(f"{word} of type {type(group).__name__} is not allowed: it is a dict of names and their arrays")
    return {name: _checked(word, name, value) for name, value in (group or {}).items()}


def _checked(word: str, name: Any, value: Any) -> Named:
    """One array with its axes, in a format that NumPy and netCDF have."""
    what = f"{word} {name!r}"
    _refuse_name(what, name)
    item = value if isinstance(value, Named) else Named(value, ())
    dtype = _refuse_other_kinds(what, item.value)
    if word == "assumed" and (jnp.ndim(item.value) or jnp.issubdtype(dtype, jnp.complexfloating)):
        raise UsageError(f"{what} has shape {jnp.shape(item.value)} and dtype {dtype}: an assumption bounds one number per run")
    if not isinstance(value, Named) and (axes := jnp.ndim(value)):
        names = " ".join(["axis"] * axes)
        raise UsageError(f'{what} has shape {jnp.shape(value)}: name its axes, jd.named({name}, "{names}")')
    _refuse_axes(what, item)
    if dtype.name in STORED:
        return item
    return Named(jnp.asarray(item.value).astype(_wider(dtype)), item.dims)


def _refuse_name(what: str, name: Any) -> None:
    if not (isinstance(name, str) and name and name[0].isalnum() and name.isprintable() and "/" not in name):
        raise UsageError(f"{what} is not allowed: {NAMING}")


def _refuse_axes(what: str, item: Named) -> None:
    """Refuse axis names that are invalid, reserved or used twice, and a wrong number of names."""
    shape = jnp.shape(item.value)
    if len(item.dims) != len(shape):
        raise UsageError(f"{what} of shape {shape} needs {len(shape)} axis names, got {' '.join(map(str, item.dims))!r}")
    for axis in item.dims:
        _refuse_name(f"the axis {axis!r} of {what}", axis)
        if axis != "form" and (taken := (TAKEN | SELECTION).get(axis)) is not None:
            raise UsageError(f"the axis {axis!r} of {what}: the name is taken by {taken}; rename it")
        if item.dims.count(axis) > 1:
            raise UsageError(f"{what} has two axes called {axis!r}: the axes of an array have different names")


def _refuse_other_kinds(what: str, value: Any) -> np.dtype[Any]:
    """The dtype of a number or an array of numbers or truth values; all other values are refused."""
    if not isinstance(value, jax.Array | np.ndarray | np.generic | bool | int | float | complex):
        hint = "; jnp.stack makes one array of several" if isinstance(value, list | tuple) else ""
        raise UsageError(f"{what} is of type {type(value).__name__}: an observable is a number or an array{hint}")
    dtype: np.dtype[Any] = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    too_large = isinstance(value, int) and dtype == np.uint64  # a whole number of Python beyond int64
    if too_large or (dtype.name not in STORED and _wider(dtype) is None):
        raise UsageError(f"{what} is of dtype {dtype}: an observable holds numbers or truth values of at most 64 bits")
    return dtype


def _wider(dtype: np.dtype[Any]) -> str | None:
    """The wider format for a narrow one that NumPy lacks; None if there is none."""
    return next((wide for kind, wide in WIDER if dtype.itemsize <= 2 and jnp.issubdtype(dtype, kind)), None)


def _refuse_unmatched(name: str, item: Named, measured: Mapping[str, Named]) -> None:
    """Refuse a prediction without a measurement, or one that would broadcast its measurement along another axis."""
    if name not in measured:
        raise UsageError(f"predicted {name!r} has no measured {name!r}; measured are: {', '.join(measured) or 'none'}")
    own = measured[name].dims
    if extra := [axis for axis in item.dims if axis not in own and axis != "form"]:
        raise UsageError(
            f"predicted {name!r} has the axis {extra[0]!r}, which measured {name!r} lacks (its axes: {' '.join(own) or 'none'}): "
            "the axes of a prediction are among those of its measurement, except for `form`"
        )


def _lengths(groups: Mapping[str, Mapping[str, Named]]) -> dict[str, int]:
    """The length of every axis; axes with the same name must have the same length."""
    lengths: dict[str, tuple[int, str]] = {}
    for what, item in ((f"{word} {name!r}", item) for word, group in groups.items() for name, item in group.items()):
        for axis, size in zip(item.dims, jnp.shape(item.value), strict=True):
            first, where = lengths.setdefault(axis, (size, what))
            if first != size:
                raise UsageError(f"the axis {axis!r} has length {first} in {where}, but {size} in {what}; rename one of them")
    return {axis: size for axis, (size, _) in lengths.items()}


def _refuse_labels(groups: Mapping[str, Mapping[str, Named]], axes: Mapping[str, int]) -> None:
    """Refuse names of arrays that already have a meaning in the Dataset."""
    for word, name in ((word, name) for word, group in groups.items() for name in group):
        what, label = f"{word} {name!r}", _label(word, name)
        if label == "status":
            raise UsageError(f"{what}: the name is taken; give status=... to jd.observables")
        if label in TAKEN:
            raise UsageError(f"{what}: the name is taken by {TAKEN[label]}; rename it")
        if label in axes:
            cure = f"; values known before the run are coords={{{label!r}: ...}}" if word == "recorded" else ""
            raise UsageError(f"{what}: the name {label!r} is that of an axis; rename one of them{cure}")
        if word == "recorded" and name.startswith(PREFIXES):
            raise UsageError(f"{what}: names that begin with {', '.join(PREFIXES)} are those of the other arrays; rename it")


def _coordinates(coords: Mapping[str, Sequence[Any]] | None, lengths: Mapping[str, int]) -> Coordinates:
    """Coordinates of axes, as Python numbers and words."""
    if not isinstance(coords, Mapping | None):
        raise UsageError(
            f"coords of type {type(coords).__name__} are not allowed: they are a dict of axes and the values along them"
        )
    return tuple((axis, _along(axis, values, lengths)) for axis, values in (coords or {}).items())


def _along(axis: Any, values: Any, lengths: Mapping[str, int]) -> tuple[Any, ...]:
    """The coordinates of one axis."""
    what = f"coords of {axis!r}"
    if axis not in lengths:
        raise UsageError(f"{what} are not allowed: no array has this axis; the axes are: {', '.join(lengths) or 'none'}")
    try:
        array = np.asarray(values)
    except jax.errors.TracerArrayConversionError:
        raise UsageError(f"{what} are not allowed: they are computed in the run; record them under another name") from None
    except ValueError:  # parts of different lengths
        array = np.asarray(None)
    if array.shape != (lengths[axis],):
        shown = f"have shape {array.shape}" if array.ndim != 1 else f"are {len(array)} values"
        raise UsageError(f"{what} {shown}, but the axis has length {lengths[axis]}: give one value per entry")
    words = array.dtype.kind == "U" and all(isinstance(v, str) and v.isprintable() for v in values)
    real = any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.bool_, jnp.integer, jnp.floating)) and array.dtype.itemsize <= 8
    if not (words or (real and not np.isnan(array.astype(np.float64)).any())):
        raise UsageError(f"{what} are not allowed: they are real numbers (no NaN), printable words, or truth values")
    return tuple(array.tolist())


def _refuse_unnamed_forms(lengths: Mapping[str, int], coords: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse forms without distinct names, by which claims choose one."""
    forms = coords.get("form", ())
    if "form" in lengths and not (forms and all(isinstance(form, str) for form in forms) and len(set(forms)) == len(forms)):
        raise UsageError(f"coords={{'form': {forms}}} is not allowed: forms have distinct names, by which claims choose one")


def _status(status: Any) -> Any:
    """The status code as int32; a traced one is clipped, so that an invalid code of 64 bits stays invalid."""
    code = whole("status", status, least=0, most=len(NAMES) - 1, traced=True)
    if is_traced(code) and code.dtype.itemsize > 4:
        code = jnp.clip(code, -1, len(NAMES))
    return jnp.asarray(code, jnp.int32)
