"""``jd.to_frame``: checks, gates and readings of a verification, or the runs of a sweep, as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from jaxdyn.engine.base.parsing import parse_json
from jaxdyn.engine.judging.check import bound_text
from jaxdyn.engine.storage.store import atomic_write
from jaxdyn.engine.verification.task import value_text
from jaxdyn.errors import UsageError, flag
from jaxdyn.report.columns import CsvText, observable_columns
from jaxdyn.report.diff import entries_of
from jaxdyn.report.results import numbers_of
from jaxdyn.status import NAMES

if TYPE_CHECKING:
    import pandas as pd

    from jaxdyn.engine.verification.result import Result

__all__ = ["CHECKS", "RUNS", "to_frame", "write_csv"]

CHECKS, RUNS = "checks.csv", "runs.csv"
ENDED = "ended"  # the column of the word for a status
TYPES: Any = {  # of the columns of checks
    **dict.fromkeys(("claim", "kind", "name"), "string"),
    **dict.fromkeys(("value", "low", "high"), "float64"),
    "bound": "string",
    **dict.fromkeys(("bound_low", "bound_high"), "float64"),
    "passed": "boolean",
    **dict.fromkeys(("verdict", "expected"), "string"),
    **dict.fromkeys(("seeds", "runs"), "Int64"),
}


def to_frame(result: Any, *, long: bool = False) -> pd.DataFrame:
    """A table of the checks, gates and readings of a verification, or of the runs of a sweep.

    ``jd.to_frame(jd.verify("theory.claim"))``, ``jd.to_frame("report")``, ``jd.to_frame(jd.sweep(…), long=True)``

    Args:
        result: what ``jd.verify`` or ``jd.verify_many`` returned, or the ``--out`` of a verification; or the Dataset of a sweep,
            such as ``.data`` of a result.
        long: of a Dataset, all that is saved, with one row per run and place along the axes of the variables; those with other axes
            follow in rows of their own. Else what each run has once, with one row per run.

    Returns:
        Of a verification, one row per check, gate and reading: ``claim``, ``kind``, ``name``, ``value``, the ends of its interval
        ``low`` and ``high``, ``bound`` in words, its ends ``bound_low`` and ``bound_high``, ``passed`` (missing where undecided,
        and for readings), ``verdict``, ``expected``, and the numbers of ``seeds`` and ``runs``. What is infinite is missing.
        Of a Dataset, the fields that it sweeps, ``seed``, ``status`` and its word ``ended``, and the variables.
        A variable with the name of a field, also of one that is the same in all runs, is in the column ``recorded NAME``.

    Raises:
        UsageError: the argument is something else, or cannot be read.
    """
    if flag("long", long) and not isinstance(result, xr.Dataset):
        raise UsageError("long=True is not allowed: it is for the Dataset of a sweep")
    return _runs(result, long) if isinstance(result, xr.Dataset) else _checks(result)


def write_csv(folder: Path, results: Sequence[Result]) -> None:
    """Write ``checks.csv`` and ``runs.csv`` of some results.

    The runs of all claims are in one table: claim, all fields, seed, status, and what each run has once. What a claim has not is
    empty. A variable with the name of a field of any of these claims is in the column ``recorded NAME``.
    """
    checks = _checks(list(results)) if results else _table([])
    atomic_write(folder / CHECKS, _csv(checks))
    fields = {name for one in results if one.data is not None for name in _fields(one.data)}
    frames = [_runs_of_claim(one.claim.id, one.data, fields) for one in results if one.data is not None]
    columns = list(dict.fromkeys(["claim", *(name for frame in frames for name in frame.columns)]))
    parts = [_csv(frame.reindex(columns=columns), header=False) for frame in frames]
    header = _csv(_table([]).reindex(columns=columns))
    atomic_write(folder / RUNS, "".join([header, *parts]))


def _csv(frame: pd.DataFrame, header: bool = True) -> str:
    text = CsvText()
    frame.to_csv(text, index=False, header=header, lineterminator=CsvText.ENDS)
    return text.getvalue()


def _fields(data: xr.Dataset) -> dict[str, Any]:
    """The fields of the runs and their values; none of a Dataset that does not name them."""
    return dict(parse_json(data.attrs["settings"])) if isinstance(data.attrs.get("settings"), str) else {}


def _runs_of_claim(claim: str, data: xr.Dataset, fields: Collection[str]) -> pd.DataFrame:
    """The runs of a claim with its id, and with the fields that are the same in all of them; ``fields`` are those of all claims."""
    settings = _fields(data)
    frame = _runs(data, long=False, taken={*fields, "claim"}).rename(columns={ENDED: f"run {ENDED}"} if ENDED in settings else {})
    fixed = {name: value for name, value in settings.items() if name not in frame.columns and name not in data.dims}
    for name, value in reversed(fixed.items()):
        frame.insert(0, name, value_text(tuple(value)) if isinstance(value, list) else value)
    frame.insert(0, "claim", claim)
    return frame


def _checks(result: Any) -> pd.DataFrame:
    rows = []
    for entry in entries_of(result, "result")["claims"]:
        about = {"verdict": entry.get("verdict"), "expected": entry.get("expected")}
        about |= {"seeds": entry.get("seeds"), "runs": entry.get("runs")}
        for number in numbers_of(entry):
            low, high = number.interval or (None, None)
            row = {"claim": entry["id"], "kind": number.kind, "name": number.name, "value": number.value, "low": low, "high": high}
            if number.bound is not None:
                words = {"bound": bound_text(number.bound), "bound_low": number.bound[0], "bound_high": number.bound[1]}
                row |= words | {"passed": number.passed}
            rows.append(row | about)
    return _table(rows)


def _table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows of checks, with the same types of columns whatever they hold."""
    import pandas as pd

    return pd.DataFrame(rows, columns=list(TYPES)).astype(TYPES)


def _runs(data: xr.Dataset, long: bool, taken: Collection[str] = ()) -> pd.DataFrame:
    """The runs of a Dataset; ``taken`` are names that no variable's column has, as are those of its fields."""
    import pandas as pd

    if "status" not in data or "seed" not in data["status"].dims:
        raise UsageError("this Dataset is not allowed: it has no status along seed, as jd.sweep returns it")
    taken = {*_fields(data), *taken, ENDED}
    data = data.rename({k: v for k, v in observable_columns(map(str, data.data_vars), taken).items() if k != v})
    dims = data["status"].dims
    own = {name: tuple(d for d in array.dims if d not in dims) for name, array in data.data_vars.items()}
    once = ["status", ENDED, *(name for name, more in own.items() if not more and name not in ("status", ENDED))]
    words = np.array(NAMES, dtype=object)[np.clip(data["status"].values, 0, len(NAMES) - 1)]
    data = data.assign({ENDED: (dims, words)}) if ENDED not in dims else data
    axes = dict.fromkeys(more for more in own.values() if more) if long else {}
    frames = [_flat(data[[*once, *(n for n, more in own.items() if more == axis)]], [*dims, *axis]) for axis in axes or [()]]
    if len(frames) == 1:
        return frames[0]
    everywhere = set.intersection(*(set(frame.columns) for frame in frames))
    gaps = [
        frame.astype({k: GAPS[t.kind] for k, t in frame.dtypes.items() if k not in everywhere and t.kind in GAPS})
        for frame in frames
    ]
    return pd.concat(gaps, ignore_index=True)


# of columns that have gaps: floats would round what is above 2^53
GAPS = {"i": "Int64", "u": "UInt64", "b": "boolean"}


def _flat(data: xr.Dataset, dims: Sequence[Hashable]) -> pd.DataFrame:
    """Variables as columns, with one row per place along their axes; an axis without labels counts from 0."""
    return data.to_dataframe(dim_order=list(dims)).reset_index()
