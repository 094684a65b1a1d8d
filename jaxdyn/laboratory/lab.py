"""Studies of the laboratory: which laws can be asked of which variants, their runs, and what is found."""

from __future__ import annotations

import concurrent.futures as cf
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jaxdyn as jd
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.runs.sweep import sweep_all
from jaxdyn.errors import UsageError, shown
from jaxdyn.instruments.law import Law
from jaxdyn.laboratory.results import Cell, Laboratory, cells_of
from jaxdyn.laboratory.setting import asked
from jaxdyn.laboratory.trial import Lab, laws_of, trial
from jaxdyn.laboratory.variants import VARIANTS

__all__ = ["Order", "order", "study"]


@dataclasses.dataclass(frozen=True)
class Order:
    """What a study will do: the laws, the variants, and which laws are asked of each; the others with the reason why not."""

    laws: tuple[Law, ...]
    variants: dict[str, dict[str, Any]]
    grids: dict[str, jd.Grid]
    asked: dict[str, tuple[str, ...]]
    refused: dict[tuple[str, str], str]
    fields: dict[str, Any]


def order(watch: Sequence[str] | str, variants: Any = None, **fields: Any) -> Order:
    """Arguments as for :func:`study`.

    Raises:
        UsageError: for unknown laws, variants or fields, and for values that a field does not allow.
    """
    laws = tuple(laws_of("+".join(_names("watch", watch))))
    if not laws:
        raise UsageError("watch is not allowed: it names at least one law")
    if twice := [law.name for law in laws if [other.name for other in laws].count(law.name) > 1]:
        raise UsageError(f"watch={twice[0]!r} is not allowed: it is named twice")
    given = {name: _values(value) for name, value in fields.items()}
    swept = {name: values for name, values in given.items() if name in Lab.swept_fields}  # type: ignore[attr-defined]
    shared = {name: values[0] for name, values in given.items() if name not in swept and len(values) == 1}
    several = {name: values for name, values in given.items() if name not in swept and len(values) != 1}
    named = _variants(variants, several)
    grids, asks = dict[str, jd.Grid](), dict[str, tuple[str, ...]]()
    refused = dict[tuple[str, str], str]()
    for name, own in named.items():
        setting = jd.grid(Lab, **(shared | own)).base
        reasons = {law.name: law.why_not(asked(setting)) for law in laws}
        refused |= {(law, name): reason for law, reason in reasons.items() if reason}
        asks[name] = tuple(law for law, reason in reasons.items() if not reason)
        watched = "+".join(one for one, law in zip(_names("watch", watch), laws, strict=True) if not reasons[law.name])
        if watched:
            axes = swept | {field: _values(own[field]) for field in own if field in Lab.swept_fields}  # type: ignore[attr-defined]
            grids[name] = jd.grid(Lab, **(shared | own | axes | {"watch": watched}))
    return Order(laws, named, grids, asks, refused, shared | swept)


def study(
    watch: Sequence[str] | str,
    variants: Any = None,
    *,
    seeds: int | Sequence[int] = 4,
    out: str | Path | None = None,
    cluster: cf.Executor | None = None,
    progress: Progress | None = None,
    **fields: Any,
) -> Laboratory:
    """Train variants of the transformer, read laws along the way, and judge each.

    Args:
        watch: names of laws, or of your own as ``"module:NAME"``; a list, or a text with commas.
        variants: names of :data:`jaxdyn.laboratory.variants.VARIANTS`, or a dict of fields by a name of your own; None: what fields
            with several values make, in all combinations.
        seeds: their number, or a list of them.
        out: folder in which runs are stored; the same study resumes there.
        cluster: as of :func:`jaxdyn.sweep`.
        progress: as of :func:`jaxdyn.sweep`.
        **fields: fields of :class:`~jaxdyn.laboratory.trial.Lab`, each a value or a list; several values of a number that is swept,
            such as ``lr``, are judged one by one.

    Raises:
        UsageError: for unknown laws, variants or fields, and for values that a field does not allow.
    """
    plan = order(watch, variants, **fields)
    done = sweep_all(trial, list(plan.grids.values()), seeds, out=out, cluster=cluster, progress=progress)
    data = dict(zip(plan.grids, done, strict=True))
    cells = []
    for law, variant in itertools.product(plan.laws, plan.variants):
        if (law.name, variant) in plan.refused:
            cells.append(Cell(law.name, variant, {}, reason=plan.refused[law.name, variant]))
        else:
            cells += cells_of(law, variant, data[variant])
    return Laboratory(plan.laws, plan.variants, tuple(cells), data, plan.fields)


def _names(name: str, given: Any) -> list[str]:
    """Names from a list, or from a text with commas."""
    several = given.split(",") if isinstance(given, str) else given
    if not isinstance(several, list | tuple) or not all(isinstance(one, str) for one in several):
        raise UsageError(f"{name}={shown(given)} is not allowed: it is a list of names, or a text with commas")
    return [one.strip() for one in several if one.strip()]


def _values(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | range) else [value]


def _variants(given: Any, several: Mapping[str, list[Any]]) -> dict[str, dict[str, Any]]:
    """The variants by name, of each of which all combinations of the fields with several values are made."""
    if isinstance(given, Mapping):
        base = {str(name): dict(own) for name, own in given.items()}
    else:
        names = ["plain"] if given is None else list(VARIANTS) if given == "all" else _names("variants", given)
        if unknown := [name for name in names if name not in VARIANTS]:
            allowed = f"variants are {', '.join(VARIANTS)}, or a dict of fields by a name of your own"
            raise UsageError(f"variants={unknown[0]!r} is not allowed: {allowed}")
        base = {name: VARIANTS[name] for name in names}
    found = {}
    for (name, own), values in itertools.product(base.items(), itertools.product(*several.values())):
        chosen = dict(zip(several, values, strict=True))
        label = ", ".join([*([] if given is None and chosen else [name]), *(f"{field}={value}" for field, value in chosen.items())])
        found[label] = own | chosen
    return found
