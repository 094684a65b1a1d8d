"""Claims on decoders trained with codes for a part of the trace: how often they are right, and whether they write codes at all."""

from __future__ import annotations

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
BOUNDS = {"solution": (None, 0.7), "all": (0.5, None), "curriculum": (0.5, None), "random": (0.5, None), "permuted": (0.5, None)}
LEVEL = 0.95


def right(ds: xr.Dataset, kind: str, level: float = LEVEL) -> tuple[float, tuple[float, float]]:
    """Share of right solutions of one kind in all problems of all runs at the end, with Wilson's interval."""
    one = ds.measured_accuracy.isel(step=-1).sel(kind=kind)
    asked = ds.asked.max()
    hits, count = int(np.round(float((one * asked).sum()))), int(one.count() * asked)
    return hits / count, wilson(hits, count, level)


def learned(ds: xr.Dataset) -> jd.Check:
    """A gate: with the trace as text, the task is learned."""
    return jd.gate("right solutions with the trace as text, mean over runs", right(ds, "text")[0], at_least=0.8)


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """Share of right solutions by kind, in all problems of all runs, and the differences that the paper's order is about."""
    jd.need(ds, kind=KINDS)
    end = ds.measured_accuracy.isel(step=-1)
    shares = []
    for kind, (low, high) in BOUNDS.items():
        value, ends = right(ds, kind)
        shares.append(jd.interval_within(f"right solutions, {LABELS[kind]}", value, ends, low=low, high=high))
    return [
        learned(ds),
        *shares,
        *(
            jd.mean_within(f"random m less {LABELS[k]}", end.sel(kind="random") - end.sel(kind=k), over="seed", low=0, level=LEVEL)
            for k in ("all", "curriculum")
        ),
    ]


def judge_used(ds: xr.Dataset) -> list[jd.Check]:
    """Codes that networks write, and tokens until the end of the solution."""
    jd.need(ds, kind=KINDS)
    end = ds.isel(step=-1)
    used, length = end.measured_used, end.measured_length
    shorter = length.sel(kind="permuted") - length.sel(kind="random")
    return [
        learned(ds),
        jd.mean_within("codes, random m", used.sel(kind="random"), over="seed", low=0.5, level=LEVEL),
        jd.mean_within("codes, random m, codes permuted", used.sel(kind="permuted"), over="seed", high=0.5, level=LEVEL),
        jd.mean_within("tokens that codes save", shorter, over="seed", low=0.5, level=LEVEL),
    ]


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
    seeds=3,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2502.03275, sections 3.2 and 4, and its ablation of replacement; task and sizes ours",
    plot=plot,
    caption="Right solutions (with Wilson's 95% interval of all problems), tokens until the end of the solution, and codes among "
    "them, by kind of sequences: a point a run.",
)
SETUP = (
    "decoders of two layers trained from scratch for 1000 steps of Adam on searches in chains of 10 names (traces of 8 tokens, "
    "codes of a trained autoencoder for 2 tokens each)"
)

CLAIMS = (
    STUDY.claim(
        id="assort.order",
        statement=f"{SETUP}",
        expected="measured",
        judge=judge_order,
        controls={"kinds exchanged": jd.rolled(measured_accuracy="kind")},
        rivals={"nothing is learned": jd.swap(measured_accuracy=0.5)},
        found={"right solutions, all replaced": (0.0, 1.0)},
    ),
    STUDY.claim(
        id="assort.used",
        statement=f"{SETUP}",
        expected="measured",
        judge=judge_used,
        controls={"kinds exchanged": jd.rolled(measured_used="kind", measured_length="kind")},
        rivals={
            "no code is written": jd.swap(measured_used=0.0),
            "codes are written as often as in training": jd.swap(measured_used=2.0),
            "all traces are as long": jd.swap(measured_length=13.0),
        },
        found={"codes, random m": (0.0, 4.0)},
    ),
)
