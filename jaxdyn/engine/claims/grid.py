"""Grids of settings, the cells of a sweep, which differ in some fields: products of axes, or lists of points."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.engine.claims.code_field import Code
from jaxdyn.engine.claims.fields import allowed_words, coerce, plain
from jaxdyn.engine.claims.ranges import role_of
from jaxdyn.errors import UsageError, is_traced, one_line

__all__ = ["POINT", "Grid", "Points", "field_table", "grid", "labels_of", "points", "precision"]

POINT = "point"  # the dimension along which a list of points is labelled


# xarray asks of everything whether it has keys, and a coordinate or an axis of that name is an attribute of its arrays
DICTIONARY, TAKEN_FOR = "keys", "xarray takes arrays with a coordinate called keys for dictionaries"


@dataclasses.dataclass(frozen=True)
class Grid:
    """Settings to run: the product of ``axes`` (field -> values), with all other fields as in ``base``."""

    base: Any
    axes: Mapping[str, tuple[Any, ...]]

    @property
    def setting(self) -> type[Any]:
        """The setting's class."""
        return type(self.base)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values on each axis."""
        return tuple(len(v) for v in self.axes.values())

    @property
    def names(self) -> tuple[str, ...]:
        """Names that label the runs in a Dataset, which no observable may have."""
        return tuple(self.axes)

    def values(self, field: str) -> Any:
        """A field's value, or the list of its values if it differs between the cells."""
        return list(self.axes[field]) if field in self.axes else getattr(self.base, field)

    def coords(self) -> dict[str, Any]:
        """Coordinates of a Dataset of the runs: the labels of each axis."""
        return {axis: self.labels(axis) for axis in self.axes}

    def cells(self) -> list[Any]:
        """All settings, the last axis varying fastest."""
        cells = self._settings_with(self.axes, itertools.product(*self.axes.values()))
        _numbers_differ(self.axes, cells)
        self._check_labels()
        return cells

    def _settings_with(self, fields: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> list[Any]:
        """The settings with these values of some fields, all others as in ``base``."""
        names = tuple(fields)
        if DICTIONARY in names:
            raise UsageError(f"{self.setting.__name__}.{DICTIONARY} is not allowed to vary: {TAKEN_FOR}; rename the field")
        try:
            cells = [dataclasses.replace(self.base, **dict(zip(names, values, strict=True))) for values in rows]
        except UsageError:
            raise
        except ValueError as error:
            raise UsageError(str(error)) from error
        for cell in cells:
            _fits_dtype(cell)
        return cells

    def labels(self, axis: str) -> list[Any]:
        """The labels of an axis in a Dataset: its values, as text if one of them is a tuple or None."""
        return labels_of(self.axes[axis])

    def _check_labels(self) -> None:
        """Refuse two values of an axis that have one label."""
        for axis, values in self.axes.items():
            known: dict[Any, Any] = {}
            for label, value in zip(self.labels(axis), values, strict=True):
                if known.setdefault(label, value) is not value:
                    both = f"{known[label]!r} and {value!r}"
                    raise UsageError(f"{axis}: {both} are not allowed together: both would be labelled {label!r} in the Dataset")

    def replace(self, /, **fields: Any) -> Grid:
        """The same grid with some fields overridden: a list (or range or array) makes an axis, anything else a fixed value."""
        # values, as axes or fixed
        axes, fixed = dict(self.axes), {}
        for name, value in fields.items():
            if isinstance(value, jax.Array) and not is_traced(value):
                value = np.asarray(value)
            value = plain(value)
            if isinstance(value, list | range | np.ndarray):
                values = tuple(coerce(self.setting, name, v) for v in value)
                if not values:
                    raise UsageError(f"{name}: an axis of a grid needs at least one value")
                if len(set(values)) < len(values):
                    raise UsageError(f"{name}: the values of an axis must differ, got {', '.join(map(str, values))}")
                axes[name] = values
            else:
                fixed[name] = coerce(self.setting, name, value)
                if name in axes:  # judges expect their axes: an overridden axis stays, with one value
                    axes[name] = (fixed[name],)
        # the grid, with its base in the first cell
        first = {name: values[0] for name, values in axes.items()}
        try:
            return Grid(dataclasses.replace(self.base, **{**first, **fixed}), axes)
        except UsageError:
            raise
        except ValueError as error:
            raise UsageError(str(error)) from error


@dataclasses.dataclass(frozen=True)
class Points(Grid):
    """A list of settings: the i-th one has the i-th value of every column; all other fields are as in ``base``.

    Its only axis is ``point``, the place in the list. In a Dataset the columns are coordinates along it: ``ds.lr`` has the
    dimension ``point``, and ``ds.where(ds.lr > 0.1, drop=True)`` selects. Two points may be equal.
    """

    columns: Mapping[str, tuple[Any, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Names that label the runs in a Dataset, which no observable may have."""
        return (POINT, *self.columns)

    def values(self, field: str) -> Any:
        """A field's value, or the list of its values, point by point."""
        return list(self.columns[field]) if field in self.columns else getattr(self.base, field)

    def coords(self) -> dict[str, Any]:
        """Coordinates of a Dataset of the runs: the place in the list, and along it the labels of each column."""
        return {POINT: self.labels(POINT)} | {name: (POINT, labels_of(column)) for name, column in self.columns.items()}

    def cells(self) -> list[Any]:
        """All settings, in the order of the list."""
        return self._settings_with(self.columns, zip(*self.columns.values(), strict=True))

    def replace(self, /, **fields: Any) -> Points:
        """The same points with some fields overridden, each by one value for all points."""
        for name, value in fields.items():
            if isinstance(plain(value), list | range | np.ndarray):
                raise UsageError(f"{name}={one_line(value)} is not allowed: a list of points has no axes; give one value")
        fixed = {name: coerce(self.setting, name, plain(value)) for name, value in fields.items()}
        count = len(self.axes[POINT])
        rows = [{name: column[i] for name, column in self.columns.items()} | fixed for i in range(count)]
        return points(self.setting, rows, **{name: self.values(name) for name in self.setting.hints if name not in rows[0]})


def points(cls: type[Any], rows: Sequence[Mapping[str, Any]], /, **fields: Any) -> Points:
    """A list of settings ``cls``, for designs that are no product of axes: :func:`jaxdyn.sweep` runs each with all seeds.

    ``jd.points(MySetting, [{"lr": 0.1, "width": 32}, {"lr": 0.03, "width": 64}], depth=2)`` has 2 points. The Dataset has the
    dimension ``point``, along which ``lr`` and ``width`` are coordinates.

    Args:
        cls: the setting's class.
        rows: the fields of each point; a field that a point lacks has the value that ``fields`` or the setting gives it.
        **fields: values of other fields, the same for all points.

    Raises:
        UsageError: there is no point, a field is unknown, or a value is not allowed.
    """
    base = grid(cls).base
    if isinstance(rows, str | Mapping) or not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise UsageError(f"rows={one_line(rows)} is not allowed: it is a list of dicts, each with the fields of one point")
    if not rows:
        raise UsageError("rows=[] is not allowed: a list of points has at least one")
    if POINT in cls.hints:  # type: ignore[attr-defined]
        raise UsageError(f"{cls.__name__}.{POINT} is not allowed in a list of points, whose axis has this name; rename the field")
    own = {name: coerce(cls, name, value) for name, value in fields.items()}
    named = dict.fromkeys(name for row in rows for name in row)
    if not named:
        raise UsageError("rows without fields are not allowed: the points of a list differ in at least one")
    default = {name: coerce(cls, name, getattr(base, name, None)) for name in named} | own
    columns = {name: tuple(coerce(cls, name, row[name]) if name in row else default[name] for row in rows) for name in named}
    axes: dict[str, tuple[Any, ...]] = {POINT: tuple(range(len(rows)))}
    first = {name: column[0] for name, column in columns.items()}
    try:
        return Points(dataclasses.replace(base, **(own | first)), axes, columns)
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error


def grid(cls: type[Any], /, **fields: Any) -> Grid:
    """A grid over setting ``cls``: fields given as list, range or array are axes, whose product is run; others are fixed.

    ``jd.grid(MySetting, lr=[0.1, 0.2], width=[32, 64], depth=2)`` has 4 cells.

    Raises:
        UsageError: the class is not decorated, a field is unknown, or a value is not allowed.
    """
    if not isinstance(cls, type) or "hints" not in vars(cls):
        name = cls.__name__ if isinstance(cls, type) else one_line(cls)
        raise UsageError(f"{name} is not a setting: decorate its class with @jd.setting, and give the class to jd.grid")
    return Grid(cls(), {}).replace(**fields)


def field_table(grid: Grid) -> list[dict[str, Any]]:
    """A row for every field: name, kind (swept or static), type in words, range, role, and value or values in this grid.

    The range is a dict such as ``{"above": 0, "at_most": 1}``, empty if every number is allowed; the role is that of a number in
    training (:mod:`jaxdyn.engine.claims.ranges`), None for other fields.
    """
    cls = grid.setting
    rows = []
    for name in cls.hints:
        value = grid.values(name)
        value = str(value) if isinstance(value, Code) else value
        kind = "swept" if name in cls.swept_fields else "static"
        bounds = cls.ranges[name].as_dict() if name in cls.ranges else {}
        about = {"type": allowed_words(cls, name), "range": bounds, "role": role_of(cls, name)}
        rows.append({"name": name, "kind": kind, **about, "value": value})
    return rows


def _fits_dtype(cell: Any) -> None:
    """Refuse a number that overflows or underflows in the setting's precision."""
    dtype = precision(cell)
    facts = jnp.finfo(dtype)
    smallest, largest = float(facts.tiny), float(facts.max)
    for name in type(cell).swept_fields:
        value = getattr(cell, name)
        if isinstance(value, float) and value and not smallest <= abs(value) <= largest:
            span = f"from {smallest:.2g} to {largest:.2g}"
            raise UsageError(f"{name}={value!r} is not allowed: {dtype} holds numbers of size {span}, and 0")


def labels_of(values: Sequence[Any]) -> list[Any]:
    """The labels of a field's values in a Dataset: the values, as text if one of them is a tuple or None."""
    return [_label(v) for v in values] if any(isinstance(v, tuple | None) for v in values) else list(values)


def _label(value: Any) -> str:
    """A value as a label, as on the command line: ``1:2`` for a tuple, ``none`` for None."""
    return ":".join(map(str, value)) if isinstance(value, tuple) else "none" if value is None else str(value)


def _numbers_differ(axes: Mapping[str, tuple[Any, ...]], cells: Sequence[Any]) -> None:
    """Refuse two values of an axis that round to the same number in the setting's precision."""
    for dtype in {precision(cell) for cell in cells}:
        for name in (n for n in axes if n in type(cells[0]).swept_fields and n not in type(cells[0]).code_names):
            rounded = np.asarray(axes[name], dtype).astype(float)
            first = set(np.unique(rounded, return_index=True)[1].tolist())
            if again := [value for i, value in enumerate(axes[name]) if i not in first]:
                raise UsageError(f"{name}={again[0]!r} is not allowed: another value of this axis is the same number in {dtype}")


def precision(setting_: Any) -> np.dtype[Any]:
    """The dtype of the swept numbers: the static field ``dtype`` if there is one, else float64."""
    name = getattr(setting_, "dtype", "float64")
    try:
        dtype = jnp.dtype(name)
        if jnp.issubdtype(dtype, jnp.floating):
            return dtype
    except (TypeError, ValueError, SyntaxError):  # NumPy reads "," as a list of types
        pass
    raise UsageError(f"dtype={name!r} is not allowed: it is float64, float32, bfloat16 or float16")
