"""Claims on decoders trained with codes for a part of the trace: how often they are right, and whether they write codes at all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import wilson
from jaxdyn.theories.assort.trials.order import KINDS, Assorted, trial

__all__ = ["CLAIMS", "LABELS", "PAPER", "judge_order", "judge_used", "right"]

LABELS = {
    "solution": "solution alone",
    "text": "trace as text",
    "all": "all replaced",
    "curriculum": "curriculum",
    "random": "random m",
    "permuted": "random m, codes permuted",
}
CODED = ("all", "curriculum", "random", "permuted")
CHANCE, LEAST = 0.65, 0.8  # marks: a coin is below the one, what learned the task above the other
LEVEL = 0.95


def right(ds: xr.Dataset, kind: str, level: float = LEVEL) -> tuple[float, tuple[float, float]]:
    """Share of right solutions of one kind in all problems of all runs at the end, with Wilson's interval."""
    one = ds.measured_accuracy.isel(step=-1).sel(kind=kind)
    asked = ds.asked.max()
    hits, count = int(np.round(float((one * asked).sum()))), int(one.count() * asked)
    return hits / count, wilson(hits, count, level)


def learned(ds: xr.Dataset) -> jd.Check:
    """A gate: with the trace as text, the task is learned."""
    return jd.gate("right solutions with the trace as text, in all runs", right(ds, "text")[0], at_least=LEAST)


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """Share of right solutions by kind, in all problems of all runs, and differences between kinds, on average over runs."""
    jd.need(ds, kind=KINDS)
    end = ds.measured_accuracy.isel(step=-1)
    shares = []
    for kind in ("solution", *CODED):
        value, ends = right(ds, kind)
        high = CHANCE if kind == "solution" else LEAST
        shares.append(jd.interval_within(f"right solutions, {LABELS[kind]}", value, ends, high=high))

    def less(kind: str, other: str, **bound: float) -> jd.Check:
        difference = end.sel(kind=kind) - end.sel(kind=other)
        return jd.mean_within(f"{LABELS[kind]} less {LABELS[other]}", difference, over="seed", level=LEVEL, **bound)

    return [
        learned(ds),
        *shares,
        less("text", "random", low=0.1),
        less("random", "all", high=0.3),
        less("random", "curriculum", high=0.3),
    ]


def judge_used(ds: xr.Dataset) -> list[jd.Check]:
    """Codes that networks write, and tokens until the end of the solution, on average over runs."""
    jd.need(ds, kind=KINDS)
    end = ds.isel(step=-1)
    used, length = end.measured_used, end.measured_length
    shorter = length.sel(kind="permuted") - length.sel(kind="random")
    return [
        learned(ds),
        jd.mean_within("codes, random m", used.sel(kind="random"), over="seed", low=0.1, high=2, level=LEVEL),
        jd.mean_within("codes, random m, codes permuted", used.sel(kind="permuted"), over="seed", high=0.1, level=LEVEL),
        jd.mean_within("tokens that codes save", shorter, over="seed", low=0.1, level=LEVEL),
    ]


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: nothing moves."""
    return ds.assign(measured_accuracy=xr.zeros_like(ds.measured_accuracy) + ds.measured_accuracy.isel(step=0))


def kinds_as(**given: str | float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival in which kinds are as right as others, or by a number."""

    def rival(ds: xr.Dataset) -> xr.Dataset:
        changed = ds.measured_accuracy.copy(deep=True)
        for kind, other in given.items():
            changed.loc[{"kind": kind}] = ds.measured_accuracy.sel(kind=other) if isinstance(other, str) else other
        return ds.assign(measured_accuracy=changed)

    return rival


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Right solutions, tokens and codes by kind."""
    axes = fig.subplots(1, 3)
    end = ds.isel(step=-1)
    kinds = [k for k in KINDS if k in ds.kind.values]
    names = ("measured_accuracy", "measured_length", "measured_used")
    for ax, name, label in zip(axes, names, ("right solutions", "tokens", "codes"), strict=True):
        for i, kind in enumerate(kinds):
            values = end[name].sel(kind=kind).values.ravel()
            ax.plot(values, np.full(values.size, i), "o", ms=4, color=plotting.COLORS["measured"])
            if name == "measured_accuracy":
                ax.plot(right(ds, kind)[1], [i, i], "-", color=plotting.COLORS["theory"])
        ax.set(xlabel=label, xlim=(0, None))
        ax.set_yticks(range(len(kinds)), [LABELS[k] if ax is axes[0] else "" for k in kinds])
        ax.invert_yaxis()


PAPER = jd.grid(
    Assorted,
    kind=list(KINDS),
    height=8,
    rate=4,
    codes=128,
    width=64,
    heads=4,
    hidden=256,
    batch=64,
    steps=8000,
    samples=20,
    lr=2e-3,
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Assorted, kind=list(KINDS)),
    paper=PAPER,
    seeds=6,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2502.03275, sections 3.2 and 4, and its ablation of replacement; task and sizes ours",
    plot=plot,
    caption="Right solutions (with Wilson's 95% interval of all problems), tokens until the end of the solution, and codes among "
    "them, by kind of sequences: a point a run.",
)
SETUP = (
    "decoders of two layers and width 32, trained from scratch for 1000 steps of Adam on searches in chains of 10 names (traces of "
    "8 tokens, codes of a trained autoencoder for 2 tokens each)"
)

CLAIMS = (
    STUDY.claim(
        id="assort.order",
        statement="Which way to replace tokens of a trace by codes serves training best? The paper has random $m$ above a "
        f"curriculum and above replacing all of the trace. In {SETUP}, "
        "that order is not seen: random $m$ solves 45% and 34% of new problems, the curriculum 47% and 38%, all replaced 54% and "
        "67%, random $m$ with permuted codes 50% and 72%, against 99% and 96% with the trace as text and 50% and 51% with the "
        "solution alone, where a coin has 50% (two sets of six runs). The interval of the difference between random $m$ and the "
        "curriculum contains 0 in both; all replaced is above random $m$ by 33 points in one.",
        expected="measured",
        judge=judge_order,
        controls={"kinds exchanged": jd.rolled(measured_accuracy="kind")},
        rivals={
            "nothing is learned": still,
            "all kinds are as right as with text": kinds_as(**dict.fromkeys(KINDS, "text")),
            "the paper's order, at its sharpest": kinds_as(random="text", all=0.5, curriculum=0.5),
        },
        found={  # sets of three and six seeds, with room for others
            "right solutions, solution alone": (0.45, 0.59),
            "right solutions, all replaced": (0.41, 0.74),
            "right solutions, curriculum": (0.28, 0.52),
            "right solutions, random m": (0.31, 0.55),
            "right solutions, random m, codes permuted": (0.25, 1.0),
            "trace as text less random m": (0.40, 0.75),
            "random m less all replaced": (-0.45, 0.10),
            "random m less curriculum": (-0.15, 0.20),
        },
    ),
    STUDY.claim(
        id="assort.used",
        statement="Does a network that was trained with a random number of codes write codes when it is free to? With codes of a "
        "trained autoencoder, 1.2 and 1.0 of 4 on average (two sets of six runs), with which it is done a token earlier; with "
        f"codes renamed at random in each example, none: it closes the codes at once and writes text. (In {SETUP}; $m$ is 0, 2, 4, "
        "6 or 8 in training.)",
        expected="measured",
        judge=judge_used,
        controls={"kinds exchanged": jd.rolled(measured_used="kind", measured_length="kind")},
        rivals={
            "no code is written": jd.swap(measured_used=0.0),
            "codes are written as often as in training": jd.swap(measured_used=2.0),
            "all sequences are as long": jd.swap(measured_length=13.0),
        },
        found={  # sets of three and six seeds, with room for others
            "codes, random m": (0.6, 1.6),
            "codes, random m, codes permuted": (0.0, 0.05),
            "tokens that codes save": (0.5, 1.5),
        },
    ),
)
