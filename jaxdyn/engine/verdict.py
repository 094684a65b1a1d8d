"""From labelled data to a verdict: the judge on the main runs, on every control and rival, and how sharp it is.

Knows no theory and runs nothing: everything here is a function of Datasets.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.engine.claim import Claim, Control, Rival
from jaxdyn.engine.contract import Assumption
from jaxdyn.engine.decision import Decision, Outcome, error_decision, teeth
from jaxdyn.engine.failure import let_through
from jaxdyn.engine.judge import Check, all_passed, plain
from jaxdyn.engine.resolution import blend, guarded, judged, obstacle, rejects, same_seeds, scale, smallest
from jaxdyn.errors import Inconclusive, UsageError
from jaxdyn.status import NAMES, OK

__all__ = ["by_cells", "decide", "judge_cell", "ok_runs", "outside"]


def decide(
    claim: Claim, data: xr.Dataset, control_data: dict[str, xr.Dataset], *, narrowed: bool = False, recorded: bool = True
) -> Decision:
    """Judge a claim.

    Args:
        claim: the claim.
        data: its runs.
        control_data: for every control that is a setting: its runs. Controls that are functions act on ``data``.
        narrowed: the caller overrode fields of the claim's grid, so that an axis may lack what the judge needs.
        recorded: what a measured claim has found was recorded on such runs; on other grids it is not compared.

    Returns:
        The decision; an exception of the judge makes it ``error``.
    """
    diverged = int((data.status != OK).sum())
    if not recorded:
        claim = dataclasses.replace(claim, found=None)
    try:
        count = int(outside(claim, data).sum())
        return dataclasses.replace(_decide(claim, data, control_data, narrowed), diverged=diverged, outside=count)
    except BaseException as error:
        let_through(error)
        return dataclasses.replace(error_decision(error, getattr(error, "author", None) or claim.judge), diverged=diverged)


def _decide(claim: Claim, data: xr.Dataset, control_data: dict[str, xr.Dataset], narrowed: bool) -> Decision:
    if (obstacle_ := _too_few(claim, data)) is not None:
        return Decision("inconclusive", message=obstacle_)
    whole = ok_runs(data, outside(claim, data))
    main = _select_form(whole, claim.form)
    try:
        everything = judged(claim.judge, main, narrowed=narrowed)
    except Inconclusive as reason:
        return Decision("inconclusive", message=str(reason))
    checks, gates = [c for c in everything if not c.gate], [c for c in everything if c.gate]
    decision = Decision("upheld", checks, gates)
    if failed := [c for c in gates if not c.passed]:
        return dataclasses.replace(decision, verdict="inconclusive", message=f"gate not met: {'; '.join(map(str, failed))}")
    passed = all_passed(checks)
    if claim.expected == "refuted":
        try:
            counterpart = judged(claim.judge, _select_form(whole, claim.counterpart), narrowed=narrowed)
        except Inconclusive as reason:
            return dataclasses.replace(decision, verdict="inconclusive", message=f"counterpart: {reason}")
        decision = dataclasses.replace(decision, counterpart_checks=[c for c in counterpart if not c.gate])
        if passed is False and all_passed(counterpart) is not True:
            message = f"the same judge does not uphold the counterpart ({claim.counterpart}) on the same data"
            return dataclasses.replace(decision, verdict="inconclusive", message=message)
    controls, mixes = [], {}
    for name, control in claim.controls.items():
        if callable(control.breach):
            breached = edited(f"control {name!r}", control.breach, main)
        else:
            breached = _select_form(control_data[name], claim.form)
        outcome, mixes[name] = _judge_control(name, control, claim, main, breached, passed is True)
        controls.append(outcome)
    rivals = [_judge_rival(name, rival, claim, main) for name, rival in claim.rivals.items()]
    scales = scale(claim.judge, main) if passed else {}
    decision = dataclasses.replace(decision, controls=controls, rivals=rivals, resolution={"scale": scales, "mix": mixes})
    verdict, why = _verdict(claim, passed, decision)
    return dataclasses.replace(decision, verdict=verdict, message=why)


def _verdict(claim: Claim, passed: bool | None, decision: Decision) -> tuple[str, str | None]:
    """The verdict and, where it is not plain, why."""
    if claim.expected == "measured":
        differ = _differing(claim, decision.checks)
        if differ:
            return "inconclusive", f"not what was found before: {'; '.join(differ)}"
        blind = _toothless(claim, decision)
        return ("measured", None) if blind is None else ("toothless", blind)
    if passed is None:
        return "inconclusive", f"undecided: {'; '.join(str(c) for c in decision.checks if c.passed is None)}"
    if not passed:
        return "refuted", None
    blind = _toothless(claim, decision)
    return ("upheld", None) if blind is None else ("toothless", blind)


def _toothless(claim: Claim, decision: Decision) -> str | None:
    """Which control or rival nothing rejects, or which check rejects nothing; None if all have teeth."""
    opponents = [*decision.controls, *decision.rivals]
    if accepted := [o.name for o in opponents if not o.rejected]:
        return f"not rejected by any check: {', '.join(accepted)}"
    if harmless := [name for name, rejected in teeth(decision.checks, opponents).items() if not rejected]:
        return f"rejects no control and no rival: {', '.join(harmless)}"
    if claim.expected == "measured":
        return None
    values = [v for kind in decision.resolution.values() for v in kind.values()]
    if not opponents or not any(v is not None and math.isfinite(v) for v in values):
        return "no distortion of the prediction and no share of a control is rejected: the resolution is not finite"
    return None


def _differing(claim: Claim, checks: Sequence[Check]) -> list[str]:
    """Checks of a measured claim whose value, with its interval, does not meet what was recorded.

    Raises:
        UsageError: where something was recorded, but not of these checks, or not of all.
    """
    if claim.found is None:
        return []
    if unlike := {c.name for c in checks} ^ claim.found.keys():
        names = ", ".join(sorted(unlike))
        raise UsageError(f"{claim.id}: found= records each check by its name; checks and records differ in {names}")
    differ = []
    for c in checks:
        low, high = claim.found[c.name]
        ends = c.interval or (c.value, c.value)
        if not (ends[0] <= high and ends[1] >= low):
            differ.append(f"{c.name} is {c.value:.4g}, found was {low:.4g} to {high:.4g}")
    return differ


def _judge_control(
    name: str, control: Control, claim: Claim, main: xr.Dataset, data: xr.Dataset, upheld: bool
) -> tuple[Outcome, Any]:
    """The control's outcome, and its *mix*: the smallest share of it in the main data that is rejected."""
    failed = data.status != OK
    if bool(failed.all()):
        word = NAMES[int(data.status.values.flat[0])]
        check = Check("share of runs that are not ok", 1.0, 1.0, control.diverges)
        return Outcome(name, control.diverges, [check], f"all runs: {word}"), None
    if control.diverges:
        return Outcome(name, False, [], "declared to diverge, but some runs are ok"), None
    good = ok_runs(data)
    try:
        checks = _asked(f"control {name!r}", control.breach, claim, main, good)
    except Inconclusive as reason:
        return Outcome(name, False, [], str(reason)), None
    outcome = Outcome(name, all_passed(checks) is False, checks)
    main = same_seeds(main, good)
    why = obstacle(main, good)
    if why is not None or not outcome.rejected or not upheld:
        return dataclasses.replace(outcome, reason=None if why is None else f"not blended: {why}"), None
    return outcome, smallest(lambda share: rejects(claim.judge, blend(main, good, share)))


def edited(what: str, edit: Rival, main: xr.Dataset) -> xr.Dataset:
    """What a rival, or a control that is a function, makes of the main runs.

    Raises:
        UsageError: it returns something else than runs, or predictions or measurements without any number in them.
    """
    ds = edit(guarded(main))
    if (fault := _fault(ds, main)) is not None:
        raise _blamed(what, edit, fault)
    return ds


def _blamed(what: str, edit: Rival, fault: str) -> UsageError:
    error = UsageError(f"{what} returned {fault}; it must return the Dataset with other numbers")
    error.author = edit
    return error


def _fault(ds: Any, main: xr.Dataset) -> str | None:
    """What makes a Dataset that was made of the main runs useless for any judge."""
    if not isinstance(ds, xr.Dataset):
        return f"{type(ds).__name__} {ds!r:.60}"
    for name in (name for name in main.data_vars if name in ds and str(name).startswith(("predicted_", "measured_"))):
        if _numbers(main[name]) and not _numbers(ds[name]):
            return f"{name} without any number, which no check can tell from the truth"
    if "status" not in ds:
        return "it without status"
    known = bool(ds.status.isin(range(len(NAMES))).all())
    return None if known else f"it with the status {np.unique(ds.status.values)}, of which not all are one"


def _asked(what: str, edit: Any, claim: Claim, main: xr.Dataset, ds: xr.Dataset) -> list[Check]:
    """The judge's checks of edited runs, gates aside; where it stumbles over what they lack, the edit is named."""
    try:
        return [c for c in judged(claim.judge, ds) if not c.gate]
    except Exception as error:
        if not callable(edit) or isinstance(error, Inconclusive):
            raise
        for name, before in main.data_vars.items():
            if name not in ds:
                raise _blamed(what, edit, f"it without {name}") from error
            if not {*before.dims} <= {*ds[name].dims}:
                axes, known = (", ".join(map(str, dims)) or "none" for dims in (ds[name].dims, before.dims))
                raise _blamed(what, edit, f"{name} with the axes {axes}, not {known}") from error
        raise


def _numbers(values: xr.DataArray) -> bool:
    """Whether there is any number."""
    return bool(values.notnull().any())


def _judge_rival(name: str, rival: Rival, claim: Claim, main: xr.Dataset) -> Outcome:
    what = f"rival {name!r}"
    try:
        checks = _asked(what, rival, claim, main, edited(what, rival, main))
    except Inconclusive as reason:
        return Outcome(name, False, [], str(reason))
    return Outcome(name, all_passed(checks) is False, checks)


# runs


def ok_runs(ds: xr.Dataset, left_out: xr.DataArray | None = None) -> xr.Dataset:
    """The data with NaN in every run that is not ok or left out, being outside of the assumptions (``status`` is kept)."""
    ok = ds.status == OK if left_out is None else (ds.status == OK) & ~left_out
    if bool(ok.all()):
        return ds
    run_dims = set(ds.status.dims)
    masked = {n: v.where(ok) for n, v in ds.data_vars.items() if n != "status" and run_dims <= set(v.dims)}
    return ds.assign(masked)


def outside(claim: Claim, ds: xr.Dataset) -> xr.DataArray:
    """Runs that are ok but do not meet the claim's assumptions."""
    inside = xr.ones_like(ds.status, bool)
    for assumption in claim.assumes:
        values = _assumed(assumption, ds)
        inside = inside & (values > assumption.low) & (values < assumption.high)
    unmet: xr.DataArray = (ds.status == OK) & ~inside
    return unmet


def _assumed(assumption: Assumption, ds: xr.Dataset) -> xr.DataArray:
    name = f"assumed_{assumption.name}"
    if name not in ds:
        there = ", ".join(str(n).removeprefix("assumed_") for n in ds.data_vars if str(n).startswith("assumed_")) or "none"
        raise UsageError(f"the trial gives no assumed {assumption.name!r}; it gives {there}")
    values: xr.DataArray = ds[name]
    return values


def _too_few(claim: Claim, data: xr.Dataset) -> str | None:
    """Why too few runs are ok and inside the assumptions to judge; None if there are enough."""
    ok = data.status == OK
    if float(ok.mean()) < claim.min_ok or not bool(ok.any()):
        bad = data.status.values[data.status.values != OK]
        kinds = ", ".join(sorted({NAMES[int(code)] for code in bad}))
        return f"{len(bad)} of {data.status.size} runs are not ok ({kinds}); {claim.min_ok:.0%} are needed"
    if not bool((ok & ~outside(claim, data)).any()):
        return f"no run lies inside the assumptions ({', '.join(map(str, claim.assumes))})"
    return None


def _select_form(ds: xr.Dataset, form: str | None) -> xr.Dataset:
    if "form" not in ds.dims:
        if form is not None:
            raise UsageError(f"the trial predicts no form {form!r}: it has no axis of forms; leave out form=")
        return ds
    if form is None:
        raise UsageError(f"the trial predicts several forms ({', '.join(map(str, ds.form.values))}); the claim must name one")
    if form not in ds.form.values:
        raise UsageError(f"the trial predicts no form {form!r}; it predicts {', '.join(map(str, ds.form.values))}")
    return ds.sel(form=form, drop=True)


def by_cells(claim: Claim, data: xr.Dataset, fields: list[str]) -> list[dict[str, Any]]:
    """Judge each cell of the named fields separately: the map of where a claim holds, with the checks where there are any."""
    sizes = [data.sizes[f] for f in fields]
    parts = (data.isel({f: [i] for f, i in zip(fields, index, strict=True)}) for index in np.ndindex(*sizes))
    return [{"at": {f: plain(part[f].values[0]) for f in fields}, **judge_cell(claim, part)} for part in parts]


def judge_cell(claim: Claim, part: xr.Dataset) -> dict[str, Any]:
    """The verdict of one cell, without controls; ``failed`` says which checks fail, which rivals pass, or why nothing is judged."""
    try:
        if (obstacle_ := _too_few(claim, part)) is not None:
            return {"verdict": "inconclusive", "failed": obstacle_}
        main = _select_form(ok_runs(part, outside(claim, part)), claim.form)
        checks = judged(claim.judge, main, narrowed=True)
    except Inconclusive as reason:
        return {"verdict": "inconclusive", "failed": str(reason)}
    except BaseException as error:
        let_through(error)
        return {"verdict": "error", "failed": error_decision(error, claim.judge).message}
    seen = [dataclasses.asdict(c) for c in checks]
    if unmet := [c.name for c in checks if c.gate and not c.passed]:
        return {"verdict": "inconclusive", "failed": f"gate not met: {'; '.join(unmet)}", "checks": seen}
    if all_passed(checks) and (alike := [name for name, rival in claim.rivals.items() if _passes(claim, rival, main)]):
        return {"verdict": "toothless", "failed": f"not rejected: {', '.join(alike)}", "checks": seen}
    verdict = {True: "upheld", False: "refuted", None: "inconclusive"}[all_passed(checks)]
    return {"verdict": verdict, "failed": "; ".join(c.name for c in checks if not c.passed) or None, "checks": seen}


def _passes(claim: Claim, rival: Rival, cell: xr.Dataset) -> bool:
    """Whether all checks pass on a rival in one cell; one that needs more cells than this is no rival there."""
    try:
        return all_passed([c for c in judged(claim.judge, edited("rival", rival, cell)) if not c.gate]) is True
    except BaseException as error:
        let_through(error)
        return False
