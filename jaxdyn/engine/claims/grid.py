"""Grids of settings, the cells of a sweep, which differ in some fields."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdyn.engine.claims.code_field import Code
from jaxdyn.engine.claims.fields import allowed_words, coerce, plain
from jaxdyn.engine.claims.ranges import role_of
from jaxdyn.errors import UsageError, is_traced, one_line

__all__ = ["Grid", "field_table", "grid", "labels_of", "precision"]


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

    def cells(self) -> list[Any]:
        """All settings, the last axis varying fastest."""
        try:
            cells = [
                dataclasses.replace(self.base, **dict(zip(self.axes, values, strict=True)))
                for values in itertools.product(*self.axes.values())
            ]
        except UsageError:
            raise
        except ValueError as error:
            raise UsageError(str(error)) from error
        for cell in cells:
            _fits_dtype(cell)
        _numbers_differ(self.axes, cells)
        self._check_labels()
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
        value = list(grid.axes[name]) if name in grid.axes else getattr(grid.base, name)
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
