r"""Claims on a LLaMA-style decoder trained on a text: perplexities by method, ablations, 8-bit moments, ranks of gradients.

The paper's sizes (60M to 7B, 1.3B tokens and more) are out of reach of a verdict in seconds; here are 0.06M weights. What the size
decides is therefore measured, and not held against the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.galore.trials.text import METHODS, Pretraining, trial

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


def tuned(ds: xr.Dataset) -> xr.Dataset:
    """Every method at the rate with the lowest validation loss at the end, mean over seeds."""
    valid = ds.loss.isel(step=-1).sel(part="valid")
    return ds.isel(factor=valid.mean("seed").fillna(np.inf).argmin("factor"))


def ratios(ds: xr.Dataset, against: str = "full") -> xr.DataArray:
    """Test perplexity of every method over that of one of them, each at its own rate, run by run (same start, same text)."""
    best = tuned(ds).measured_perplexity
    return best / best.sel(method=against, drop=True)


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """Ratios of perplexities over the published ones of the 60M model, and GaLore against Adam with the same two rates."""
    jd.need(ds, method=METHODS)
    paper = tuned(ds).predicted_perplexity
    paper = paper / paper.sel(method="full", drop=True)
    over, same = ratios(ds) / paper, ratios(ds, "scaled")
    checks = [
        jd.mean_within(f"perplexity / full Adam's, over the paper's: {LABELS[name]}", over.sel(method=name), over="seed", low=0.9, high=1.1, level=LEVEL)
        for name in METHODS[1:]
    ]
    return checks + [
        jd.mean_within(f"perplexity / that of full Adam with two rates: {LABELS[name]}", same.sel(method=name), over="seed", low=0.97, high=1.1, level=LEVEL)
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
    """Test losses with moments of one byte a number over those with float32."""
    jd.need(ds, moments=("float32", "8bit"))
    change = ds.measured_perplexity.sel(moments="8bit", drop=True) / ds.measured_perplexity.sel(moments="float32", drop=True)
    return [jd.mean_within("perplexity with 8-bit over that with float32 moments", change, over="seed", low=0.98, high=1.02)]


def judge_ranks(ds: xr.Dataset) -> list[jd.Check]:
    """Stable ranks against those of Gaussian matrices, and their course."""
    rank = ds.measured_stable_rank
    mean = rank.mean("matrix").mean([d for d in rank.dims if d not in ("seed", "step", "matrix")])
    return [
        jd.at_most("stable rank / that of a Gaussian matrix, every matrix and record", rank / ds.predicted_stable_rank, 0.75),
        jd.mean_within("mean over matrices / Gaussian, every record", (rank / ds.predicted_stable_rank).mean("matrix"), over="seed", high=0.5),
        jd.mean_within("mean stable rank, first record / start", mean.isel(step=1) / mean.isel(step=0), over="seed", high=0.9),
        jd.mean_within("mean stable rank, end / first record", mean.isel(step=-1) / mean.isel(step=1), over="seed", low=1.05),
    ]


def unlearnt(ds: xr.Dataset) -> xr.Dataset:
    """Only full Adam learns: every other method keeps the perplexity of the start."""
    start = np.exp(ds.loss.isel(step=0).sel(part="test", drop=True))
    trained = ds.measured_perplexity.where(ds.method == "full", start) if "method" in ds.dims else start
    return ds.assign(measured_perplexity=trained.transpose(*ds.measured_perplexity.dims))


def unequal(field: str, value: object) -> jd.Control:
    """Runs at one value of a field learn nothing."""
    def breach(ds: xr.Dataset) -> xr.Dataset:
        start = np.exp(ds.loss.isel(step=0).sel(part="test", drop=True))
        changed = ds.measured_perplexity.where(ds[field] != value, start)
        return ds.assign(measured_perplexity=changed.transpose(*ds.measured_perplexity.dims))

    return breach


CLAIMS = ()
