"""Claim on small decoders of one number of weights: which depth does best."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.mobile.claims.trained import MARGIN, RATES, equal, learned, margin, tuned, unlearnt
from jaxdyn.theories.mobile.trials.depth import Depth, trial

__all__ = ["CLAIMS", "judge", "optimum"]

SHAPES = ["1x48", "3x32", "6x24"]

FOUND = {  # intervals of seeds 0:4 and 7102000:7102004, from the lowest to the highest end
    "layers of the best shape": (1.0, 1.0),
    "loss, 3x32 less 1x48": (0.07, 0.45),
    "loss, 6x24 less 1x48": (0.16, 0.5),
}


def optimum(ds: xr.Dataset) -> float:
    """Layers of the shape with the lowest validation loss, mean over seeds, each at its own rate."""
    valid = tuned(ds).curve.isel(step=-1, drop=True).sel(part="valid", drop=True).mean("seed")
    return float(ds.layers.max([d for d in ds.layers.dims if d != "shape"]).isel(shape=int(valid.argmin("shape"))))


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Losses of deeper shapes less that of the shallowest, and the depth of the best."""
    shapes = [str(s) for s in ds["shape"].values]
    jd.need(ds, shape=shapes[:2])
    best = tuned(ds).measured_loss
    first = best.sel(shape=shapes[0], drop=True)
    return [
        learned(ds),
        jd.gate(
            "weights over those asked for", ds["count"] / ds["count"].sel(shape=shapes[0], drop=True), at_least=0.99, at_most=1.01
        ),
        jd.within("layers of the best shape", optimum(ds), 2, 100),
        *(margin(f"loss, {s} less {shapes[0]}", best.sel(shape=s) - first, high=-MARGIN) for s in shapes[1:]),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Test loss over depth, each shape at its own rate."""
    ax, best = fig.subplots(), tuned(ds).measured_loss
    layers = ds.layers.max([d for d in ds.layers.dims if d != "shape"])
    plotting.band(ax, layers, best.transpose(..., "shape"), "equal numbers of weights", "measured")
    ax.set(xscale="log", xlabel="layers", ylabel="test loss, nats a byte")
    ax.set_xticks(layers.values, [f"{n:.0f}" for n in layers.values])


QUICK = jd.grid(Depth, shape=SHAPES, lr=RATES)
PAPER = jd.grid(
    Depth,
    shape=["2x208", "4x144", "8x104", "16x72"],
    weights=1_100_000,
    lr=[5e-4, 1e-3, 2e-3, 4e-3],
    batch=16,
    length=128,
    steps=4000,
)
CLAIMS = (
    jd.Study(
        trial=trial,
        quick=QUICK,
        paper=PAPER,
        seeds=4,
        paper_seeds=4,
        evidence="network",
        source="arXiv:2402.14905, section 2.2 (depth against width)",
    ).claim(
        id="mobile.depth",
        statement="Which depth does best at equal numbers of weights? Decoders of 33 thousand weights with tied read-out, of "
        "one layer (width 48), three (32) or six (24), trained for 120 steps of 128 bytes on the Python interpreter's manual, "
        "each at the better of two rates: layers of the best by validation loss, and test losses of deeper ones less that of one. "
        "So short a training prefers one layer, in two sets of four runs.",
        expected="measured",
        judge=judge,
        rivals={
            "depth makes no difference": equal("shape", "1x48"),
            "only the shallowest learns": unlearnt("shape", "3x32", "6x24"),
        },
        found=FOUND,
        plot=plot,
        caption="Test loss over the number of layers at equal numbers of weights (median and central 90% of the runs).",
    ),
)
