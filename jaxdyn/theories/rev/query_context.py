"""What the theorems leave out: training indices asked twice, and a query that is among its own keys."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.rev.one_layer import OneLayer, trial

__all__ = ["CLAIMS", "judge_query", "judge_shares"]

SOURCE = "arXiv:2405.04669"
SHARE = 0.04  # by how much the mean share of a target may differ from how often it is sampled


def last_three(ds: xr.Dataset) -> xr.Dataset:
    """The last three records."""
    return ds.isel(record=slice(-3, None))


def judge_shares(ds: xr.Dataset) -> list[jd.Check]:
    """Mean share of one of the two targets of a row; both together take nearly all, and no more."""
    late = last_three(ds)
    total = late.measured_share.sum("target", skipna=False).where(ds.taught)
    share = (late.measured_share / total).mean(("record", "index"))
    miss = (share - ds.predicted_share).sel(target="direct")  # of the two shares, which are 1 together
    both = total.mean(("record", "index"))
    return [
        jd.mean_within("mean share of the direct target minus the predicted one", miss, over="seed", low=-SHARE, high=SHARE),
        jd.mean_within("both targets together, mean", both, over="seed", low=0.9, high=1.0),
    ]


def judge_query(ds: xr.Dataset) -> list[jd.Check]:
    """Every training sequence is answered, also two with one x1; tests stay below a guess."""
    end = ds.isel(record=-1)
    return [
        jd.at_least("probability of a training sequence", end.train, 0.5),
        jd.mean_within("probability of training sequences, mean", end.train.mean("fact"), over="seed", low=0.95),
        jd.at_most("probability of a test sequence times M", end.measured_test * end["size"], 0.9),
    ]


# All tokens stay equally likely; training sequences that are not shown stay without a value.
UNLEARNED = jd.swap(train=lambda ds: 0 * ds.train + 1 / ds["size"], measured_test=lambda ds: 1 / ds["size"])
LEARNED_TOO = jd.swap(measured_test=lambda ds: ds.train.mean("fact"))  # as well as training sequences on average


def plot_shares(ds: xr.Dataset, fig: Figure) -> None:
    """Shares of the two targets of a training index over runs, with the mean's law."""
    weights = np.atleast_1d(ds.indirect.values) if "indirect" in ds.coords else [1.0]
    for ax, weight in zip(np.atleast_1d(fig.subplots(1, len(weights), sharey=True)), weights, strict=True):
        part = ds.sel(indirect=weight) if "indirect" in ds.dims else ds
        t = part.t.isel(seed=0).values
        for target, color in zip(part.target.values, ("measured", "third"), strict=True):
            one = part.measured_share.where(part.taught).sel(target=target).transpose("seed", "index", "record")
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
    quick=jd.grid(OneLayer, task="cot", train_indices=24),
    paper=jd.grid(OneLayer, task="cot", vocabulary=60, train_indices=8, test_indices=4, steps=60_000),
    seeds=10,
    paper_seeds=64,
    evidence="network",
    source=f"derived; {SOURCE}, Theorem 4",
)
LOOKED = jd.looked(at="0:16", confirmed="4000:4016")
WEIGHTS = [1.0, 1 / 3]
QUERY_CAPTION = (
    "Probability of the targets of training and test sequences along training: median and central 90% of the sequences of all "
    "runs; dashed: 1/M."
)

CLAIMS = (
    study.claim(
        id="rev.cot_training",
        bounds=jd.looked(at="0:32", confirmed="32000000:32000032"),
        seeds=32,
        statement=r"In the one-layer model, where one row must answer both $A \to$ and $A \leadsto$ (a training index of the "
        r"chain-of-thought task), its two targets share nine tenths or more of the probability, on average in proportion to how "
        r"often they are drawn, 1 : 1 or 3 : 1 (shares within .04).",
        source=f"derived; {SOURCE}, Theorem 4 speaks of test indices only",
        quick=study.quick.replace(indirect=WEIGHTS),
        paper=study.paper.replace(indirect=WEIGHTS),
        judge=judge_shares,
        controls={"relation among the keys": {"context": "both"}},
        rivals={"half for each, as at the start": jd.swap(predicted_share=0.5)},
        plot=plot_shares,
        caption="Probabilities of the two targets of a training index along training, one panel per weight of indirect sequences: "
        "median and central 90% of the rows of all runs, points their mean, dashed the predicted shares.",
    ),
    study.claim(
        id="rev.query_key",
        bounds=LOOKED,
        statement=r"In the one-layer model with the query among its own keys (x1 and x2), both $A \to$ and $A \leadsto$ of a "
        r"training index are learned, $p > .5$ each and .95 on average, and the indirect fact of a test index still ends below "
        r"$.9/M$.",
        quick=study.quick.replace(context="both"),
        paper=study.paper.replace(context="both"),
        judge=judge_query,
        controls={
            "x1 the only key": {"context": "entity"},
            "indirect sequences of test indices in training": {"leak": 1.0},
        },
        rivals={"nothing is learned": UNLEARNED, "test sequences are learned, too": LEARNED_TOO},
        plot=plot_query,
        caption=QUERY_CAPTION,
    ),
    study.claim(
        id="rev.query_reversal",
        bounds=LOOKED,
        statement=r"In the one-layer model with the query among its own keys (x1 and x2), where steps on other facts do move what "
        r"is answered to a reversed question, trained directions are learned, $p > .5$ each and .95 on average, and the reversed "
        r"direction of a fact stated in one ends below $.9/M$.",
        source=f"derived; {SOURCE}, Theorem 3",
        quick=jd.grid(OneLayer, context="both", shown=0.25),
        paper=study.paper.replace(task="reversal", context="both"),
        judge=judge_query,
        controls={"x1 the only key": {"context": "entity"}, "reversed sequences in training": {"leak": 1.0}},
        rivals={"nothing is learned": UNLEARNED, "reversed directions are learned, too": LEARNED_TOO},
        plot=plot_query,
        caption=QUERY_CAPTION,
    ),
)
