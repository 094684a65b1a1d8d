"""From labelled data to a verdict: the judge on the main runs, on every control, and the resolution of the judge.

Knows no theory and runs nothing: everything here is a function of Datasets.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.engine.claim import Claim, Control, Judge
from jaxdyn.engine.failure import Failure
from jaxdyn.engine.judge import Check, plain
from jaxdyn.errors import Inconclusive, UsageError
from jaxdyn.status import NAMES, OK

__all__ = ["ControlOutcome", "Decision", "by_cells", "decide", "decided", "decision_from", "error_decision"]

HALVINGS = 9  # of 14 decades: the threshold is found to 6%


@dataclasses.dataclass(frozen=True)
class ControlOutcome:
    """The judge's checks on one control; ``reason`` where it was not asked or could not decide."""

    name: str
    rejected: bool
    checks: list[Check]
    reason: str | None = None


@dataclasses.dataclass(frozen=True)
class Decision:
    """A verdict and all that it rests on."""

    verdict: str
    checks: list[Check] = dataclasses.field(default_factory=list)
    controls: list[ControlOutcome] = dataclasses.field(default_factory=list)
    resolution: dict[str, dict[str, Any]] = dataclasses.field(default_factory=lambda: {"scale": {}, "mix": {}})
    counterpart_checks: list[Check] = dataclasses.field(default_factory=list)
    diverged: int = 0
    message: str | None = None
    failure: Failure | None = None


def decision_from(saved: Mapping[str, Any]) -> Decision:
    """A decision from its fields as JSON gives them back (:func:`dataclasses.asdict`), but for a failure.

    Raises:
        ValueError: fields that are none of a decision's.
    """
    try:
        controls = [ControlOutcome(**{**c, "checks": _checks_from(c["checks"])}) for c in saved["controls"]]
        lists = {name: _checks_from(saved[name]) for name in ("checks", "counterpart_checks")}
        return Decision(**{**saved, **lists, "controls": controls, "failure": None})
    except (TypeError, KeyError) as error:
        raise ValueError(f"no decision: {error}") from None


def _checks_from(saved: list[dict[str, Any]]) -> list[Check]:
    return [Check(**{**c, "bound": tuple(c["bound"]) if isinstance(c["bound"], list) else c["bound"]}) for c in saved]


def error_decision(error: BaseException | Failure, author: Callable[..., Any] | None = None) -> Decision:
    """The decision when a trial or a judge raised; ``author`` is a function of the claim, to tell its files from libraries."""
    failure = error if isinstance(error, Failure) else Failure.of(error, author)
    return Decision("error", message=str(failure), failure=failure.text_only())


def _select_form(ds: xr.Dataset, form: str | None) -> xr.Dataset:
    if "form" not in ds.dims:
        return ds
    if form is None:
        raise UsageError(f"the trial predicts several forms ({', '.join(map(str, ds.form.values))}); the claim must name one")
    if form not in ds.form.values:
        raise UsageError(f"the trial predicts no form {form!r}; it predicts {', '.join(map(str, ds.form.values))}")
    return ds.sel(form=form, drop=True)


def ok_runs(ds: xr.Dataset) -> xr.Dataset:
    """The data with NaN in every run that is not ok (``status`` is kept)."""
    ok = ds.status == OK
    if bool(ok.all()):
        return ds
    run_dims = set(ds.status.dims)
    masked = {n: v.where(ok) for n, v in ds.data_vars.items() if n != "status" and run_dims <= set(v.dims)}
    return ds.assign(masked)


def _judged(judge: Judge, ds: xr.Dataset, *, narrowed: bool = False) -> list[Check]:
    """The judge's checks; where the caller narrowed the axes, a judge that misses an entry is inconclusive, not broken."""
    # a judge meets zeros, NaN runs and distorted data by design; checks fail on NaN
    # arithmetic on arrays of different coordinates is an error: xarray would drop the entries that only one of them has
    with np.errstate(all="ignore"), xr.set_options(arithmetic_join="exact"):
        try:
            checks = judge(ds.copy())  # a judge may write into its data
        except (IndexError, KeyError) as error:
            if narrowed:
                raise Inconclusive(f"the judge needs more values on an axis than it was given ({error})") from error
            raise
    if checks is None or (isinstance(checks, list | tuple) and not checks):
        raise UsageError("the judge returned no checks")
    if not isinstance(checks, list | tuple) or not all(isinstance(c, Check) for c in checks):
        got = "one Check" if isinstance(checks, Check) else f"{type(checks).__name__} {checks!r:.60}"
        raise UsageError(f"the judge returned {got}; it must return a list of checks, [jd.at_most(...), ...]")
    return list(checks)


def _rejects(judge: Judge, ds: xr.Dataset) -> bool:
    """Whether the judge rejects distorted data: an exception (a fit of zeros, say) counts as rejection, indecision does not."""
    try:
        return not all(c.passed for c in _judged(judge, ds))
    except Inconclusive:
        return False
    except Exception:
        return True


def _smallest(rejected: Callable[[float], bool]) -> float | None:
    """The smallest share in [1e-14, 1] that is rejected, by bisection on its logarithm; None if 1 is not."""
    if not rejected(1.0):
        return None
    low, high = -14.0, 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if rejected(10.0**middle) else (middle, high)
    return float(10.0**high)


def _with(ds: xr.Dataset, **arrays: Any) -> xr.Dataset:
    """The data with other numbers in some variables; ``assign`` would align and merge what has the same axes anyway."""
    changed = ds.copy()
    for name, array in arrays.items():
        changed[name].data = array
    return changed


def _reads(judge: Judge, ds: xr.Dataset, name: str) -> bool:
    """Whether the judge reads a variable: without its numbers it rejects, cannot decide, or raises."""
    try:
        return not all(c.passed for c in _judged(judge, _with(ds, **{name: ds[name].values * np.nan})))
    except Exception:
        return True


def _scale(judge: Judge, ds: xr.Dataset) -> dict[str, float | None]:
    """Per predicted variable that the judge reads: the smallest ε at which both (1+ε) and (1−ε) times it are rejected."""
    found: dict[str, float | None] = {}
    for name in [str(n) for n in ds.data_vars if str(n).startswith("predicted_")]:
        if not np.issubdtype(ds[name].dtype, np.floating):
            found[name.removeprefix("predicted_")] = None
            continue

        if not _reads(judge, ds, name):
            continue  # other claims share this trial

        def rejected(eps: float, name: str = name) -> bool:
            return all(_rejects(judge, _with(ds, **{name: ds[name].values * factor})) for factor in (1 + eps, 1 - eps))

        found[name.removeprefix("predicted_")] = _smallest(rejected)
    return found


def _blend(main: xr.Dataset, control: xr.Dataset, share: float) -> xr.Dataset:
    mixed: dict[str, Any] = {}
    for name, values in main.data_vars.items():
        if name != "status" and name in control and np.issubdtype(values.dtype, np.floating):
            mixed[str(name)] = (1 - share) * values.values + share * control[name].values
    return _with(main, **mixed)


def _blendable(main: xr.Dataset, control: xr.Dataset) -> str | None:
    """Why two Datasets cannot be blended run by run; None if they can."""
    for name, values in main.data_vars.items():
        if name in control and control[name].dims == values.dims and control[name].shape == values.shape:
            continue
        return f"{name} has another shape"
    for axis in main.coords:
        if axis in control.coords and not main[axis].equals(control[axis]):
            return f"another {axis}"
    return None


def _judge_control(
    name: str, control: Control, judge: Judge, main: xr.Dataset, data: xr.Dataset, upheld: bool
) -> tuple[ControlOutcome, Any]:
    """The control's outcome, and its *mix*: the smallest share of it in the main data that is rejected."""
    failed = data.status != OK
    if bool(failed.all()):
        word = NAMES[int(data.status.values.flat[0])]
        check = Check("share of runs that are not ok", 1.0, 1.0, control.diverges)
        return ControlOutcome(name, control.diverges, [check], f"all runs: {word}"), None
    if control.diverges:
        return ControlOutcome(name, False, [], "declared to diverge, but some runs are ok"), None
    good = ok_runs(data)
    try:
        checks = _judged(judge, good)
    except Inconclusive as reason:
        return ControlOutcome(name, False, [], str(reason)), None
    outcome = ControlOutcome(name, not all(c.passed for c in checks), checks)
    obstacle = _blendable(main, good)
    if obstacle is not None or not outcome.rejected or not upheld:
        return dataclasses.replace(outcome, reason=None if obstacle is None else f"not blended: {obstacle}"), None
    return outcome, _smallest(lambda share: _rejects(judge, _blend(main, good, share)))


def decide(claim: Claim, data: xr.Dataset, control_data: dict[str, xr.Dataset], *, narrowed: bool = False) -> Decision:
    """Judge a claim.

    Args:
        claim: the claim.
        data: its runs.
        control_data: for every control that is a setting: its runs. Controls that are functions act on ``data``.
        narrowed: the caller overrode fields of the claim's grid, so that an axis may lack what the judge needs.

    Returns:
        The decision; an exception of the judge makes it ``error``.
    """
    diverged = int((data.status != OK).sum())
    try:
        return dataclasses.replace(_decide(claim, data, control_data, narrowed), diverged=diverged)
    except Exception as error:
        return dataclasses.replace(error_decision(error, claim.judge), diverged=diverged)


def _decide(claim: Claim, data: xr.Dataset, control_data: dict[str, xr.Dataset], narrowed: bool) -> Decision:
    ok_share = float((data.status == OK).mean())
    whole = ok_runs(data)
    main = _select_form(whole, claim.form)
    if ok_share < claim.min_ok or ok_share == 0:
        bad = data.status.values[data.status.values != OK]
        kinds = ", ".join(sorted({NAMES[int(code)] for code in bad}))
        return Decision(
            "inconclusive", message=f"{len(bad)} of {data.status.size} runs are not ok ({kinds}); {claim.min_ok:.0%} are needed"
        )
    try:
        checks = _judged(claim.judge, main, narrowed=narrowed)
    except Inconclusive as reason:
        return Decision("inconclusive", message=str(reason))
    upheld = all(c.passed for c in checks)
    counterpart: list[Check] = []
    if claim.expected == "refuted":
        try:
            counterpart = _judged(claim.judge, _select_form(whole, claim.counterpart), narrowed=narrowed)
        except Inconclusive as reason:
            return Decision("inconclusive", checks, message=f"counterpart: {reason}")
        if not upheld and not all(c.passed for c in counterpart):
            message = f"the same judge does not uphold the counterpart ({claim.counterpart}) on the same data"
            return Decision("inconclusive", checks, counterpart_checks=counterpart, message=message)
    controls, mixes = [], {}
    for name, control in claim.controls.items():
        if callable(control.breach):
            distorted = control.breach(main)
        else:
            distorted = _select_form(control_data[name], claim.form)
        outcome, mixes[name] = _judge_control(name, control, claim.judge, main, distorted, upheld)
        controls.append(outcome)
    scales = _scale(claim.judge, main) if upheld else {}
    verdict = _verdict(claim, upheld, controls, scales, mixes)
    return Decision(verdict, checks, controls, {"scale": scales, "mix": mixes}, counterpart)


def _verdict(claim: Claim, upheld: bool, controls: list[ControlOutcome], scales: dict[str, Any], mixes: dict[str, Any]) -> str:
    if claim.expected == "measured":
        return "measured"
    if not upheld:
        return "refuted"
    finite = any(v is not None and math.isfinite(v) for v in (*scales.values(), *mixes.values()))
    return "upheld" if controls and all(c.rejected for c in controls) and finite else "toothless"


def decided(verdict: str, expected: str) -> bool:
    """Whether a verdict is the expected one."""
    return verdict == expected


def by_cells(claim: Claim, data: xr.Dataset, fields: list[str]) -> list[dict[str, Any]]:
    """Judge each cell of the named fields separately: the map of where a claim holds, with the checks where there are any."""
    cells: list[dict[str, Any]] = []
    sizes = [data.sizes[f] for f in fields]
    for index in np.ndindex(*sizes):
        part = data.isel({f: [i] for f, i in zip(fields, index, strict=True)})
        at = {f: plain(part[f].values[0]) for f in fields}
        ok = float((part.status == OK).mean())
        if ok < claim.min_ok or ok == 0:
            cells.append({"at": at, "verdict": "inconclusive", "failed": f"{1 - ok:.0%} of the runs are not ok"})
            continue
        try:
            checks = _judged(claim.judge, _select_form(ok_runs(part), claim.form), narrowed=True)
        except Inconclusive as reason:
            cells.append({"at": at, "verdict": "inconclusive", "failed": str(reason)})
            continue
        except Exception as error:
            cells.append({"at": at, "verdict": "error", "failed": error_decision(error, claim.judge).message})
            continue
        failed = [c for c in checks if not c.passed]
        seen = [dataclasses.asdict(c) for c in checks]
        words = "; ".join(c.name for c in failed) or None
        cells.append({"at": at, "verdict": "refuted" if failed else "upheld", "failed": words, "checks": seen})
    return cells
