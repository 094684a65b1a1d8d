r"""Maps of where a claim stops holding: its judge at points of a plane of settings, denser where the verdict changes.

A point is judged like a cell of ``--by``: gates, checks, and rivals, which the checks must reject there too. A rival that needs
other points is not asked where it raises, and the map says so; one that raises everywhere is an error. Controls are other settings
and are not judged at every point. Runs outside the assumptions are left out; if no run is inside, all are judged:
this shows where a theorem holds beyond its assumptions, and where it fails within them.

If both axes are logarithmic, the border between "upheld" and "refuted" is fitted by a power law
(:mod:`jaxdyn.engine.verification.boundary`).
"""

from __future__ import annotations

import concurrent.futures as cf
import contextlib
import dataclasses
import functools
import itertools
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import xarray as xr

from jaxdyn.engine.base.jsonable import finite
from jaxdyn.engine.base.parsing import check_span
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims.claim import Claim
from jaxdyn.engine.claims.description import field_texts
from jaxdyn.engine.claims.fields import coerce
from jaxdyn.engine.claims.grid import field_table, labels_of, precision
from jaxdyn.engine.judging.verdict import with_silent_rivals
from jaxdyn.engine.programs.chunk import Job
from jaxdyn.engine.runs import costs as timings
from jaxdyn.engine.runs.blocks import Request
from jaxdyn.engine.runs.planning import plan
from jaxdyn.engine.runs.sweep import check_cluster, chosen_seeds
from jaxdyn.engine.storage import store as storage
from jaxdyn.engine.storage.seeds import Seeds
from jaxdyn.engine.verification import refinement as lattice
from jaxdyn.engine.verification.boundary import FEWEST, Border, fit
from jaxdyn.engine.verification.rounds import Rounds
from jaxdyn.errors import UsageError, whole
from jaxdyn.wording import plural

__all__ = ["Axis", "Map", "Survey", "explore", "map_claim", "prepare_survey", "run_survey"]

BORDER = ("upheld", "refuted")
Values: TypeAlias = "dict[str, Any]"
Judging: TypeAlias = "Callable[[Sequence[Values]], list[dict[str, Any]]]"


@dataclasses.dataclass(frozen=True)
class Axis:
    """A field with its range or its list of values; on a range, points are denser where the verdict changes.

    On a range of ``whole`` numbers they are rounded, and those that round to the same number are one point.
    """

    field: str
    low: float = math.nan
    high: float = math.nan
    log: bool = False
    values: tuple[Any, ...] = ()
    whole: bool = False

    def __post_init__(self) -> None:
        if self.values:
            return
        given = f"{self.field}={':'.join(field_texts([self.low, self.high]))}"
        check_span(f"{given}{':log' * self.log}", self.low, self.high, self.log)

    @classmethod
    def of(cls, field: str, given: Any) -> Axis:
        """The axis of a range ``(low, high)``, ``(low, high, "log")``, or of a list of values.

        Raises:
            UsageError: anything else.
        """
        if isinstance(given, list | range):
            if not given:
                raise UsageError(f"{field}=[] is not allowed: an axis needs at least one value")
            return cls(field, values=tuple(given))
        match given:
            case (int() | float() as low, int() | float() as high):
                return cls(field, float(low), float(high))
            case (int() | float() as low, int() | float() as high, "log"):
                return cls(field, float(low), float(high), log=True)
        raise UsageError(f"{field}={given!r} is not allowed: give (low, high), (low, high, 'log') or a list of values")

    def at(self, place: int) -> float:
        """The value at a coordinate of the lattice; at its ends those of the range, however they round."""
        if place in (0, lattice.FINE):
            return self.high if place else self.low
        t = place / lattice.FINE
        value = self._between(t)
        value = float(round(value)) if self.whole else value
        return min(max(value, self.low), self.high)

    def _between(self, t: float) -> float:
        """The value at a share ``t`` of the range, also of a logarithmic one whose ends have no finite ratio."""
        if not self.log:
            return self.low + t * (self.high - self.low)
        ratio = self.high / self.low
        return self.low * ratio**t if math.isfinite(ratio) else float(self.low ** (1 - t) * self.high**t)

    def to_json(self) -> dict[str, Any]:
        """The axis in JSON."""
        if self.values:
            return {"field": self.field, "values": list(self.values)}
        return {"field": self.field, "low": self.low, "high": self.high, "log": self.log}


@dataclasses.dataclass(frozen=True)
class Map:
    """A claim judged over one or two fields.

    ``cells`` are like those of ``verify --by``: ``at``, ``verdict``, ``failed``, ``checks``, ``unasked`` (rivals that need other
    cells, and what they raise; only where all checks pass), ``inside`` (whether a run meets the
    assumptions), and ``assumed``, the means of the quantities that the claim bounds by assumption. ``edges`` are pairs of
    neighbours, one upheld, one refuted. ``settings`` are the values of all other fields at this ``scale``, ``seeds`` those of every
    cell.
    ``seconds`` is the wall time of this call, ``cpu_seconds`` the time of compiling, running
    and judging on all cores together; ``resumed`` says whether some of its runs were already stored.
    """

    claim: str
    axes: tuple[Axis, ...]
    settings: dict[str, Any]
    cells: list[dict[str, Any]]
    edges: list[tuple[dict[str, Any], dict[str, Any]]]
    border: Border | None
    assumes: tuple[dict[str, Any], ...]
    runs: int
    programs: int
    seconds: float
    cpu_seconds: float
    resumed: bool
    scale: str = "quick"
    seeds: str = ""

    @property
    def data(self) -> xr.Dataset:
        """All cells as one Dataset along ``cell``: fields, verdict, and every check's value, NaN if it was not judged.

        A field's values are its coordinate, as text if one of them is a tuple or None. A field called ``check``, ``value`` or
        ``verdict`` has underscores after its name; the attribute ``fields`` lists the coordinates in the order of the axes. Other
        attributes name the scale, the seeds, and the values of all other fields (as JSON).
        """
        names = list(dict.fromkeys(c["name"] for cell in self.cells for c in cell.get("checks", ())))
        values = {name: [_value(cell, name) for cell in self.cells] for name in names}
        own = _coordinates([axis.field for axis in self.axes])
        fields = {name: ("cell", labels_of([cell["at"][field] for cell in self.cells])) for field, name in own.items()}
        about = {"claim": self.claim, "fields": list(own.values()), "scale": self.scale, "seeds": self.seeds}
        about["settings"] = json.dumps(finite(self.settings))
        verdicts = {"verdict": ("cell", [cell["verdict"] for cell in self.cells])}
        table = {"value": (("check", "cell"), [values[name] for name in names])} if names else {}
        return xr.Dataset(verdicts | table, fields | ({"check": names} if names else {}), about)

    @property
    def unasked(self) -> list[dict[str, Any]]:
        """Rivals that were not asked in some cells: ``rival``, number of ``cells``, ``of`` how many, and the first ``reason``."""
        put = [cell["unasked"] for cell in self.cells if "unasked" in cell]
        names = dict.fromkeys(name for reasons in put for name in reasons)
        found = {name: [reasons[name] for reasons in put if name in reasons] for name in names}
        return [{"rival": name, "cells": len(why), "of": len(put), "reason": why[0]} for name, why in found.items()]

    def to_json(self) -> dict[str, Any]:
        """The whole map in JSON types, with null for non-finite numbers."""
        border = None if self.border is None else dataclasses.asdict(self.border)
        content = {
            "claim": self.claim,
            "over": [axis.to_json() for axis in self.axes],
            "settings": self.settings,
            "scale": self.scale,
            "seed_range": self.seeds,
            "cells": self.cells,
            "unasked": self.unasked,
            "edges": [list(edge) for edge in self.edges],
            "border": border,
            "assumes": list(self.assumes),
            "runs": self.runs,
            "programs": self.programs,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "resumed": self.resumed,
        }
        return cast("dict[str, Any]", finite(content))


def _coordinates(fields: Sequence[str]) -> dict[str, str]:
    """The name of each field's coordinate: its own, with underscores after it where a map's Dataset uses that itself."""
    found: dict[str, str] = {}
    for field in fields:
        name = field
        while name in ("cell", "check", "value", "verdict") or (name != field and name in fields):
            name += "_"
        found[field] = name
    return found


def _value(cell: Mapping[str, Any], name: str) -> float:
    """The value of a check in a cell; NaN if it has none."""
    values = [c["value"] for c in cell.get("checks", ()) if c["name"] == name]
    return float(values[0]) if values and values[0] is not None else math.nan


@dataclasses.dataclass(frozen=True)
class Survey:
    """The request for a map: the claim, its axes, the upper limit on judged cells, and everything that all cells share.

    ``load``: files with claims, so that workers can find this one by its id; None if the ``Claim`` itself was given.
    """

    claim: Claim
    axes: tuple[Axis, ...]
    cells: int
    scale: str
    seeds: Seeds
    overrides: Mapping[str, Any]
    load: tuple[str, ...] | None = None

    def request(self, values: Values) -> Request:
        """The runs of one cell."""
        return Request(self.claim.trial, self.claim.grid(self.scale).replace(**{**self.overrides, **values}), self.seeds)

    @property
    def settings(self) -> dict[str, Any]:
        """The values of all fields that are not mapped."""
        table = field_table(self.claim.grid(self.scale).replace(**self.overrides))
        mapped = {axis.field for axis in self.axes}
        return {row["name"]: row["value"] for row in table if row["name"] not in mapped}

    @property
    def seed_range(self) -> str:
        """The seeds of every cell as text."""
        return self.request(self.first()[0]).seed_range

    @property
    def listed(self) -> list[Values]:
        """All combinations of values of those axes that are lists."""
        lists = [a for a in self.axes if a.values]
        return [dict(zip((a.field for a in lists), row, strict=True)) for row in itertools.product(*(a.values for a in lists))]

    @property
    def ranges(self) -> list[Axis]:
        """Axes that are ranges."""
        return [a for a in self.axes if not a.values]

    def point(self, place: Sequence[int]) -> Values:
        """The fields' values at a point of the lattice."""
        return {a.field: a.at(x) for a, x in zip(self.ranges, place, strict=True)}

    @functools.cached_property
    def dtype(self) -> np.dtype[Any]:
        """The precision of the swept numbers."""
        return precision(self.claim.grid(self.scale).replace(**self.overrides).base)

    def number(self, place: Sequence[int]) -> tuple[float, ...]:
        """The numbers at a point of the lattice in the setting's precision: points with the same numbers are one cell."""
        return tuple(float(np.asarray(a.at(x), self.dtype)) for a, x in zip(self.ranges, place, strict=True))

    def first(self) -> list[Values]:
        """The cells of the first round."""
        _, places = lattice.start(len(self.ranges), self.cells // len(self.listed))
        points = {self.number(place): self.point(place) for place in places}
        return [{**values, **point} for values in self.listed for point in points.values()]

    def seconds(self) -> float:
        """Expected seconds of running all cells, extrapolated from the first round; without judging."""
        first, jobs = self.first(), self._first_jobs()
        runs = sum(job.runs for job in jobs)
        compiling = sum(timings.expected(dataclasses.replace(job, chunks=job.chunks[:1])) for job in jobs)
        return max(sum(map(timings.expected, jobs)) * self.cells / len(first), compiling) if runs else 0.0

    def guessed(self) -> bool:
        """Whether a program of the first round was never timed on the devices that plans are made for."""
        return any(map(timings.guessed, self._first_jobs()))

    def _first_jobs(self) -> list[Job]:
        return plan([self.request(values) for values in self.first()], store=None, quick=self.scale == "quick")


def prepare_survey(
    claim: str | Claim,
    over: Mapping[str, Any],
    *,
    cells: int = 243,
    scale: str = "quick",
    seeds: Any = None,
    overrides: Mapping[str, Any] | None = None,
    load: Sequence[str | Path] = (),
) -> Survey:
    """Check the request for a map.

    Raises:
        UsageError: an unknown claim, field or scale, no or more than two axes, values that are not allowed, too few cells.
    """
    registry.check_claim(claim)
    cells = whole("cells", cells, least=1)
    if not isinstance(over, Mapping):
        raise UsageError(f"over={over!r:.60} is not allowed: it is a dict of fields and their ranges, {{'lr': (0.01, 1.0, 'log')}}")
    files = None if isinstance(claim, Claim) else tuple(map(str, load))
    if isinstance(claim, str):
        matches = registry.select([claim], load)
        if len(matches) != 1:
            raise UsageError(f"{claim!r} matches {plural(len(matches), 'claim')}; a map takes one claim")
        claim = matches[0]
    if scale not in ("quick", "paper"):
        raise UsageError(f"scale={scale!r} is not allowed: it is quick or paper")
    if not 1 <= len(over) <= 2:
        raise UsageError(f"a map is over one or two fields, got {len(over)}")
    setting = claim.grid(scale).setting
    if both := [field for field in over if field in (overrides or {})]:
        raise UsageError(f"{both[0]} is not allowed twice: the map is over it, so that it is not set to other values")
    # the axes
    axes = []
    for field, given in over.items():
        axis = given if isinstance(given, Axis) else Axis.of(field, given)
        ends = axis.values or (axis.low, axis.high)
        taken = tuple(coerce(setting, field, v) for v in ends)
        if len(set(map(str, taken))) < len(taken):
            raise UsageError(f"{field}: the values of an axis must differ, got {', '.join(map(str, taken))}")
        if not axis.values and field not in setting.swept_fields:
            raise UsageError(f"{field}: only swept fields ({', '.join(setting.swept_fields)}) have a range; list values for others")
        counts = field in setting.ranges and setting.ranges[field].whole
        axes.append(dataclasses.replace(axis, values=taken) if axis.values else dataclasses.replace(axis, whole=counts))
    # the first round, which must fit into the limit
    chosen = claim.seed_count(scale) if seeds is None else seeds
    survey = Survey(claim, tuple(axes), cells, scale, chosen_seeds(chosen), dict(overrides or {}), files)
    least = len(survey.first())
    if cells < least:
        raise UsageError(f"cells={cells} is not allowed: this map needs at least {least}")
    _refuse_narrow(survey)
    for values in survey.first():
        survey.request(values)  # raises for values that the setting refuses, before anything runs
    return survey


def _refuse_narrow(survey: Survey) -> None:
    """Refuse a range with fewer different numbers than cells of the first round; there may be few whole numbers."""
    _, places = lattice.start(len(survey.ranges), survey.cells // len(survey.listed))
    for i, axis in enumerate(survey.ranges):
        steps = {place[i] for place in places}
        if not axis.whole and len({survey.number(place)[i] for place in places}) < len(steps):
            few = f"{survey.dtype} has fewer than {plural(len(steps), 'different number')} between them"
            raise UsageError(f"{axis.field}={axis.low!r}:{axis.high!r} is not allowed: {few}")


def map_claim(
    claim: str | Claim,
    *,
    over: Mapping[str, Any],
    cells: int = 243,
    scale: str = "quick",
    seeds: Any = None,
    out: str | Path | None = None,
    cluster: cf.Executor | None = None,
    load: Sequence[str | Path] = (),
    **fields: Any,
) -> Map:
    """Map where a claim holds: ``jd.map("theory.claim", over={"lr": (1e-2, 1e2, "log")})``.

    Args:
        claim: an id, or a ``Claim`` of your own.
        over: one or two fields: ``(low, high)``, ``(low, high, "log")``, or a list of values, one row of the map per value.
        cells: upper limit on judged cells.
        scale: ``quick`` or ``paper``: the grid from which all other fields are taken.
        seeds: number of seeds, or the seeds; default: the claim's own.
        out: folder for the runs' shards; None: nothing is stored.
        cluster: any ``concurrent.futures.Executor`` for the chunks.
        load: files with your own claims.
        fields: overrides of the setting; a list sweeps the field within every cell.

    Returns:
        The :class:`Map`: ``.cells``, ``.border``, ``.data``, ``.to_json()``.

    Raises:
        UsageError: as for :func:`prepare_survey`.
    """
    check_cluster(cluster)
    survey = prepare_survey(claim, over, cells=cells, scale=scale, seeds=seeds, overrides=fields, load=load)
    folder = contextlib.nullcontext(None) if out is None else storage.open_folder(out, f"map of {survey.claim.id}")
    with folder as store:
        return run_survey(survey, store=store, pool=cluster)


def run_survey(survey: Survey, *, store: Path | None, pool: cf.Executor | None, workers: int = 1) -> Map:
    """Run and judge a map in rounds; see :func:`map_claim`.

    Args:
        survey: from :func:`prepare_survey`.
        store: folder of the shards; None: nothing is stored.
        pool: executor for the chunks; None: this process.
        workers: number of processes in ``pool``; the runs of a round are divided among them.
    """
    begin, cpu_start = time.perf_counter(), time.process_time()
    with Progress("mapping") as progress:
        rounds = Rounds(survey.claim, survey.load, survey.scale == "quick", store, pool, workers, progress)

        def judge(batch: Sequence[Values]) -> list[dict[str, Any]]:
            return rounds.judge([survey.request(values) for values in batch], batch)

        entries, edges = explore(survey, judge)
    entries = with_silent_rivals(entries)
    if not {"upheld", "refuted"} <= {entry["verdict"] for entry in entries}:
        edges = []  # what was upheld is an error
    assumed = tuple({"name": a.name, "low": a.low, "high": a.high} for a in survey.claim.assumes)
    return Map(
        claim=survey.claim.id,
        axes=survey.axes,
        settings=survey.settings,
        cells=entries,
        edges=edges,
        border=_border(survey, edges),
        assumes=assumed,
        runs=rounds.runs,
        programs=len(rounds.programs),
        seconds=time.perf_counter() - begin,
        cpu_seconds=time.process_time() - cpu_start + rounds.cpu_seconds,
        resumed=rounds.stored > 0,
        scale=survey.scale,
        seeds=survey.seed_range,
    )


def explore(survey: Survey, judge: Judging) -> tuple[list[dict[str, Any]], list[tuple[Values, Values]]]:
    """The cells of all rounds, and the pairs of neighbours between which the border lies.

    Every round has as many cells as the first, so that they share programs; a round that would exceed the limit is left out.
    """
    rows, dims = survey.listed, len(survey.ranges)
    leaves, places = lattice.start(dims, survey.cells // len(rows))
    row_leaves, labels = [leaves for _ in rows], [dict[tuple[int, ...], str]() for _ in rows]
    known: dict[tuple[int, tuple[float, ...]], str] = {}
    entries: list[dict[str, Any]] = []
    # judge a round, and refine where the verdict changes
    waiting = [(i, place) for i in range(len(rows)) for place in places]
    while waiting:
        todo = list({(i, survey.number(place)): (i, place) for i, place in waiting}.values())  # one for each cell
        judged = judge([{**rows[i], **survey.point(place)} for i, place in todo])
        entries += judged
        known |= {(i, survey.number(place)): entry["verdict"] for (i, place), entry in zip(todo, judged, strict=True)}
        for i, place in waiting:
            labels[i][place] = known[i, survey.number(place)]
        waiting = []
        if dims and len(entries) + len(rows) * len(places) <= survey.cells:
            for i in range(len(rows)):
                row_leaves[i], new = lattice.more(row_leaves[i], labels[i], len(places), BORDER)
                labels[i] |= {place: known[i, number] for place in new if (i, number := survey.number(place)) in known}
                waiting += [(i, place) for place in new if place not in labels[i]]
    pairs = [(i, pair) for i in range(len(rows)) for pair in lattice.edges(row_leaves[i], labels[i], BORDER)]
    return entries, [({**rows[i], **survey.point(a)}, {**rows[i], **survey.point(b)}) for i, (a, b) in pairs]


def _border(survey: Survey, edges: Sequence[tuple[Values, Values]]) -> Border | None:
    """The power law of the border's points, if both axes are logarithmic ranges and there are enough points."""
    if len(survey.ranges) != 2 or not all(a.log for a in survey.ranges) or len(edges) < FEWEST:
        return None
    names = [a.field for a in survey.ranges]
    middle = np.array([[math.sqrt(a[n]) * math.sqrt(b[n]) for n in names] for a, b in edges])
    apart = [[math.log(a[n]) - math.log(b[n]) for n in names] for a, b in edges]
    step = math.exp(float(np.square(apart).sum(-1).mean()) ** 0.5)
    return fit(np.log(middle[:, 0]), np.log(middle[:, 1]), step)
