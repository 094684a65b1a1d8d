"""A LLaMA-style decoder trained on a text, judged: perplexities by method, ablations, 8-bit moments, ranks of gradients.

The paper's sizes (60M to 7B, 1.3B tokens and more) are out of reach of a verdict in seconds; here are 0.06M weights. What the size
decides is therefore measured, and not held against the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.galore.text.trial import METHODS, Pretraining, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "LABELS", "judge_ablation", "judge_eight_bit", "judge_order", "judge_ranks", "ratios", "tuned"]

LABELS = {
    "full": "full Adam",
    "scaled": "full Adam, two rates",
    "galore": "GaLore",
    "galore_quarter": "GaLore, a quarter of the rank",
    "random": "random bases",
    "fixed": "first basis kept",
    "lora": "LoRA",
    "relora": "ReLoRA",
    "low_rank": "W = BA",
}
LEVEL = 0.95  # of each interval: three seeds
FOUND_ORDER = {  # intervals of seeds 0:3, three of them widened by 41000000:41000003
    "perplexity / full Adam's, over the paper's: full Adam, two rates": (0.35, 0.84),
    "perplexity / full Adam's, over the paper's: GaLore": (0.34, 0.80),
    "perplexity / full Adam's, over the paper's: GaLore, a quarter of the rank": (0.35, 0.90),
    "perplexity / full Adam's, over the paper's: random bases": (0.38, 0.79),
    "perplexity / full Adam's, over the paper's: first basis kept": (0.36, 0.82),
    "perplexity / full Adam's, over the paper's: LoRA": (0.90, 1.15),
    "perplexity / full Adam's, over the paper's: ReLoRA": (0.80, 1.20),
    "perplexity / full Adam's, over the paper's: W = BA": (0.17, 0.52),
    "perplexity / that of full Adam with two rates: GaLore": (0.97, 1.01),
    "perplexity / that of full Adam with two rates: GaLore, a quarter of the rank": (1.03, 1.13),
    "perplexity / that of full Adam with two rates: random bases": (0.90, 1.12),
    "perplexity / that of full Adam with two rates: first basis kept": (0.96, 1.07),
}
FOUND_ABLATION = {  # intervals of seeds 0:3
    "perplexity, first basis kept / T = 50": (0.97, 1.05),
    "perplexity, T = 10 / T = 50": (0.95, 1.03),
    "perplexity, rank 2 / rank 8": (0.81, 1.21),
    "perplexity, alpha 1 / alpha 1/4": (0.93, 1.19),
}
FOUND_BITS = {  # intervals of seeds 0:3
    "perplexity with 8-bit over that with float32 moments: full Adam": (0.78, 1.5),
    "perplexity with 8-bit over that with float32 moments: GaLore": (0.98, 1.01),
}
FOUND_RANKS = {  # seeds 0:3 and 41000000:41000003: both worst runs with room for that of others; the interval of all twelve runs
    "stable rank / that of a Gaussian matrix, every matrix and record": (0.3, 0.6),
    "least mean stable rank along training / start, mean over runs": (0.57, 0.89),
}


def tuned(ds: xr.Dataset) -> xr.Dataset:
    """Every method at the rate with the lowest validation loss at the end, mean over seeds."""
    valid = ds.loss.isel(step=-1, drop=True).sel(part="valid", drop=True)
    return ds.isel(factor=valid.mean("seed").fillna(np.inf).argmin("factor"))


def ratios(ds: xr.Dataset, against: str = "full") -> xr.DataArray:
    """Test perplexity of every method over that of one of them, each at its own rate, run by run (same start, same text)."""
    best = tuned(ds).measured_perplexity
    return best / best.sel(optimizer=against, drop=True)


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """Ratios of perplexities over the published ones of the 60M model, and GaLore against Adam with the same two rates."""
    jd.need(ds, optimizer=METHODS)
    # ratios over the published ones, and over Adam with the same two rates
    paper = tuned(ds).predicted_perplexity
    paper = paper / paper.sel(optimizer="full", drop=True)
    over, same = ratios(ds) / paper, ratios(ds, "scaled")
    checks = [
        jd.mean_within(
            f"perplexity / full Adam's, over the paper's: {LABELS[name]}",
            over.sel(optimizer=name),
            over="seed",
            low=0.9,
            high=1.1,
            level=LEVEL,
        )
        for name in METHODS[1:]
    ]
    return checks + [
        jd.mean_within(
            f"perplexity / that of full Adam with two rates: {LABELS[name]}",
            same.sel(optimizer=name),
            over="seed",
            low=0.97,
            high=1.1,
            level=LEVEL,
        )
        for name in ("galore", "galore_quarter", "random", "fixed")
    ]


def judge_ablation(ds: xr.Dataset) -> list[jd.Check]:
    """Ratios of perplexities along each axis of the study, the other two averaged over."""
    jd.need(ds, every=(0.0, 50.0), rank=(2.0, 8.0), alpha=(0.25, 1.0))
    p = np.log(ds.measured_perplexity)

    def ratio(name: str, field: str, a: float, b: float) -> jd.Check:
        change = np.exp((p.sel({field: a}) - p.sel({field: b})).mean([d for d in p.dims if d not in ("seed", field)]))
        return jd.mean_within(f"perplexity, {name}", change, over="seed", low=0.9, high=1.1, level=LEVEL)

    return [
        ratio("first basis kept / T = 50", "every", 0.0, 50.0),
        ratio("T = 10 / T = 50", "every", 10.0, 50.0),
        ratio("rank 2 / rank 8", "rank", 2.0, 8.0),
        ratio("alpha 1 / alpha 1/4", "alpha", 1.0, 0.25),
    ]


def judge_eight_bit(ds: xr.Dataset) -> list[jd.Check]:
    """Perplexities with moments of one byte a number over those with float32, run by run."""
    jd.need(ds, optimizer=("full", "galore"), moments=("float32", "8bit"))
    change = ds.measured_perplexity.sel(moments="8bit", drop=True) / ds.measured_perplexity.sel(moments="float32", drop=True)
    return [
        jd.mean_within(
            f"perplexity with 8-bit over that with float32 moments: {LABELS[name]}",
            change.sel(optimizer=name),
            over="seed",
            low=0.98,
            high=1.02,
            level=LEVEL,
        )
        for name in ("full", "galore")
    ]


def judge_ranks(ds: xr.Dataset) -> list[jd.Check]:
    """Stable ranks against those of Gaussian matrices, and how far they fall."""
    rank = ds.measured_stable_rank
    mean = rank.mean("matrix")
    fall = mean.min("step") / mean.isel(step=0)
    over = [str(d) for d in fall.dims]
    return [
        jd.at_most("stable rank / that of a Gaussian matrix, every matrix and record", rank / ds.predicted_stable_rank, 0.75),
        jd.mean_within("least mean stable rank along training / start, mean over runs", fall, over=over, high=0.95),
    ]


def untrained(field: str, *values: object) -> Callable[[xr.Dataset], xr.Dataset]:
    """Runs with one of these values of a field keep the perplexity of their start."""

    def changed(ds: xr.Dataset) -> xr.DataArray:
        start = np.exp(ds.loss.isel(step=0, drop=True).sel(part="test", drop=True))
        return ds.measured_perplexity.where(~ds[field].isin(values), start)

    return jd.swap(measured_perplexity=changed)


# Gradients of independent Gaussian entries.
UNSTRUCTURED = jd.swap(measured_stable_rank=lambda ds: ds.noise_rank + 0 * ds.measured_stable_rank)


# Gradients keep the ranks of the start.
STILL = jd.swap(measured_stable_rank=lambda ds: ds.measured_stable_rank.isel(step=0, drop=True) + 0 * ds.measured_stable_rank)


def plot_order(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity of every method over full Adam's, and the paper's."""
    ax = fig.subplots()
    names = [name for name in METHODS if name in ds.optimizer.values]
    over, paper = ratios(ds), tuned(ds).predicted_perplexity.mean("seed")
    place = np.arange(len(names))
    for i, name in enumerate(names):
        values = over.sel(optimizer=name).values
        ax.plot(values, np.full(values.size, i), "o", ms=4, color=plotting.COLORS["measured"], label="one seed" if i == 0 else None)
    ax.plot(
        paper.sel(optimizer=names) / paper.sel(optimizer="full"), place, "x", color=plotting.COLORS["theory"], label="paper, 60M"
    )
    ax.set_yticks(place, [LABELS[name] for name in names])
    ax.set(xscale="log", xlabel="test perplexity / full Adam's")
    ax.invert_yaxis()


def plot_ablation(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over periods, by rank and alpha."""
    ax, place = fig.subplots(), np.arange(ds.sizes["every"])
    for alpha, color in zip(ds.alpha.values, ("measured", "theory"), strict=False):
        for rank, style in zip(ds["rank"].values, ("--", "-"), strict=False):
            mean = ds.measured_perplexity.sel(alpha=alpha, rank=rank).mean("seed")
            ax.plot(place, mean, style, marker="o", color=plotting.COLORS[color], label=rf"$\alpha$ = {alpha:g}, rank {rank:g}")
    ax.set_xticks(place, ["never" if t == 0 else f"{t:g}" for t in ds.every.values])
    ax.set(xlabel="steps between two bases, T", ylabel="test perplexity")


def plot_bits(ds: xr.Dataset, fig: Figure) -> None:
    """Validation perplexity along training, by how moments are stored."""
    for ax, method in zip(np.atleast_1d(fig.subplots(1, ds.sizes["optimizer"], sharey=True)), ds.optimizer.values, strict=True):
        for kind, color in zip(ds.moments.values, ("theory", "measured"), strict=False):
            curve = np.exp(ds.loss.sel(optimizer=method, moments=kind, part="valid"))
            plotting.band(ax, ds.step, curve.transpose(..., "step"), str(kind), color)
        ax.set(yscale="log", xlabel="step", title=LABELS[str(method)])


def plot_ranks(ds: xr.Dataset, fig: Figure) -> None:
    """Stable ranks of all matrices over those of Gaussian ones, along training."""
    for ax, method in zip(np.atleast_1d(fig.subplots(1, ds.sizes["optimizer"], sharey=True)), ds.optimizer.values, strict=True):
        share = (ds.measured_stable_rank / ds.predicted_stable_rank).sel(optimizer=method).transpose(..., "step")
        plotting.band(ax, ds.step, share, "matrices and runs", "measured")
        ax.set(xlabel="step", title=LABELS[str(method)], ylabel="stable rank / Gaussian's", ylim=(0, 1.05))


QUICK = jd.grid(Pretraining)
PAPER = QUICK.replace(width=64, hidden=172, most=16, rank=16.0, batch=16, steps=800, records=8, windows=32)
WHERE = r"a LLaMA-style decoder (width 32, two layers) trained for 160 steps of 256 bytes on the manual of the Python interpreter"
STUDY = jd.Study(
    trial=trial,
    quick=QUICK,
    paper=PAPER,
    seeds=3,
    paper_seeds=5,
    evidence="network",
    source="arXiv:2403.03507, section 5 and table 2",
)
CLAIMS = (
    STUDY.claim(
        id="galore.ppl_order",
        statement=rf"Test perplexities of {WHERE}, by full Adam, GaLore (rank a quarter or a sixteenth of the width), GaLore with "
        "random bases or its first basis alone, LoRA, ReLoRA and factorised weights, each at the better of two rates: over full "
        "Adam's, compared with the published ratios for 60M weights; and those of GaLore over full Adam with the same two rates "
        r"(its $\alpha$ on the projected matrices, without projection).",
        quick=QUICK.replace(optimizer=list(METHODS), factor=[1 / 3, 1.0]),
        paper=PAPER.replace(optimizer=list(METHODS), factor=[0.1, 1 / 3, 1.0, 3.0]),
        expected="measured",
        judge=judge_order,
        rivals={
            "only full Adam learns": untrained("optimizer", *METHODS[1:]),
            "only Adam of full rank learns": untrained("optimizer", *METHODS[2:]),
        },
        found=FOUND_ORDER,
        plot=plot_order,
        caption="Test perplexity of each method at its best rate over that of full Adam: one dot per seed, and the published "
        "ratios "
        "for 60M weights (crosses).",
    ),
    STUDY.claim(
        id="galore.ablation",
        statement=rf"How the test perplexity of {WHERE} by GaLore-Adam depends on the period of the basis (10, 50, never), on the "
        r"rank (2, 8 of 32) and on the factor $\alpha$ (1/4, 1), crossed: ratios of perplexities, averaged over the other two.",
        quick=QUICK.replace(optimizer="galore", every=[0.0, 10.0, 50.0], rank=[2.0, 8.0], alpha=[0.25, 1.0]),
        paper=PAPER.replace(optimizer="galore", every=[0.0, 10.0, 50.0, 200.0], rank=[2.0, 4.0, 8.0, 16.0], alpha=[0.25, 1.0]),
        expected="measured",
        judge=judge_ablation,
        rivals={
            "without refreshed bases nothing is learnt": untrained("every", 0.0),
            "with T = 10 nothing is learnt": untrained("every", 10.0),
            "with rank 2 nothing is learnt": untrained("rank", 2.0),
            "with alpha 1 nothing is learnt": untrained("alpha", 1.0),
        },
        found=FOUND_ABLATION,
        plot=plot_ablation,
        caption="Test perplexity (mean over runs) against the period of the basis, for both ranks and both factors.",
    ),
    STUDY.claim(
        id="galore.eight_bit",
        statement=rf"By how much Adam's moments of one byte a number (blocks of 256 with codes spaced by magnitude) change the "
        rf"test perplexity of {WHERE}: with full Adam and with GaLore, over that with moments in float32, run by run.",
        source="arXiv:2403.03507, section 5.3; arXiv:2110.02861 (8-bit optimizers), section 2",
        quick=QUICK.replace(optimizer=["full", "galore"], moments=["float32", "8bit"]),
        paper=PAPER.replace(optimizer=["full", "galore"], moments=["float32", "8bit"]),
        expected="measured",
        judge=judge_eight_bit,
        controls={"bytes with equal steps": jd.Control({"moments": "linear"}, diverges=True)},
        rivals={"with 8-bit moments nothing is learnt": untrained("moments", "8bit")},
        found=FOUND_BITS,
        plot=plot_bits,
        caption="Validation perplexity along training with moments in float32 and in 8-bit blocks (median and central 90% of the "
        "runs).",
    ),
    STUDY.claim(
        id="galore.lm_low_rank_grad",
        statement=rf"How low the stable ranks of the gradient matrices of {WHERE} are with full Adam and with GaLore: the "
        r"largest of all matrices, records and runs over that of a Gaussian matrix of its shape, $mn/(\sqrt m + \sqrt n)^2$; and "
        "the least mean over matrices along training over that at the start, mean over runs of both. (With GaLore it falls less, "
        "and in one run of six hardly at all.)",
        source="arXiv:2403.03507, sections 3 and 5",
        quick=QUICK.replace(optimizer=["full", "galore"]),
        paper=PAPER.replace(optimizer=["full", "galore"]),
        expected="measured",
        judge=judge_ranks,
        controls={"gradients of independent Gaussian entries": UNSTRUCTURED},
        rivals={"training moves nothing: ranks of the start": STILL},
        found=FOUND_RANKS,
        plot=plot_ranks,
        caption="Stable ranks of the gradients of all matrices over those of Gaussian matrices of their shapes, along training "
        "(median and central 90% over matrices and runs).",
    ),
)
