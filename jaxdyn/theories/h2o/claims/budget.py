r"""Claims on eviction in trained decoders: perplexity by policy and budget, shares of heavy tokens, costs of lost weight."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import spearman
from jaxdyn.theories.h2o.trials.budget import BUDGETS, Recall, trial

__all__ = ["CLAIMS", "LABELS", "judge_budget", "judge_loss", "judge_order", "judge_share"]

LABELS = {
    "full": "everything",
    "recent": "last keys",
    "random": "random and last keys",
    "streaming": "first and last keys",
    "sum": "H2O, summed",
    "mean": "H2O, mean",
    "decay": "H2O, decayed",
    "anti": "anti-H2O",
    "oracle": "oracle (not causal)",
}
FIFTH = 0.2  # of the sequence: the budget that the paper names
COMPARED = (0.1, 0.2, 0.4)
LEAST = 0.05  # nats a token


def trained(ds: xr.Dataset) -> jd.Check:
    """Gate: far questions are answered with the whole cache, on average over runs."""
    return jd.gate("right answers to far questions, mean over runs", ds.right.isel(step=-1).mean("seed"), at_least=0.8)


def over(ds: xr.Dataset, policy: str, against: str, budget: float = FIFTH) -> xr.DataArray:
    """Log of the perplexity under one policy over that under another one."""
    at = ds.measured_nats.sel(budget=budget, drop=True)
    return at.sel(policy=policy, drop=True) - at.sel(policy=against, drop=True)


def judge_budget(ds: xr.Dataset) -> list[jd.Check]:
    """Heavy hitters against the last keys alone, against random ones beside the last, and against their opposite."""
    jd.need(ds, policy=("sum", "recent", "random", "anti"), budget=BUDGETS)

    def less(policy: str, against: str) -> xr.DataArray:
        return xr.concat([over(ds, policy, against, b) for b in COMPARED], "budget")

    return [
        trained(ds),
        jd.mean_within("log perplexity, H2O less last keys", less("sum", "recent"), over="seed", high=-LEAST),
        jd.mean_within("log perplexity, H2O less random and last keys", less("sum", "random"), over="seed", high=-LEAST),
        jd.mean_within("log perplexity, anti-H2O less H2O", less("anti", "sum"), over="seed", low=LEAST),
    ]


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """Perplexities at a fifth of the sequence over that with everything, and orders that were expected."""
    jd.need(ds, policy=tuple(LABELS), budget=BUDGETS)
    cost = [
        jd.mean_within(
            f"log perplexity at 20% less that with everything: {LABELS[name]}", over(ds, name, "full"), over="seed", high=0.05
        )
        for name in LABELS
        if name != "full"
    ]
    pairs = (("random", "recent", FIFTH), ("anti", "recent", FIFTH), ("anti", "random", FIFTH), ("sum", "recent", 0.05))
    order = [
        jd.mean_within(f"log perplexity at {b:.0%}, {LABELS[a]} less {LABELS[c]}", over(ds, a, c, b), over="seed", low=0.0)
        for a, c, b in pairs
    ]
    return [trained(ds), *cost, *order]


def judge_share(ds: xr.Dataset) -> list[jd.Check]:
    """Share of the heaviest tokens: how it changes, and against that under uniform attention."""
    jd.need(ds, step=tuple(ds.step.values[[0, -1]]))
    end = ds.measured_top.isel(step=-1, drop=True)
    return [
        trained(ds),
        jd.mean_within(
            "share of the heaviest 5%, end less start", end - ds.measured_top.isel(step=0, drop=True), over="seed", low=0.0
        ),
        jd.mean_within("share of the heaviest 5%, end less uniform attention's", end - ds.uniform, over="seed", low=0.0),
        jd.mean_within("share of the heaviest 5% at the end", end, over="seed", low=0.95),
    ]


def judge_loss(ds: xr.Dataset) -> list[jd.Check]:
    """The bound on the change of a head's output, and the loss against the weight that is lost, over policies and budgets."""
    jd.need(ds, policy=tuple(LABELS), budget=BUDGETS)
    part = ds.sel(policy=[p for p in LABELS if p != "full"], budget=[b for b in BUDGETS if b < 1])
    cost = (part.measured_nats - ds.measured_nats.sel(policy="full", drop=True)).stack(case=("policy", "budget"))
    lost = part.measured_lost.stack(case=("policy", "budget"))
    tight = part.measured_tight.max(("policy", "budget"))
    slope = xr.cov(cost, lost, "case") / lost.var("case", ddof=1)
    return [
        trained(ds),
        jd.at_most("change of a head's output over its bound, every run", tight, 1 + 1e-4),
        jd.mean_within("the largest of these, mean over runs", tight, over="seed", low=0.8),
        jd.mean_within("rank correlation of loss and lost weight", spearman(cost, lost, "case"), over="seed", low=0.8),
        jd.mean_within("nats for each unit of lost weight", slope, over="seed", low=1.0),
    ]


def alike(*policies: str, like: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: these policies give what another one gives."""

    def rival(ds: xr.Dataset) -> xr.Dataset:
        nats = ds.measured_nats
        same = xr.where(nats.policy.isin(policies), nats.sel(policy=like, drop=True), nats)
        return ds.assign(measured_nats=same.transpose(*nats.dims))

    return rival


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: training moves no attention."""
    top = ds.measured_top
    return ds.assign(measured_top=top.isel(step=0, drop=True).broadcast_like(top).transpose(*top.dims))


def uniform(ds: xr.Dataset) -> xr.Dataset:
    """A rival: attention is uniform."""
    top = ds.measured_top
    return ds.assign(measured_top=ds.uniform.broadcast_like(top).transpose(*top.dims))


def free(ds: xr.Dataset) -> xr.Dataset:
    """A rival: eviction costs nothing."""
    nats = ds.measured_nats
    return ds.assign(measured_nats=nats.sel(policy="full", drop=True).broadcast_like(nats).transpose(*nats.dims))


def halved(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the change of an output is at most half of its bound."""
    return ds.assign(measured_tight=ds.measured_tight / 2)


def twice(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the change of an output is bounded by the lost weight times the largest value, without the factor 2."""
    return ds.assign(measured_tight=2 * ds.measured_tight)


MARKOV = {"a Markov chain without facts and questions": {"stating": 0.0, "asking": 0.0}}
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Recall),
    paper=jd.grid(Recall, length=80, keys=6, values=8, width=64, hidden=128, heads=4, batch=16, steps=2000),
    seeds=8,
    paper_seeds=8,
    evidence="network",
    source="arXiv:2306.14048, sections 3 and 5; data, sizes and bounds ours",
)
CLAIMS = (
    STUDY.claim(
        id="h2o.ppl_budget",
        statement="x",
        bounds="derived",
        judge=judge_budget,
        controls=MARKOV,
        rivals={"all policies do as the last keys": alike("sum", "random", "anti", like="recent")},
    ),
)
