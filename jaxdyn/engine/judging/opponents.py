"""Data of controls and rivals, checked before they are judged, and numbers that rivals predict for checks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from jaxdyn.engine.base.failure import PACKAGE, source_file, written
from jaxdyn.engine.claims.claim import Claim, Control
from jaxdyn.engine.judging.check import Check
from jaxdyn.engine.judging.decision import Outcome
from jaxdyn.engine.judging.judged_runs import select_form
from jaxdyn.engine.judging.resolution import guarded
from jaxdyn.errors import Inconclusive, UsageError
from jaxdyn.status import NAMES, OK

__all__ = ["about", "answers_on_edit", "control_runs", "edited_runs", "failed_control", "rival_numbers", "rival_runs"]

T = TypeVar("T")


@contextlib.contextmanager
def about(claim: Claim, part: str, name: str) -> Iterator[None]:
    """Inside the ``with`` block, an exception is of this ``part`` (a control or rival) of the claim.

    Where no function of the author's raised it or is to blame, its place is where the part is written.
    """
    try:
        yield
    except Inconclusive:
        raise
    except Exception as error:
        error.part = f"{part} {name!r}"  # type: ignore[attr-defined]
        author = getattr(error, "author", None)
        file = source_file(author)
        if author is None or file is None or Path(file).is_relative_to(PACKAGE / "engine"):  # jd.swap and the like
            error.author = written((claim.judge, claim.trial), claim.id, part, name)  # type: ignore[attr-defined]
        raise


def control_runs(name: str, control: Control, claim: Claim, main: xr.Dataset, control_data: dict[str, xr.Dataset]) -> xr.Dataset:
    """The data of a control: its own runs, or the main runs as its function edits them."""
    if callable(control.breach):
        return edited_runs(f"control {name!r}", control.breach, main)
    return select_form(control_data[name], claim.form)


def failed_control(name: str, control: Control, data: xr.Dataset) -> Outcome | None:
    """The outcome of a control that is decided by how its runs end; None if they have to be judged."""
    if bool((data.status != OK).all()):
        word = NAMES[int(data.status.values.flat[0])]
        check = Check("share of runs that are not ok", 1.0, (1.0, 1.0), control.diverges)
        return Outcome(name, control.diverges, [check], f"all runs: {word}")
    if control.diverges:
        return Outcome(name, False, [], "declared to diverge, but some runs are ok")
    return None


def rival_numbers(
    name: str, theory: Mapping[str, Any], main: xr.Dataset, known: Sequence[str], narrowed: bool = False
) -> dict[str, float]:
    """The numbers that a rival predicts for checks or readings, by their names.

    Raises:
        Inconclusive: it predicts one that the judge does not return, and the caller narrowed the axes.
        UsageError: it predicts one that the judge does not return, or something other than a number.
    """
    if unknown := [check for check in theory if check not in known]:
        if narrowed:
            raise Inconclusive(f"it speaks of {unknown[0]!r}, which is not asked on these runs")
        raise UsageError(f"rival {name!r} speaks of {unknown[0]!r}; the judge has {', '.join(map(repr, known))}")
    numbers = {check: value(guarded(main)) if callable(value) else value for check, value in theory.items()}
    for check, value in numbers.items():
        if isinstance(value, bool) or np.size(value) != 1 or np.asarray(value).dtype.kind not in "iuf":
            raise UsageError(f"rival {name!r} says {value!r:.60} of {check!r}, which is not allowed: it is one number")
    return {check: float(np.asarray(value).reshape(())) for check, value in numbers.items()}


def rival_runs(name: str, theory: Callable[[xr.Dataset], xr.Dataset], main: xr.Dataset) -> xr.Dataset:
    """The main runs with a rival's predictions.

    Raises:
        UsageError: as for :func:`edited_runs`, or the rival changes measured or recorded values: it is no theory of these runs.
    """
    ds = edited_runs(f"rival {name!r}", theory, main)
    for variable, before in main.data_vars.items():
        if not str(variable).startswith("predicted_") and not (variable in ds and _same(ds[variable], before)):
            raise _blamed(
                f"rival {name!r}",
                theory,
                f"another {variable}" if variable in ds else f"it without {variable}",
                "a rival replaces predictions (predicted_…) and leaves what was measured alone; other data are a control's",
            )
    return ds


def _same(one: xr.DataArray, other: xr.DataArray) -> bool:
    return one.variable.data is other.variable.data or one.variable.equals(other.variable)


def edited_runs(what: str, edit: Callable[[xr.Dataset], xr.Dataset], main: xr.Dataset) -> xr.Dataset:
    """The main runs as a rival, or a control that is a function, edits them.

    Raises:
        UsageError: the result is not a Dataset of runs, or a prediction or measurement has no number left.
    """
    ds = edit(guarded(main))
    if (fault := _fault(ds, main)) is not None:
        raise _blamed(what, edit, fault)
    return _runs_first(ds, main)


def _runs_first(ds: xr.Dataset, main: xr.Dataset) -> xr.Dataset:
    """The data with axes of runs before a variable's own, as in the main runs; ``xr.where`` puts its condition's axes first."""
    moved = {}
    for name, values in ds.data_vars.items():
        runs = [axis for axis in main.status.dims if axis in values.dims]
        if list(values.dims[: len(runs)]) != runs:
            moved[name] = values.transpose(*runs, ...)
    return ds.assign(moved) if moved else ds


def _blamed(what: str, edit: Any, fault: str, allowed: str = "it must return the Dataset with other numbers") -> UsageError:
    error = UsageError(f"{what} returned {fault}; {allowed}")
    error.author = edit
    return error


def _fault(ds: Any, main: xr.Dataset) -> str | None:
    """What makes an edited Dataset useless for any judge; None if nothing."""
    if not isinstance(ds, xr.Dataset):
        return f"{type(ds).__name__} {ds!r:.60}"
    for name in (name for name in main.data_vars if name in ds and str(name).startswith(("predicted_", "measured_"))):
        if _numbers(main[name]) and not _numbers(ds[name]):
            return f"{name} without any number, which no check can tell from the truth"
    if "status" not in ds:
        return "it without status"
    known = bool(ds.status.isin(range(len(NAMES))).all())
    return None if known else f"it with the status {np.unique(ds.status.values)}, of which not all are one"


def answers_on_edit(what: str, edit: Any, main: xr.Dataset, ds: xr.Dataset, ask: Callable[[], list[T]]) -> list[T]:
    """The judge's answers on edited runs; if it raises over a variable or axis that they lack, the error names the edit."""
    try:
        return ask()
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
    """Whether any entry is a number, not NaN."""
    return bool(values.notnull().any())
