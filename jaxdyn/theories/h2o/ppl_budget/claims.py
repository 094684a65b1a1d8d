"""Eviction in trained decoders, judged: perplexity by policy and budget, shares of heavy tokens, costs of lost weight."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.stats import spearman
from jaxdyn.theories.h2o.ppl_budget.trial import BUDGETS, Recall, trial

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
COST = {
    name: f"log perplexity at 20% minus that with everything: {label}" for name, label in LABELS.items() if name != "full"
}  # readings
COLORS = ("control", "theory", "failed", "fifth", "measured", "measured", "measured", "fourth", "third")
STYLES = ("--", "-", "-", "-", "-", "--", ":", "-", "-")
FIFTH = 0.2  # of the sequence: the budget that the paper names
COMPARED = {FIFTH: 0.02, 0.4: 0.1}  # budgets, and by how much H2O is better there, in logs of perplexities
WORSE = ("recent", "random", "anti")  # than heavy hitters
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


def versus_h2o(policy: str, budget: float) -> str:
    """Name of the check of one policy against heavy hitters."""
    return f"log perplexity at {budget:.0%}: {LABELS[policy]} minus H2O"


def judge_budget(ds: xr.Dataset) -> list[jd.Check]:
    """Heavy hitters against the last keys alone, against random ones next to the last, and against their opposite."""
    jd.need(ds, policy=("sum", *WORSE), budget=BUDGETS)
    return [
        trained(ds),
        *(
            jd.mean_within(versus_h2o(policy, b), over(ds, policy, "sum", b), over="seed", low=low)
            for b, low in COMPARED.items()
            for policy in WORSE
        ),
    ]


def costs(ds: xr.Dataset) -> list[jd.Reading]:
    """Perplexities at a fifth of the sequence over that with everything, by policy."""
    jd.need(ds, policy=tuple(LABELS), budget=BUDGETS)
    return [jd.mean_reading(COST[name], over(ds, name, "full"), over="seed") for name in COST]


def judge_order(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Perplexities at a fifth of the sequence over that with everything, and pairs of policies."""
    pairs = [
        jd.mean_reading(f"log perplexity at {b:.0%}: {LABELS[a]} minus {LABELS[c]}", over(ds, a, c, b), over="seed")
        for a, c, b in PAIRS
    ]
    return [trained(ds), *costs(ds), *pairs]


def judge_markov(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Perplexities at a fifth of the sequence where nothing needs to be recalled; gate: training has done something."""
    saved = ds.curve.isel(step=0) - ds.curve.isel(step=-1)
    return [jd.gate("nats a token that training saves, every run", saved, at_least=1.0), *costs(ds)]


def judge_share(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Share of the heaviest tokens: how it changes, and against that under uniform attention."""
    end, first = (ds.measured_top.isel(step=i, drop=True) for i in (-1, 0))
    return [
        trained(ds),
        jd.mean_reading("share of the heaviest 5%, end minus start", end - first, over="seed"),
        jd.mean_reading("share of the heaviest 5%, end minus uniform attention's", end - ds.uniform, over="seed"),
    ]


def judge_loss(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """The loss against the weight that is lost, over policies and budgets; how near the bound on a head's output comes."""
    jd.need(ds, policy=tuple(LABELS), budget=BUDGETS)
    some = {"policy": [p for p in LABELS if p != "full"], "budget": [b for b in BUDGETS if b < 1]}
    cost = (ds.measured_nats - ds.measured_nats.sel(policy="full", drop=True)).sel(some).stack(case=("policy", "budget"))
    lost = ds.measured_lost.sel(some).stack(case=("policy", "budget"))
    tight = ds.measured_tight.max(("policy", "budget"))
    rank = spearman(cost.drop_vars(["case", *some]), lost.drop_vars(["case", *some]), "case").fillna(0)
    slope = xr.cov(cost, lost, "case") / lost.var("case", ddof=1)
    return [
        trained(ds),
        jd.gate("change of a head's output over its bound, every run", tight, at_most=1 + 1e-4),
        jd.mean_reading("the largest change of a head's output over its bound", tight, over="seed"),
        jd.mean_reading("rank correlation of loss and lost weight", rank, over="seed"),
        jd.mean_reading("nats per token for each unit of lost weight", slope, over="seed"),
    ]


def uniform_minus_start(ds: xr.Dataset) -> float:
    """The share of the heaviest tokens under uniform attention, minus that at the start; mean over runs."""
    return float((ds.uniform - ds.measured_top.isel(step=0, drop=True)).mean())


# The losses of each policy stand next to the lost weight of another budget, in the opposite order.
PERMUTED = jd.swap(measured_nats=lambda ds: ds.measured_nats.copy(data=ds.measured_nats.isel(budget=slice(None, None, -1)).data))


# At every budget the runs have a cache for the whole sequence.
ROOMY = jd.swap(measured_nats=lambda ds: ds.measured_nats.sel(budget=1.0, drop=True))


# Eviction costs nothing, whatever the policy.
FREE = dict.fromkeys(COST.values(), 0.0)


# It does not matter which old keys are kept.
ALIKE = {versus_h2o(policy, b): 0.0 for b in COMPARED for policy in WORSE}


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


DECODERS = "Decoders of width {width} with {layers} layers of {heads} heads, trained by Adam for {steps} steps on "
TESTED = DECODERS + (
    "sequences of {length} tokens in which {keys} facts are stated once and asked for repeatedly, at any distance, among the "
    "tokens of a Markov chain; {seeds} seeds. Half of a cache is for the last keys."
)
QUICK = jd.grid(Recall)
PAPER = jd.grid(Recall, length=80, keys=6, values=8, width=64, hidden=128, heads=4, batch=16, steps=2000)
STUDY = jd.Study(
    tested=TESTED,
    trial=trial,
    quick=QUICK,
    paper=PAPER,
    seeds=16,
    paper_seeds=16,
    evidence="network",
    source="arXiv:2306.14048, sections 3 and 5; data, sizes and bounds ours",
)
FOUND_ORDER = {
    "log perplexity at 20% minus that with everything: last keys": (0.783, 0.9589, 1.14),
    "log perplexity at 20% minus that with everything: random and last keys": (0.728, 0.9124, 1.1),
    "log perplexity at 20% minus that with everything: first and last keys": (0.614, 0.7378, 0.862),
    "log perplexity at 20% minus that with everything: H2O, summed": (0.525, 0.6722, 0.82),
    "log perplexity at 20% minus that with everything: H2O, mean": (0.602, 0.7582, 0.915),
    "log perplexity at 20% minus that with everything: H2O, decayed": (0.54, 0.6854, 0.831),
    "log perplexity at 20% minus that with everything: anti-H2O": (0.801, 0.9737, 1.15),
    "log perplexity at 20% minus that with everything: oracle (not causal)": (0.102, 0.1744, 0.246),
    "log perplexity at 10%: last keys minus H2O, summed": (-0.074, 0.09752, 0.269),
    "log perplexity at 20%: last keys minus random and last keys": (0.00682, 0.04649, 0.0862),
    "log perplexity at 20%: anti-H2O minus last keys": (-0.0543, 0.0148, 0.0839),
    "log perplexity at 5%: last keys minus H2O, summed": (-0.285, -0.02452, 0.236),
    "log perplexity at 20%: H2O, summed minus oracle (not causal)": (0.363, 0.4978, 0.633),
}
RECALLED = {name: FOUND_ORDER[name][1] for name in COST.values()}
FOUND_MARKOV = {
    "log perplexity at 20% minus that with everything: last keys": (0.0412, 0.1534, 0.266),
    "log perplexity at 20% minus that with everything: random and last keys": (0.0414, 0.1449, 0.248),
    "log perplexity at 20% minus that with everything: first and last keys": (-0.00542, 0.003831, 0.0131),
    "log perplexity at 20% minus that with everything: H2O, summed": (-0.000284, 0.01842, 0.0371),
    "log perplexity at 20% minus that with everything: H2O, mean": (0.0105, 0.05176, 0.093),
    "log perplexity at 20% minus that with everything: H2O, decayed": (0.0109, 0.04899, 0.0871),
    "log perplexity at 20% minus that with everything: anti-H2O": (0.0567, 0.1962, 0.336),
    "log perplexity at 20% minus that with everything: oracle (not causal)": (-0.00058, 0.003853, 0.00829),
}
FOUND_SHARE = {
    "share of the heaviest 5%, end minus start": (0.0594, 0.09462, 0.13),
    "share of the heaviest 5%, end minus uniform attention's": (0.0687, 0.1033, 0.138),
}
FOUND_LOSS = {
    "the largest change of a head's output over its bound": (0.867, 0.9024, 0.938),
    "rank correlation of loss and lost weight": (0.867, 0.9028, 0.938),
    "nats per token for each unit of lost weight": (1.52, 1.825, 2.13),
}
CLAIMS = (
    STUDY.claim(
        id="h2o.ppl_budget",
        title="At 20% and 40%, keys with most attention beat random or last ones",
        statement="Where facts are asked for at any distance, a decoder of two layers of width 32, trained for 400 steps, whose "
        "cache holds, half and half, the keys with the most attention so far and the last ones predicts better than with the "
        "last keys alone, with random keys next to the last, and with the keys with the least attention next to the last: their "
        "perplexity is higher by at least 2% if the cache has room for 20% of the sequence, and by 10% if it has for 40%, on "
        "average over runs.",
        seeds=24,
        bounds=jd.tuned(on="7000:7016", confirmed_on="12000:12024"),
        judge=judge_budget,
        controls={"a cache for everything: nothing is evicted": ROOMY},
        rivals={"it does not matter which old keys are kept": jd.off(ALIKE)},
        plot=plot_budget,
        caption="Left: perplexity over that with the whole cache, right: cross-entropy of answers to far questions (at least 8 "
        "tokens after their facts), over the budget of the cache, by policy; means over the runs.",
    ),
    STUDY.claim(
        id="h2o.ppl_order",
        title="What evicting keys costs, policy by policy",
        statement="What does eviction cost a trained decoder where facts are asked for at any distance? The reading is the "
        "logarithm of the perplexity with a cache for 20% of the sequence minus that with everything, by policy, and between pairs "
        "of policies.",
        expected="measured",
        judge=judge_order,
        controls={"policies exchanged": jd.rolled(measured_nats="policy")},
        rivals={
            "eviction costs nothing": jd.off(FREE),
            "it costs what it costs where nothing needs to be recalled": {name: FOUND_MARKOV[name][1] for name in COST.values()},
        },
        recorded=FOUND_ORDER,
        plot=plot_budget,
        caption="As for h2o.ppl_budget: perplexity and cross-entropy of far answers by budget and policy; means over the runs.",
    ),
    STUDY.claim(
        id="h2o.bigram_tie",
        title="What evicting keys costs where nothing needs to be recalled",
        statement="Does it matter what is evicted where nothing needs to be recalled? The reading is the logarithm of the "
        "perplexity on a Markov chain with a cache for 20% of the sequence minus that with everything, by policy. (On 24 seeds "
        "the last keys alone, random ones next to them, and those with the least attention cost some; with the first keys next "
        "to the last no cost is told from zero.)",
        tested=DECODERS + "a Markov chain of {fillers} tokens, sequences of {length}; {seeds} seeds. Half of a cache is for the "
        "last keys.",
        expected="measured",
        quick=QUICK.replace(stating=0.0, asking=0.0),
        paper=PAPER.replace(stating=0.0, asking=0.0),
        seeds=24,
        judge=judge_markov,
        rivals={"eviction costs nothing": jd.off(FREE), "it costs what it costs where facts are recalled": RECALLED},
        recorded=FOUND_MARKOV,
        plot=plot_markov,
        caption="Perplexity over that with the whole cache over the budget of the cache, by policy, on a Markov chain; geometric "
        "means over the runs.",
    ),
    STUDY.claim(
        id="h2o.powerlaw",
        title="The share of all attention that the heaviest tokens get",
        statement="Which share of all attention do the heaviest 5% of the tokens get after training, minus their share at the "
        "random initial weights, and minus their share under uniform causal attention?",
        expected="measured",
        judge=judge_share,
        rivals={
            "training moves no attention": jd.off({"share of the heaviest 5%, end minus start": 0.0}),
            "attention is uniform": {
                "share of the heaviest 5%, end minus start": uniform_minus_start,
                "share of the heaviest 5%, end minus uniform attention's": 0.0,
            },
        },
        recorded=FOUND_SHARE,
        plot=plot_share,
        caption="Share of all attention that the 2 heaviest of 40 tokens get, along training (median and central 90% of the "
        "runs; mean over layers, heads and texts); dashed: uniform causal attention.",
    ),
    STUDY.claim(
        id="h2o.eviction_loss",
        title="How loss follows the attention that evicted keys would have had",
        statement=r"Let $\epsilon$ be the weight that full attention gives to evicted keys. How does a decoder's loss follow it, "
        r"over all policies and cache sizes from 5% to 40% of the sequence (rank correlation, and nats per token for each unit "
        r"of $\epsilon$), and how near does the largest change of a head's output come to its bound $2 \epsilon \max_j \|v_j\|$, "
        "where $v_j$ are the values?",
        expected="measured",
        judge=judge_loss,
        controls={"losses of other budgets": jd.Control(PERMUTED, breaks="cache sizes")},
        rivals={
            "lost weight costs nothing": jd.off(
                {"rank correlation of loss and lost weight": 0.0, "nats per token for each unit of lost weight": 0.0}
            ),
            "half of the bound is a bound": {"the largest change of a head's output over its bound": 0.5},
        },
        recorded=FOUND_LOSS,
        plot=plot_loss,
        caption="Cross-entropy minus that with the whole cache over the weight that full attention gives to evicted keys, mean "
        "over layers, heads and queries: one point per run and budget, by policy.",
    ),
)
