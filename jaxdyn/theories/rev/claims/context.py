"""Claims on what the theorems leave out: training indices asked twice, and a query that is among its own keys."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.rev.claims.one_layer import SOURCE, OneLayer, trial

__all__ = ["CLAIMS", "equal_shares", "judge_query", "judge_shares"]


def _late(ds: xr.Dataset) -> xr.Dataset:
    """The last three readings."""
    return ds.isel(record=slice(-3, None))


def judge_shares(ds: xr.Dataset) -> list[jd.Check]:
    """Mean shares of the two targets of one row within four standard errors; both together take at most all, and nearly all."""
    late = _late(ds)
    total = late.measured_share.sum("target", skipna=False)
    share = (late.measured_share / total).mean(("record", "index"))
    away = abs(stats.standard_errors(share - ds.predicted_share))
    return [
        jd.at_most("mean share of a target, in standard errors", away, 4.0),
        jd.at_most("both targets together", total, 1.0),
        jd.at_least("both targets together, mean of a run", total.mean(("record", "index")), 0.9),
    ]


def equal_shares(ds: xr.Dataset) -> xr.Dataset:
    """A breach: half for each target, however often each is drawn."""
    return ds.assign(predicted_share=0 * ds.predicted_share + 0.5)


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


_COT = {"task": "cot", "train_indices": 6}
_FIG = {**_COT, "vocabulary": 60, "train_indices": 8, "test_indices": 4, "steps": 60_000}

CLAIMS = (
    jd.Claim(
        id="rev.cot_training",
        statement=r"Where one row must answer both $A \to$ and $A \leadsto$ (a training index of the chain-of-thought task) its "
        r"two targets share the probability as they are drawn, 1 : 1 or 3 : 1 in the mean; it does not tend to 1 for either.",
        source=f"derived; {SOURCE}, Theorem 4 speaks of test indices only",
        trial=trial,
        quick=jd.grid(OneLayer, indirect=[1.0, 1 / 3], **_COT),
        paper=jd.grid(OneLayer, indirect=[1.0, 1 / 3], **_FIG),
        seeds=16,
        paper_seeds=64,
        judge=judge_shares,
        form="derived",
        controls={"relation among the keys": {"context": "both"}, "half for each, however drawn": equal_shares},
        plot=plot_shares,
    ),
    jd.Claim(
        id="rev.query_key",
        statement=r"With the query among its own keys (context x1 and x2) the model answers both $A \to$ and $A \leadsto$ of a "
        r"training index, and the indirect fact of a test index still stays below $1/M$.",
        source=f"derived; {SOURCE}, Theorem 4",
        trial=trial,
        quick=jd.grid(OneLayer, context="both", **_COT),
        paper=jd.grid(OneLayer, context="both", **_FIG),
        seeds=16,
        paper_seeds=64,
        judge=judge_query,
        form="simplified",
        controls={
            "x1 the only key": {"context": "entity"},
            "indirect sequences of test indices in training": {"leak": 1.0},
        },
        plot=plot_query,
    ),
)
