"""Studies of the laboratory: which laws and instruments can be asked of which variants, their runs, and what is found."""

from __future__ import annotations

import concurrent.futures as cf
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxdyn.engine.base.parsing import parse_values, quoted
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.claims.grid import Grid, grid
from jaxdyn.engine.runs.sweep import sweep_all
from jaxdyn.errors import UsageError, shown
from jaxdyn.instruments.instrument import Instrument
from jaxdyn.instruments.law import Law
from jaxdyn.laboratory.results import Cell, Laboratory, cells_of, readings_of
from jaxdyn.laboratory.setting import UNREAD, asked
from jaxdyn.laboratory.trial import Lab, trial, watched_of
from jaxdyn.laboratory.variants import VARIANTS

__all__ = ["Order", "order", "study"]


@dataclasses.dataclass(frozen=True)
class Order:
    """What a study will do: laws, instruments, variants, and what is asked of each; the others with the reason why not."""

    laws: tuple[Law, ...]
    instruments: tuple[Instrument, ...]
    variants: dict[str, dict[str, Any]]
    grids: dict[str, Grid]
    asked: dict[str, tuple[str, ...]]
    refused: dict[tuple[str, str], str]
    fields: dict[str, Any]

    @property
    def watched(self) -> list[str]:
        """Names of the laws, then of the instruments."""
        return [*(law.name for law in self.laws), *(one.name for one in self.instruments)]


def order(watch: Sequence[str] | str, variants: Any = None, **fields: Any) -> Order:
    """Arguments as for :func:`study`.

    Raises:
        UsageError: for unknown laws, variants or fields, and for values that a field does not allow.
    """
    every = watched_of(",".join(map(quoted, _names("watch", watch))))
    if not every:
        raise UsageError("watch is not allowed: it names at least one law or instrument")
    if twice := [one.name for one in every if [other.name for other in every].count(one.name) > 1]:
        raise UsageError(f"watch={twice[0]!r} is not allowed: it is named twice")
    given = {name: _values(value) for name, value in fields.items()}
    swept = {name: values for name, values in given.items() if name in Lab.swept_fields}  # type: ignore[attr-defined]
    shared = {name: values[0] for name, values in given.items() if name not in swept and len(values) == 1}
    several = {name: values for name, values in given.items() if name not in swept and len(values) != 1}
    named = _variants(variants, several)
    grids, asks = dict[str, Grid](), dict[str, tuple[str, ...]]()
    refused = dict[tuple[str, str], str]()
    settings = {name: grid(Lab, **(shared | own)).base for name, own in named.items()}
    _refuse_unread(given, named, settings)
    for name, own in named.items():
        setting = settings[name]
        reasons = {one.name: one.why_not(asked(setting)) for one in every}
        refused |= {(law, name): reason for law, reason in reasons.items() if reason}
        asks[name] = tuple(law for law, reason in reasons.items() if not reason)
        watched = ",".join(quoted(text) for text, one in zip(_names("watch", watch), every, strict=True) if not reasons[one.name])
        if watched:
            axes = swept | {field: _values(own[field]) for field in own if field in Lab.swept_fields}  # type: ignore[attr-defined]
            grids[name] = grid(Lab, **(shared | own | axes | {"watch": watched}))
    laws = tuple(one for one in every if isinstance(one, Law))
    instruments = tuple(one for one in every if isinstance(one, Instrument))
    return Order(laws, instruments, named, grids, asks, refused, shared | swept)


def study(
    watch: Sequence[str] | str,
    variants: Any = None,
    *,
    seeds: int | Sequence[int] = 4,
    out: str | Path | None = None,
    cluster: cf.Executor | None = None,
    progress: Progress | bool | None = None,
    **fields: Any,
) -> Laboratory:
    """Train variants of the transformer, read laws and instruments along the way, and judge each law.

    Args:
        watch: names of laws and instruments, or of your own as ``"module:NAME"``; a list, or a text with commas.
        variants: names of :data:`jaxdyn.laboratory.variants.VARIANTS`, or a dict of fields by a name of your own; None: what fields
            with several values make, in all combinations.
        seeds: their number, or a list of them.
        out: folder in which runs are stored; the same study resumes there.
        cluster: as of :func:`jaxdyn.sweep`.
        progress: as of :func:`jaxdyn.sweep`.
        **fields: fields of :class:`~jaxdyn.laboratory.trial.Lab`, each a value or a list; several values of a number that is swept,
            such as ``lr``, are judged one by one.

    Raises:
        UsageError: for unknown laws, instruments, variants or fields, and for values that a field does not allow.
    """
    plan = order(watch, variants, **fields)
    done = sweep_all(trial, list(plan.grids.values()), seeds, out=out, cluster=cluster, progress=progress)
    data = dict(zip(plan.grids, done, strict=True))
    cells = []
    for one, variant in itertools.product((*plan.laws, *plan.instruments), plan.variants):
        if (one.name, variant) in plan.refused:
            cells.append(Cell(one.name, variant, {}, reason=plan.refused[one.name, variant]))
        else:
            cells += (cells_of if isinstance(one, Law) else readings_of)(one, variant, data[variant])
    return Laboratory(plan.laws, plan.variants, tuple(cells), data, plan.fields, plan.instruments)


def _names(name: str, given: Any) -> list[str]:
    """Names from a list, or from a text with commas; one that has a comma itself is in double quotes there."""
    several = (parse_values(given) if given.strip() else []) if isinstance(given, str) else given
    if not isinstance(several, list | tuple) or not all(isinstance(one, str) for one in several):
        raise UsageError(f"{name}={shown(given)} is not allowed: it is a list of names, or a text with commas")
    return [one.strip() for one in several if one.strip()]


def _values(value: Any) -> list[Any]:
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    several = list(value) if isinstance(value, list | tuple | range) else [value]
    return [one.item() if isinstance(one, np.generic) else one for one in several]


def _refuse_unread(given: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
    """Refuse a field that nothing reads in the variant that sets it, or in all variants: what it changes would be nothing.

    Raises:
        UsageError: if there is one.
    """
    for field, (sentence, unread) in UNREAD.items():
        places = [name for name, own in named.items() if field in own and unread(settings[name])]
        if field in given and all(unread(setting) for setting in settings.values()):
            places += named
        if places:
            raise UsageError(f"{field} is not allowed in the variant {places[0]}, where nothing reads it: {sentence}")


def _own(name: str, given: Any) -> tuple[str, dict[str, Any]]:
    """The fields of a variant of one's own; those that are not swept have one value."""
    if not isinstance(given, Mapping):
        raise UsageError(f"variants: {name}={shown(given)} is not allowed: it is a dict of fields")
    own = {str(field): _values(value) for field, value in given.items()}
    for field, values in own.items():
        if field == "watch":
            raise UsageError(f"watch is not allowed in the variant {name}: all variants are watched alike")
        if len(values) != 1 and field in Lab.static_fields:  # type: ignore[attr-defined]
            raise UsageError(f"{field}={shown(values)} is not allowed in the variant {name}: each value is a variant of its own")
    return name, {field: values[0] if len(values) == 1 else values for field, values in own.items()}


def _variants(given: Any, several: Mapping[str, list[Any]]) -> dict[str, dict[str, Any]]:
    """The variants by name, of each of which all combinations of the fields with several values are made."""
    if isinstance(given, Mapping):
        base = dict(_own(str(name), own) for name, own in given.items())
        names = [str(name) for name in given]
    else:
        names = ["plain"] if given is None else list(VARIANTS) if given == "all" else _names("variants", given)
        if unknown := [name for name in names if name not in VARIANTS]:
            allowed = f"variants are {', '.join(VARIANTS)}, or a dict of fields by a name of your own"
            raise UsageError(f"variants={unknown[0]!r} is not allowed: {allowed}")
        base = {name: VARIANTS[name] for name in names}
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"variants={twice[0]!r} is not allowed: it is named twice")
    if both := [(field, name) for field in several for name, own in base.items() if field in own]:
        field, name = both[0]
        raise UsageError(f"{field} is not allowed with several values: the variant {name} has its own")
    for field, values in several.items():
        if not values or any(value in values[:i] for i, value in enumerate(values)):
            raise UsageError(f"{field}={shown(values)} is not allowed: it is one value, or several that differ")
    if not base:
        raise UsageError("variants is not allowed: it names at least one variant")
    found = {}
    for (name, own), values in itertools.product(base.items(), itertools.product(*several.values())):
        chosen = dict(zip(several, values, strict=True))
        label = ", ".join([*([] if given is None and chosen else [name]), *(f"{field}={value}" for field, value in chosen.items())])
        found[label] = own | chosen
    return found
