"""The claim on the largest margin: a construction that has it, and what perturbed weights lose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.morwani.trials.constructed import Constructed, trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "judge"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The construction's margin, and that of every perturbed network."""
    jd.need(ds, seed=8)
    return [
        jd.at_most("relative error of the construction's margin", jd.relative_error(ds, "margin", "prime"), 1e-12),
        jd.at_most("margin of perturbed weights / largest", ds.moved / ds.predicted_margin, 1 - 1e-9),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Margins against the modulus; what perturbations lose against their size."""
    left, right = fig.subplots(1, 2)
    left.plot(ds.prime, ds.measured_margin.isel(seed=0), "o", color=plotting.COLORS["measured"], label="constructed")
    left.plot(ds.prime, ds.predicted_margin.isel(seed=0), color=plotting.COLORS["theory"], label="predicted")
    left.plot(ds.prime, ds.single.isel(seed=0), ":", color=plotting.COLORS["control"], label="one frequency")
    left.set(xlabel="modulus p", ylabel="normalised margin", xscale="log", yscale="log")
    for i, color in zip(range(ds.sizes["prime"]), ("measured", "third", "fourth", "fifth"), strict=False):
        lost = (1 - ds.moved / ds.predicted_margin).isel(prime=i)
        plotting.band(right, ds["size"], lost.transpose(..., "size"), f"p = {int(ds.prime[i])}", color, marker="o")
    right.set(xlabel="size of the perturbation", ylabel="share of the margin lost", xscale="log", yscale="log")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Constructed),
    paper=jd.grid(Constructed, moduli=(5, 11, 23, 37, 59)),
    seeds=8,
    paper_seeds=8,
    evidence="algebra",
    source="arXiv:2311.07568, theorem 7",
)

CLAIMS = (
    STUDY.claim(
        id="morwani.construction",
        bounds="derived",
        statement="For addition modulo a prime p (5, 11 and 23 at small scale), the network of squares with eight nodes of each of "
        r"the $(p-1)/2$ frequencies, all of equal norm, has the margin $\sqrt{2/27}\,/\,\sqrt p\,(p-1)$ over the cube of its "
        r"$(2,3)$-norm. Networks whose weights differ from it by random perturbations of relative size $10^{-4}$ to $10^{-1}$ "
        "have a smaller one. This evaluates a construction; nothing is trained.",
        judge=judge,
        controls={
            "output phases of their own": jd.Control({"phases": "free"}, every_seed=True),
            "without the first frequency": jd.Control({"left_out": 1.0}, every_seed=True),
        },
        rivals={"one frequency": jd.swap(predicted_margin="single"), "no margin": jd.scaled(predicted_margin=1e-9)},
        plot=plot,
        caption="Left: margin over the cube of the (2,3)-norm against the modulus. Right: share of this margin that random "
        "perturbations lose, against their size over that of the weights; lines and bands: median and central 90% of the seeds.",
    ),
)
