"""Eviction in trained decoders, judged: perplexity by policy and budget, shares of heavy tokens, costs of lost weight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import spearman
from jaxdyn.theories.h2o.ppl_budget.trial import BUDGETS, Recall, trial

__all__ = [
    "CLAIMS",
    "LABELS",
    "judge_budget",
    "judge_loss",
    "judge_markov",
    "judge_order",
    "judge_share",
    "over",
    "plot_budget",
    "ticked",
]

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
COLORS = ("control", "theory", "failed", "fifth", "measured", "measured", "measured", "fourth", "third")
STYLES = ("--", "-", "-", "-", "-", "--", ":", "-", "-")
FIFTH = 0.2  # of the sequence: the budget that the paper names
COMPARED = {FIFTH: 0.02, 0.4: 0.1}  # budgets, and by how much H2O is better there, in logs of perplexities
LEAST = 0.05  # the 5% of what counts as no loss
PAIRS = (
    ("recent", "sum", 0.1),
    ("recent", "random", FIFTH),
    ("anti", "recent", FIFTH),
    ("recent", "sum", BUDGETS[0]),
    ("sum", "oracle", FIFTH),
)


def trained(ds: xr.Dataset) -> jd.Check:
    """Gate: far questions are answered with the whole cache, on average over runs."""
    return jd.gate("right answers to far questions, mean over runs", ds.right.isel(step=-1).mean("seed"), at_least=0.8)


def over(ds: xr.Dataset, policy: str, against: str, budget: float = FIFTH) -> xr.DataArray:
    """Log of the perplexity under one policy over that under another one."""
    at = ds.measured_nats.sel(budget=budget, drop=True)
    return at.sel(policy=policy, drop=True) - at.sel(policy=against, drop=True)


def judge_budget(ds: xr.Dataset) -> list[jd.Check]:
    """Heavy hitters against the last keys alone, against random ones next to the last, and against their opposite."""
    jd.need(ds, policy=("sum", "recent", "random", "anti"), budget=BUDGETS)
    return [
        trained(ds),
        *(
            jd.mean_within(
                f"log perplexity at {b:.0%}: {LABELS[policy]} minus H2O", over(ds, policy, "sum", b), over="seed", low=low
            )
            for b, low in COMPARED.items()
            for policy in ("recent", "random", "anti")
        ),
    ]


def costs(ds: xr.Dataset) -> list[jd.Check]:
    """Perplexities at a fifth of the sequence over that with everything, by policy."""
    jd.need(ds, policy=tuple(LABELS), budget=BUDGETS)
    return [
        jd.mean_within(f"log perplexity at 20% minus that with everything: {label}", over(ds, name, "full"), over="seed", low=LEAST)
        for name, label in LABELS.items()
        if name != "full"
    ]


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """Perplexities at a fifth of the sequence over that with everything, and pairs of policies."""
    pairs = [
        jd.mean_within(f"log perplexity at {b:.0%}: {LABELS[a]} minus {LABELS[c]}", over(ds, a, c, b), over="seed", low=LEAST)
        for a, c, b in PAIRS
    ]
    return [trained(ds), *costs(ds), *pairs]


def judge_markov(ds: xr.Dataset) -> list[jd.Check]:
    """Perplexities at a fifth of the sequence where nothing needs to be recalled; gate: training has done something."""
    saved = ds.curve.isel(step=0) - ds.curve.isel(step=-1)
    return [jd.gate("nats a token that training saves, every run", saved, at_least=1.0), *costs(ds)]


def judge_share(ds: xr.Dataset) -> list[jd.Check]:
    """Share of the heaviest tokens: how it changes, and against that under uniform attention."""
    end, first = (ds.measured_top.isel(step=i, drop=True) for i in (-1, 0))
    return [
        trained(ds),
        jd.mean_within("share of the heaviest 5%, end minus start", end - first, over="seed", low=LEAST),
        jd.mean_within("share of the heaviest 5%, end minus uniform attention's", end - ds.uniform, over="seed", low=LEAST),
    ]


def judge_loss(ds: xr.Dataset) -> list[jd.Check]:
    """The bound on the change of a head's output, and the loss against the weight that is lost, over policies and budgets."""
    jd.need(ds, policy=tuple(LABELS), budget=BUDGETS)
    some = {"policy": [p for p in LABELS if p != "full"], "budget": [b for b in BUDGETS if b < 1]}
    cost = (ds.measured_nats - ds.measured_nats.sel(policy="full", drop=True)).sel(some).stack(case=("policy", "budget"))
    lost = ds.measured_lost.sel(some).stack(case=("policy", "budget"))
    tight = ds.measured_tight.max(("policy", "budget"))
    rank = spearman(cost.drop_vars(["case", *some]), lost.drop_vars(["case", *some]), "case").fillna(0)
    slope = xr.cov(cost, lost, "case") / lost.var("case", ddof=1)
    return [
        trained(ds),
        jd.at_most("change of a head's output over its bound, every run", tight, 1 + 1e-4),
        jd.mean_within("the largest change of a head's output over its bound", tight, over="seed", low=0.8),
        jd.mean_within("rank correlation of loss and lost weight", rank, over="seed", low=0.5),
        jd.mean_within("nats a token for each unit of lost weight", slope, over="seed", low=0.5),
    ]


def alike(*policies: str, like: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """These policies give what another one gives."""

    def same(ds: xr.Dataset) -> xr.DataArray:
        nats = ds.measured_nats
        return xr.where(nats.policy.isin(policies), nats.sel(policy=like, drop=True), nats)

    return jd.swap(measured_nats=same)


# The losses of each policy stand next to the lost weight of another budget, in the opposite order.
PERMUTED = jd.swap(measured_nats=lambda ds: ds.measured_nats.copy(data=ds.measured_nats.isel(budget=slice(None, None, -1)).data))


# At every budget the runs have a cache for the whole sequence.
ROOMY = jd.swap(measured_nats=lambda ds: ds.measured_nats.sel(budget=1.0, drop=True))


FREE = alike(*LABELS, like="full")


def curves(ax: Axes, values: xr.DataArray) -> None:
    """A line a policy over budgets."""
    for name, color, style in zip(LABELS, COLORS, STYLES, strict=True):
        ax.plot(
            100 * values.budget, values.sel(policy=name), style, marker="o", ms=3, color=plotting.COLORS[color], label=LABELS[name]
        )
    ticked(ax, values)


def ticked(ax: Axes, values: xr.DataArray | xr.Dataset) -> None:
    """Budgets in percent along the lower axis."""
    percent = [round(100 * float(b)) for b in values.budget]
    ax.set(xscale="log", xlabel="budget, % of the sequence")
    ax.set_xticks(percent, [str(p) for p in percent])
    ax.minorticks_off()


def ratios(ds: xr.Dataset) -> xr.DataArray:
    """Perplexities over that with everything, geometric means over the runs."""
    return np.exp((ds.measured_nats - ds.measured_nats.sel(policy="full", drop=True)).mean("seed"))


def plot_budget(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over that with everything, and loss at far questions, over budgets."""
    left, right = fig.subplots(1, 2)
    curves(left, ratios(ds))
    curves(right, ds.measured_copy.mean("seed"))
    left.set(ylabel="perplexity / that with everything")
    right.set(ylabel="nats an answer to a far question")
    left.legend(fontsize=7)


def plot_markov(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over that with everything, over budgets."""
    ax = fig.subplots()
    curves(ax, ratios(ds))
    ax.set(ylabel="perplexity / that with everything")
    ax.legend(fontsize=7)


def plot_share(ds: xr.Dataset, fig: Figure) -> None:
    """Share of the heaviest tokens along training."""
    ax = fig.subplots()
    plotting.band(ax, ds.step, ds.measured_top.transpose(..., "step"), "heaviest 5% of the tokens", "measured")
    ax.axhline(float(ds.uniform.mean()), linestyle="--", color=plotting.COLORS["theory"])
    ax.set(xlabel="step", ylabel="share of all attention", ylim=(0, None))


def plot_loss(ds: xr.Dataset, fig: Figure) -> None:
    """Loss more than with everything, over the weight that is lost, for policies and budgets."""
    ax = fig.subplots()
    more = ds.measured_nats - ds.measured_nats.sel(policy="full", drop=True)
    for name, color in zip(LABELS, COLORS, strict=True):
        if name not in ("full", "mean", "decay"):
            x, y = (v.sel(policy=name).transpose("budget", ...).values.ravel() for v in (ds.measured_lost, more))
            ax.plot(x, y, ".", color=plotting.COLORS[color], label=LABELS[name])
    ax.set(
        xlabel=r"weight $\epsilon$ that full attention gives to evicted keys, mean", ylabel="nats a token more than with everything"
    )


SETUP = (
    "decoders (width 32, 2 layers of 2 heads) trained by Adam for 400 steps on sequences of 40 tokens, in which 4 facts are stated "
    "once and asked for again and again, at any distance, between fillers of a Markov chain"
)
QUICK = jd.grid(Recall)
PAPER = jd.grid(Recall, length=80, keys=6, values=8, width=64, hidden=128, heads=4, batch=16, steps=2000)
STUDY = jd.Study(
    trial=trial,
    quick=QUICK,
    paper=PAPER,
    seeds=16,
    paper_seeds=16,
    evidence="network",
    source="arXiv:2306.14048, sections 3 and 5; data, sizes and bounds ours",
)
FOUND_ORDER = {  # intervals of seeds 0:16
    "log perplexity at 20% minus that with everything: last keys": (0.77, 1.14),
    "log perplexity at 20% minus that with everything: random and last keys": (0.72, 1.1),
    "log perplexity at 20% minus that with everything: first and last keys": (0.6, 0.87),
    "log perplexity at 20% minus that with everything: H2O, summed": (0.52, 0.82),
    "log perplexity at 20% minus that with everything: H2O, mean": (0.6, 0.91),
    "log perplexity at 20% minus that with everything: H2O, decayed": (0.53, 0.83),
    "log perplexity at 20% minus that with everything: anti-H2O": (0.78, 1.15),
    "log perplexity at 20% minus that with everything: oracle (not causal)": (0.09, 0.25),
    "log perplexity at 10%: last keys minus H2O, summed": (-0.08, 0.28),
    "log perplexity at 20%: last keys minus random and last keys": (0.0, 0.09),
    "log perplexity at 20%: anti-H2O minus last keys": (-0.06, 0.07),
    "log perplexity at 5%: last keys minus H2O, summed": (-0.31, 0.24),
    "log perplexity at 20%: H2O, summed minus oracle (not causal)": (0.36, 0.63),
}
FOUND_MARKOV = {  # intervals of seeds 0:16, one of them widened by 41000000:41000008
    "log perplexity at 20% minus that with everything: last keys": (0.01, 0.36),
    "log perplexity at 20% minus that with everything: random and last keys": (0.01, 0.33),
    "log perplexity at 20% minus that with everything: first and last keys": (-0.003, 0.012),
    "log perplexity at 20% minus that with everything: H2O, summed": (-0.01, 0.05),
    "log perplexity at 20% minus that with everything: H2O, mean": (-0.01, 0.12),
    "log perplexity at 20% minus that with everything: H2O, decayed": (0.0, 0.12),
    "log perplexity at 20% minus that with everything: anti-H2O": (0.02, 0.4),
    "log perplexity at 20% minus that with everything: oracle (not causal)": (-0.002, 0.007),
}
FOUND_SHARE = {  # intervals of seeds 0:16
    "share of the heaviest 5%, end minus start": (0.06, 0.13),
    "share of the heaviest 5%, end minus uniform attention's": (0.06, 0.14),
}
FOUND_LOSS = {  # intervals of seeds 0:16
    "change of a head's output over its bound, every run": (0.9, 1.0),
    "the largest change of a head's output over its bound": (0.86, 0.95),
    "rank correlation of loss and lost weight": (0.86, 0.94),
    "nats a token for each unit of lost weight": (1.5, 2.14),
}
CLAIMS = (
    STUDY.claim(
        id="h2o.ppl_budget",
        statement=f"In {SETUP}, a cache that holds the keys with the most attention so far and the last ones, half and half, "
        "does better than the last keys alone, than random keys and the last, and than those with the least attention: their "
        "perplexity is higher by at least 2% with a budget of 20% of the sequence, and by 10% with 40%, on average over runs.",
        seeds=24,
        bounds=jd.looked(at="7000:7016", confirmed="12000:12024"),
        judge=judge_budget,
        controls={"a cache for everything: nothing is evicted": ROOMY},
        rivals={"all policies do as the last keys": alike("sum", "random", "anti", like="recent")},
        plot=plot_budget,
        caption="Left: perplexity over that with the whole cache, right: cross-entropy of answers to far questions (at least 8 "
        "tokens after their facts), over the budget of the cache, by policy; means over the runs.",
    ),
    STUDY.claim(
        id="h2o.ppl_order",
        statement=f"What eviction costs {SETUP}: perplexity with a budget of 20% over that with everything, by policy, and between "
        "policies.",
        expected="measured",
        judge=judge_order,
        rivals={"eviction costs nothing": FREE},
        found=FOUND_ORDER,
        plot=plot_budget,
        caption="As for h2o.ppl_budget: perplexity and cross-entropy of far answers by budget and policy; means over the runs.",
    ),
    STUDY.claim(
        id="h2o.bigram_tie",
        statement="Does it matter what is evicted where nothing needs to be recalled? In decoders (width 32, 2 layers of 2 heads) "
        "trained by Adam for 400 steps on a Markov chain of 12 tokens, perplexity with a budget of 20% of the sequence over that "
        "with everything, by policy. With the first and the last keys it is the same to 1%; with the last keys alone it was higher "
        "by 20% and by 11% on average, in two sets of 16 runs that differ much (the interval of the second contains 0).",
        expected="measured",
        quick=QUICK.replace(stating=0.0, asking=0.0),
        paper=PAPER.replace(stating=0.0, asking=0.0),
        seeds=8,
        judge=judge_markov,
        rivals={"eviction costs nothing": FREE},
        found=FOUND_MARKOV,
        plot=plot_markov,
        caption="Perplexity over that with the whole cache over the budget of the cache, by policy, on a Markov chain; geometric "
        "means over the runs.",
    ),
    STUDY.claim(
        id="h2o.powerlaw",
        statement=f"Which share of all attention the 2 heaviest of 40 tokens get in {SETUP}: after training, minus "
        "the share at random initial weights, and minus that of uniform causal attention (0.19).",
        expected="measured",
        judge=judge_share,
        rivals={
            "training moves no attention": jd.initial("step", "measured_top"),
            "attention is uniform": jd.swap(measured_top="uniform"),
        },
        found=FOUND_SHARE,
        plot=plot_share,
        caption="Share of all attention that the 2 heaviest of 40 tokens get, along training (median and central 90% of the runs; "
        "mean over layers, heads and texts); dashed: uniform causal attention.",
    ),
    STUDY.claim(
        id="h2o.eviction_loss",
        statement=rf"How loss follows the weight $\epsilon$ that full attention gives to evicted keys, over all policies and "
        rf"budgets from 5% to 40%, in {SETUP}: rank correlation, and nats a token for each unit of $\epsilon$, by run; and how "
        r"near the change of a head's output comes to its bound $2 \epsilon \max_j \|v_j\|$, which it never exceeds.",
        expected="measured",
        judge=judge_loss,
        controls={"losses of other budgets": PERMUTED},
        rivals={
            "lost weight costs nothing": FREE,
            "half the bound holds as well": jd.scaled(measured_tight=2.0),
            "no output changes by more than half of its bound": jd.scaled(measured_tight=0.5),
        },
        found=FOUND_LOSS,
        plot=plot_loss,
        caption="Cross-entropy minus that with the whole cache over the weight that full attention gives to evicted keys, mean "
        "over layers, heads and queries: one point per run and budget, by policy.",
    ),
)
