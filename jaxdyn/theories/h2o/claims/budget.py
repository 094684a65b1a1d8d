r"""Claims on eviction in trained decoders: perplexity by policy and budget, the share of heavy tokens, and what a lost weight costs."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.h2o.trials.budget import Recall, trial

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
HALF = 0.2  # of the sequence: the budget that the paper names


def trained(ds: xr.Dataset) -> jd.Check:
    """Gate: far questions are answered with the whole cache, on average over runs."""
    return jd.gate("right answers to far questions, mean over runs", ds.right.isel(step=-1).mean("seed"), at_least=0.8)


def over(ds: xr.Dataset, policy: str, against: str, budget: float = HALF) -> xr.DataArray:
    """Log of the perplexity under one policy over that under another one."""
    at = ds.measured_nats.sel(budget=budget, drop=True)
    return at.sel(policy=policy, drop=True) - at.sel(policy=against, drop=True)


def judge_budget(ds: xr.Dataset) -> list[jd.Check]:
    """Heavy hitters against the last keys alone, and against their opposite."""
    part = xr.concat([over(ds, "sum", "recent", b) for b in (0.1, 0.2, 0.4)], "budget")
    anti = xr.concat([over(ds, "anti", "sum", b) for b in (0.1, 0.2, 0.4)], "budget")
    return [
        trained(ds),
        jd.mean_within("log perplexity, H2O less last keys", part, over="seed", high=-0.05),
        jd.mean_within("log perplexity, anti-H2O less H2O", anti, over="seed", low=0.05),
    ]


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
        controls={"a Markov chain without questions": {"stating": 0.0, "asking": 0.0}},
    ),
)
