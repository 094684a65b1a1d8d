"""Claims on what the theorems leave out: training indices asked twice, and a query that is among its own keys."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.rev.trials.one_layer import OneLayer, trial

__all__ = ["CLAIMS", "judge_query", "judge_shares"]

SOURCE = "arXiv:2405.04669"


def last_three(ds: xr.Dataset) -> xr.Dataset:
    """The last three records."""
    return ds.isel(record=slice(-3, None))


def judge_shares(ds: xr.Dataset) -> list[jd.Check]:
    """Mean shares of the two targets of one row within four standard errors; both together take at most all, and nearly all."""
    late = last_three(ds)
    total = late.measured_share.sum("target", skipna=False)
    share = (late.measured_share / total).mean(("record", "index"))
    away = abs(stats.standard_errors(share - ds.predicted_share))
    return [
        jd.at_most("mean share of a target, in standard errors", away, 4.0),
        jd.at_most("both targets together", total, 1.0),
        jd.at_least("both targets together, mean of a run", total.mean(("record", "index")), 0.9),
    ]


def judge_query(ds: xr.Dataset) -> list[jd.Check]:
    """Every training sequence is answered, also two with one x1; tests stay below a guess."""
    end = ds.isel(record=-1)
    return [
        jd.at_least("probability of a training sequence", end.train, 0.5),
        jd.at_least("probability of training sequences, mean of a run", end.train.mean("fact"), 0.95),
        jd.at_most("probability of a test sequence over 1/M", end.measured_test / end.predicted_test, 0.999),
    ]


def plot_shares(ds: xr.Dataset, fig: Figure) -> None:
    """Shares of the two targets of a training index over runs, with the mean's law."""
    weights = np.atleast_1d(ds.indirect.values) if "indirect" in ds.coords else [1.0]
    for ax, weight in zip(np.atleast_1d(fig.subplots(1, len(weights), sharey=True)), weights, strict=True):
        part = ds.sel(indirect=weight) if "indirect" in ds.dims else ds
        t = part.t.isel(seed=0).values
        for target, color in zip(part.target.values, ("measured", "third"), strict=True):
            one = part.measured_share.sel(target=target).transpose("seed", "index", "record")
            plotting.band(ax, t, one.values, f"{target}: median and 90% of rows", color)
            ax.plot(t, one.mean(("seed", "index")), "o", color=plotting.COLORS[color], label=f"{target}: mean")
            ax.axhline(float(part.predicted_share.sel(target=target).isel(seed=0)), ls="--", color=plotting.COLORS["theory"])
        ax.set(xscale="log", xlabel="steps t", title=f"weight of indirect sequences {weight:.3g}", ylim=(0, 1))
    fig.axes[0].set_ylabel("probability of the target")


def plot_query(ds: xr.Dataset, fig: Figure) -> None:
    """Training and test probabilities with the query among the keys."""
    ax = fig.subplots()
    t, size = ds.t.isel(seed=0).values, float(ds["size"].isel(seed=0))
    plotting.band(ax, t, ds.train.transpose("seed", "fact", "record").values, "training sequences: median and 90%", "third")
    plotting.band(ax, t, ds.measured_test.transpose("seed", "test", "record").values, "test sequences: median and 90%")
    ax.axhline(1 / size, linestyle="--", color=plotting.COLORS["theory"], label="1/M")
    ax.set(xscale="log", yscale="log", xlabel="steps t", ylabel="probability of the target")


study = jd.Study(
    trial=trial,
    quick=jd.grid(OneLayer, task="cot", train_indices=6),
    paper=jd.grid(OneLayer, task="cot", vocabulary=60, train_indices=8, test_indices=4, steps=60_000),
    seeds=16,
    paper_seeds=64,
    source=f"derived; {SOURCE}, Theorem 4",
)
WEIGHTS = [1.0, 1 / 3]

CLAIMS = (
    study.claim(
        id="rev.cot_training",
        bounds="chosen after a look; upheld on seeds 1000:1032",
        statement=r"In the one-layer model, where one row must answer both $A \to$ and $A \leadsto$ (a training index of the "
        r"chain-of-thought task), its two targets share the probability in proportion to how often they are drawn, 1 : 1 or 3 : 1 "
        r"on average.",
        source=f"derived; {SOURCE}, Theorem 4 speaks of test indices only",
        quick=study.quick.replace(indirect=WEIGHTS),
        paper=study.paper.replace(indirect=WEIGHTS),
        judge=judge_shares,
        form="derived",
        controls={"relation among the keys": {"context": "both"}, "half for each, however drawn": jd.swap(predicted_share=0.5)},
        plot=plot_shares,
        caption="Probabilities of the two targets of a training index along training, one panel per weight of indirect sequences: "
        "median and central 90% of the rows of all runs, points their mean, dashed the predicted shares.",
    ),
    study.claim(
        id="rev.query_key",
        bounds="chosen after a look; upheld on seeds 1000:1032",
        statement=r"In the one-layer model with the query among its own keys (x1 and x2), both $A \to$ and $A \leadsto$ of a "
        r"training index are learned, and the indirect fact of a test index still ends below $1/M$.",
        quick=study.quick.replace(context="both"),
        paper=study.paper.replace(context="both"),
        judge=judge_query,
        form="simplified",
        controls={
            "x1 the only key": {"context": "entity"},
            "indirect sequences of test indices in training": {"leak": 1.0},
        },
        plot=plot_query,
        caption="Probability of the targets of training and test sequences along training: median and central 90% of the sequences "
        "of all runs; dashed: 1/M.",
    ),
)
