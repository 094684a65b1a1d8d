"""A variant of the transformer in training, read by the laws of several theories, and what decides whether a law holds in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn.instruments.law import Law, shuffled
from jaxdyn.laboratory.results import error_along, errors_of
from jaxdyn.laboratory.setting import Bench, observed
from jaxdyn.laboratory.variants import PLAIN, VARIANTS
from jaxdyn.plotting import COLORS, CYCLE
from jaxdyn.theories.cal import instrument as cal
from jaxdyn.theories.collapse.instrument import COLLAPSE
from jaxdyn.theories.galore.instrument import RANK
from jaxdyn.theories.joma.instrument import ENTROPY_LAW, JOMA, JOMA_ODE
from jaxdyn.theories.li2.instrument import FORECAST, FOURIER
from jaxdyn.theories.rev.instrument import REVERSAL
from jaxdyn.theories.sink.instrument import GROWTH
from jaxdyn.theories.snap.instrument import SNAP

OF_DESCENT, OF_ATTENTION = (cal.BALANCE, cal.EDGE, cal.DEVIATION, RANK), (JOMA, ENTROPY_LAW, JOMA_ODE, SNAP, GROWTH)
OF_FEATURES = (REVERSAL, COLLAPSE, FOURIER, FORECAST)
LAWS: dict[str, Law] = {law.name: law for law in (*OF_DESCENT, *OF_ATTENTION, *OF_FEATURES)}


@jd.setting
class Varied(Bench):
    """A variant of the plain block, and the laws that are read."""

    variant: str = PLAIN  # name of the variant, whose fields come before those of the setting
    laws: str = "balance"  # names of the laws that are read, joined by "+"

    def __post_init__(self) -> None:
        jd.require(self, self.variant in VARIANTS, f"variant is one of {', '.join(VARIANTS)}", "variant")
        named = all(name in LAWS for name in self.laws.split("+"))
        jd.require(self, named, f"laws are among {', '.join(LAWS)}, joined by +", "laws")


def trial(s: Varied, key: PRNGKeyArray) -> jd.Observables:
    """One variant in training, and both sides of every law along it."""
    fields = {f.name: getattr(s, f.name) for f in dataclasses.fields(s)}
    return observed(SimpleNamespace(**fields | VARIANTS[s.variant]), [LAWS[name] for name in s.laws.split("+")], key)


def last_errors(law: Law, ds: xr.Dataset) -> xr.DataArray:
    """Errors at the end, with the axis of variants."""
    error = errors_of(law, ds).isel(time=-1, drop=True)
    return error if "variant" in error.dims else error.expand_dims(variant=[str(np.atleast_1d(ds.variant)[0])])


def make_judge(
    law: Law, holds: Sequence[str], fails: Sequence[str], learned: float | None = None
) -> Callable[[xr.Dataset], list[jd.Check]]:
    """The mean error within the law's bound in the variants in which it holds, and beyond it in those in which it fails.

    With ``learned``, a gate: the loss at the end is at most that.
    """

    def judge(ds: xr.Dataset) -> list[jd.Check]:
        error = last_errors(law, ds)
        there = [str(name) for name in error.variant.values]
        decided = [name for name in there if name in (*holds, *fails)]
        if not decided:
            raise jd.Inconclusive("the statement is about none of these variants")
        gates = [] if learned is None else [jd.gate("loss at the end", ds.loss.isel(time=-1), at_most=learned)]
        return gates + [
            jd.mean_within(
                f"{name}: error of the law",
                error.sel(variant=name, drop=True),
                over="seed",
                **({"high": law.bound} if name in holds else {"low": law.bound}),
            )
            for name in decided
        ]

    return judge


def rivals(law: Law, *, course: bool = True, fails: bool = True) -> dict[str, Any]:
    """The mechanism switched off; of a predicted course, that at other times; where the law fails, that it holds there, too."""
    name = law.name

    def off(ds: xr.Dataset) -> xr.DataArray:
        sides = [ds[f"{side}_{name}"].transpose("time", ...) for side in ("predicted", "measured")]
        return sides[1].copy(data=np.asarray(law.off(*(side.values for side in sides))))

    found: dict[str, Any] = {"switched off": jd.off(**{f"predicted_{name}": off})}
    if course:
        found["its course at other times"] = jd.swap(**{f"predicted_{name}": lambda ds: shuffled(ds[f"predicted_{name}"])})
    if fails:
        found["it holds in every variant"] = jd.swap(**{f"predicted_{name}": f"measured_{name}"})
    return found


def make_plot(law: Law) -> Callable[[xr.Dataset, Figure], None]:
    """The error until each step, by variant."""

    def plot(ds: xr.Dataset, fig: Figure) -> None:
        ax = fig.subplots()
        parts = ds if "variant" in ds.dims else ds.expand_dims("variant")
        for name, color in zip(parts.variant.values, CYCLE * 3, strict=False):
            mean, low, high = error_along(law, parts.sel(variant=name, drop=True))
            ax.plot(ds.time, mean, color=color, label=str(name))
            ax.fill_between(ds.time, low, high, color=color, alpha=0.2, linewidth=0)
        ax.axhline(law.bound, linestyle=":", color=COLORS["theory"])
        ax.set(xlabel="step", ylabel="error", yscale="log")

    return plot
