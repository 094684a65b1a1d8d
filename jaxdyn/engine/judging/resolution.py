"""Resolution of a judge: the smallest distortion of the data that it rejects, by bisection.

The judge is called some fifty times. At most :data:`SEEDS` seeds are distorted: with more it would be at least as sharp, and would
take as long as the runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from jaxdyn.engine.base.failure import is_of_code, let_mistakes_through, missing_word
from jaxdyn.engine.claims.claim import Judge
from jaxdyn.engine.judging.check import Check, Reading, all_passed
from jaxdyn.engine.judging.estimate import Estimated
from jaxdyn.engine.judging.judged_runs import asked as asked_on
from jaxdyn.errors import Inconclusive, UsageError

__all__ = [
    "SEEDS",
    "blend",
    "first_seeds",
    "guarded",
    "judged",
    "why_not_blended",
    "read",
    "rejects",
    "same_seeds",
    "scale",
    "seeds_distorted",
    "smallest",
]

FLOOR = -14.0  # decades; smaller distortions are not tried
SEEDS = 1024  # distorted at most: as many as any claim of jaxdyn has by itself
HALVINGS = 9  # of 14 decades, which give the threshold to 6%
STARTS = (1.0, 0.5, 0.1)  # of the search for a scale: ε = 1 leaves no prediction, which some judges cannot decide on


def judged(judge: Judge, ds: xr.Dataset, *, narrowed: bool = False, opponent: bool = False) -> list[Check]:
    """The judge's checks. A missing entry of an axis is inconclusive, rather than an error, if the caller narrowed the axes.

    A variable that the runs do not have is an error all the same: narrowed runs have the same variables and axes.

    Args:
        judge: of a claim.
        ds: labelled runs.
        narrowed: whether the axes may lack values that the judge needs.
        opponent: whether the runs are a control's or edited by a rival.

    Raises:
        Inconclusive: the judge cannot decide on these data.
        UsageError: the judge returned anything but a list of checks.
    """
    checks = [c for c in _answers(judge, ds, narrowed, opponent) if _is(c, Check)]
    if all(c.gate for c in checks):
        raise UsageError("the judge returned gates only; at least one check must decide the statement")
    return checks


def read(judge: Judge, ds: xr.Dataset, *, narrowed: bool = False, opponent: bool = False) -> tuple[list[Check], list[Reading]]:
    """The gates and the readings of a measured claim's judge; arguments and errors as for :func:`judged`."""
    answers = _answers(judge, ds, narrowed, opponent)
    readings = [r for r in answers if isinstance(r, Reading)]
    if checks := [c.name for c in answers if isinstance(c, Check) and not c.gate]:
        raise UsageError(f"a measured claim has readings, which have no bound; {checks[0]!r} is a check: jd.mean_reading(...)")
    if not readings:
        raise UsageError("the judge returned gates only; a measured claim has at least one reading")
    return [c for c in answers if isinstance(c, Check)], readings


def _is(one: Check | Reading, kind: type[Check]) -> bool:
    if not isinstance(one, kind):
        raise UsageError(f"{one.name!r} is a reading, which decides nothing; a claim to be upheld or refuted has checks")
    return True


def _answers(judge: Judge, ds: xr.Dataset, narrowed: bool, opponent: bool) -> list[Any]:
    """The judge's answers, checks and readings; errors as for :func:`judged`."""
    asked = guarded(ds)
    if opponent:
        asked.attrs["opponent"] = True
    # judges are run on zeros, NaN runs and distorted data by design; NaN decides nothing
    # arithmetic on arrays of different coordinates is an error: xarray would drop the entries that only one of them has
    with np.errstate(all="ignore"), xr.set_options(arithmetic_join="exact"), asked_on(asked):
        try:
            answers = judge(asked)
        except (IndexError, KeyError) as error:
            if narrowed and not is_of_code(error) and _may_be_cut_off(missing_word(error), asked):
                raise Inconclusive(f"the judge needs more values on an axis than it was given ({error})") from error
            raise
    if answers is None or (isinstance(answers, list | tuple) and not answers):
        raise UsageError("the judge returned no checks")
    if not isinstance(answers, list | tuple) or not all(isinstance(c, Check | Reading) for c in answers):
        got = (
            f"one {type(answers).__name__}" if isinstance(answers, Check | Reading) else f"{type(answers).__name__} {answers!r:.60}"
        )
        raise UsageError(f"the judge returned {got}; it must return a list of checks, [jd.at_most(...), ...]")
    names = [c.name for c in answers]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise UsageError(f"two answers of the judge are called {twice[0]!r}, which is not allowed: each has a name of its own")
    return [c.at(1.0) if isinstance(c, Estimated) else c for c in answers]


def _may_be_cut_off(word: str | None, ds: xr.Dataset) -> bool:
    """Whether a key that was not found may be a value of an axis, or the name of one; any key that is no text may be."""
    return word is None or word in ds.coords or any(axis.dtype.kind in "UO" for axis in ds.coords.values())


def guarded(ds: xr.Dataset) -> xr.Dataset:
    """A shallow copy with read-only arrays: a judge may add variables but not change numbers, which are judged again."""
    copy = ds.copy()
    for variable in copy.variables.values():
        array = variable.data
        if isinstance(array, np.ndarray) and array.flags.writeable:
            variable.data = array.view()
            variable.data.flags.writeable = False
    return copy


def rejects(judge: Judge, ds: xr.Dataset) -> bool:
    """Whether the judge rejects distorted data; an exception (a fit of zeros, say) counts as rejection, indecision does not.

    Not so an exception that no data could cure: it is the author's mistake.
    """
    try:
        return all_passed(judged(judge, ds)) is False
    except Inconclusive:
        return False
    except BaseException as error:
        let_mistakes_through(error)
        return True


def smallest(rejected: Callable[[float], bool], starts: tuple[float, ...] = (1.0,)) -> float | None:
    """The smallest rejected share, by bisection on its logarithm below the first start that is rejected.

    None if no start is rejected; 0 if every share is, however small, as for a sign, a count or an order.
    """
    start = next((share for share in starts if rejected(share)), None)
    if start is None:
        return None
    if rejected(10.0**FLOOR):
        return 0.0
    low, high = FLOOR, float(np.log10(start))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if rejected(10.0**middle) else (middle, high)
    return float(10.0**high)


def seeds_distorted(judge: Judge, ds: xr.Dataset) -> int | None:
    """Number of seeds that are distorted; None: all, since they are few, or since the judge does not pass on fewer."""
    if ds.sizes.get("seed", 0) <= SEEDS:
        return None
    try:
        return SEEDS if all_passed(judged(judge, first_seeds(ds, SEEDS))) else None
    except BaseException as error:
        let_mistakes_through(error)
        return None


def first_seeds(ds: xr.Dataset, count: int | None) -> xr.Dataset:
    """The runs of the first ``count`` seeds; None: of all seeds."""
    return ds if count is None or "seed" not in ds.dims else ds.isel(seed=slice(count))


def scale(judge: Judge, ds: xr.Dataset) -> dict[str, float | None]:
    """For every predicted variable that the judge reads, the smallest ε for which (1+ε) and (1−ε) times it are both rejected."""
    thresholds: dict[str, float | None] = {}
    for name in [str(n) for n in ds.data_vars if str(n).startswith("predicted_")]:
        if not np.issubdtype(ds[name].dtype, np.floating):
            thresholds[name.removeprefix("predicted_")] = None
            continue
        if not _reads(judge, ds, name):
            continue  # other claims share this trial

        def rejected(eps: float, name: str = name) -> bool:
            return all(rejects(judge, _with(ds, **{name: ds[name].values * factor})) for factor in (1 + eps, 1 - eps))

        thresholds[name.removeprefix("predicted_")] = smallest(rejected, STARTS)
    return thresholds


def _reads(judge: Judge, ds: xr.Dataset, name: str) -> bool:
    """Whether the judge reads a variable: with NaN in it, the judge does not pass."""
    try:
        return all_passed(judged(judge, _with(ds, **{name: ds[name].values * np.nan}))) is not True
    except BaseException as error:
        let_mistakes_through(error)
        return True


def _with(ds: xr.Dataset, **arrays: Any) -> xr.Dataset:
    """The data with other numbers in some variables; ``assign`` would waste time on aligning equal axes."""
    changed = ds.copy()
    for name, array in arrays.items():
        changed[name].data = array
    return changed


def blend(main: xr.Dataset, control: xr.Dataset, share: float) -> xr.Dataset:
    """``(1 − share)·main + share·control``, run by run, in every floating-point variable.

    A share of 0 or 1 is the one or the other, infinite numbers included; opposite infinities have no number between them.
    """
    mixed: dict[str, Any] = {}
    for name, values in main.data_vars.items():
        if name != "status" and name in control and np.issubdtype(values.dtype, np.floating):
            own, other = values.values, control[name].values
            with np.errstate(invalid="ignore"):
                mixed[str(name)] = own if share == 0 else other if share == 1 else (1 - share) * own + share * other
    return _with(main, **mixed)


def same_seeds(main: xr.Dataset, control: xr.Dataset) -> xr.Dataset:
    """The main data at the seeds of a control, if they include all of them; else all main data."""
    if "seed" not in main.dims or "seed" not in control.dims or not np.isin(control.seed, main.seed).all():
        return main
    return main.sel(seed=control.seed)


def why_not_blended(main: xr.Dataset, control: xr.Dataset) -> str | None:
    """Why two Datasets cannot be blended run by run; None if they can."""
    for name, values in main.data_vars.items():
        if name in control and control[name].dims == values.dims and control[name].shape == values.shape:
            continue
        return f"{name} has another shape"
    for axis in main.coords:
        if axis in control.coords and not main[axis].equals(control[axis]):
            return f"another {axis}"
    return None
