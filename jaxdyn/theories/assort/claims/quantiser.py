"""Claims on the quantiser: its choice, its gradients, and a codebook of averages."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.assort.trials.quantiser import Quantiser, trial

__all__ = ["CLAIMS", "judge_averages", "judge_quantiser"]

EXACT = 1e-12  # some hundred sums in float64


def error(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Absolute error of a measured quantity."""
    return abs(ds[f"measured_{name}"] - ds[f"predicted_{name}"])


def judge_quantiser(ds: xr.Dataset) -> list[jd.Check]:
    """Choice, idempotence, and the three gradients."""
    scale = abs(ds.predicted_gradient).max()
    return [
        jd.at_most("codes that are not the nearest, by brute force", (error(ds, "code") > 0).sum("vector"), 0),
        jd.at_most("distance less the smallest one", error(ds, "distance"), EXACT),
        jd.at_most("codes that change when quantised again", (error(ds, "again") > 0).sum("vector"), 0),
        jd.at_most("gradient at x against finite differences at q(x)", error(ds, "gradient") / scale, 1e-7),
        jd.at_most("gradient of the commitment: absolute error", error(ds, "commitment"), EXACT),
        jd.at_most("gradient of the codebook: absolute error", error(ds, "pull"), EXACT),
    ]


def judge_averages(ds: xr.Dataset) -> list[jd.Check]:
    """Vectors of the codebook after 1 to 64 steps."""
    return [jd.at_most("vectors of the codebook: absolute error", error(ds, "average"), EXACT)]


def plot_quantiser(ds: xr.Dataset, fig: Figure) -> None:
    """Gradients at the vectors against finite differences, and the commitment's against its formula."""
    for ax, name, label in zip(
        fig.subplots(1, 2), ("gradient", "commitment"), ("finite differences at $q(x)$", r"$2\beta(x - e)$"), strict=True
    ):
        x, y = (ds[f"{side}_{name}"].values.ravel() for side in ("predicted", "measured"))
        ax.plot(x, y, ".", ms=3, color=plotting.COLORS["measured"])
        ax.plot([x.min(), x.max()], [x.min(), x.max()], "--", color=plotting.COLORS["theory"])
        ax.set(xlabel=label, ylabel="gradient at $x$")


def plot_averages(ds: xr.Dataset, fig: Figure) -> None:
    """Distance of the codebook from its start, by steps."""
    ax = fig.subplots()
    for side, color, style in (("measured", "measured", "o"), ("predicted", "theory", "--")):
        moved = np.sqrt(((ds[f"{side}_average"] - ds.start) ** 2).sum("coordinate")).mean(("code", "seed"))
        for decay in np.atleast_1d(ds.decay.values):
            one = moved.sel(decay=decay) if "decay" in moved.dims else moved
            ax.plot(ds.record, one, style, color=plotting.COLORS[color])
    ax.set(xscale="log", xlabel="steps", ylabel="distance from the start")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Quantiser, beta=[0.25, 1.0]),
    paper=jd.grid(Quantiser, beta=[0.25, 1.0], vectors=1024, codes=256, width=64),
    seeds=8,
    paper_seeds=16,
    evidence="algebra",
    bounds="derived",
    source="arXiv:1711.00937, equations 1-3 and appendix A.1; arXiv:2502.03275, section 3.1",
)

CLAIMS = (
    STUDY.claim(
        id="assort.quantiser",
        statement=r"The quantiser replaces each $x$ by the nearest of $K$ vectors, as a search of all distances gives it, and "
        r"leaves what is quantised as it is. Straight-through, the gradient of $f(q(x))$ at $x$ is $\nabla f$ at $q(x)$ (finite "
        r"differences, relative error $10^{-7}$); the gradient of $\beta\|x - \mathrm{sg}[e]\|^2$ is $2\beta(x - e)$ and does not "
        r"reach the codebook, whose own is $\sum_{k(x) = k} 2(e_k - x)$. (At 64 random vectors and 16 codes, without training.)",
        judge=judge_quantiser,
        controls={
            "largest inner product instead of nearest": {"choice": "product"},
            "gradient of the choice itself": {"passing": "hard"},
            "no gradient is stopped": {"stopped": 0.0},
            "chosen again: codes of other vectors": jd.rolled(measured_again="vector"),
        },
        rivals={"nothing comes back through the quantiser": jd.swap(predicted_gradient=0.0)},
        plot=plot_quantiser,
        caption="Entries of gradients at all vectors, through the quantiser against finite differences behind it, and of the "
        "commitment against the formula.",
    ),
    STUDY.claim(
        id="assort.averages",
        statement=r"With a fixed assignment, a codebook of exponential averages is $e_k = (\gamma^n e_k^0 + (1 - \gamma^n) "
        r"\sum_{k(x) = k} x) / (\gamma^n + (1 - \gamma^n) n_k)$ after $n$ steps from $e_k^0$, with $n_k$ vectors assigned to code "
        r"$k$, for $n$ = 1 to 64 and $\gamma$ = 0.8 and 0.95: codes in use tend to the mean of their vectors, and codes without "
        "any stay. (At 64 random vectors and 16 codes, without training.)",
        quick=jd.grid(Quantiser, decay=[0.8, 0.95]),
        paper=jd.grid(Quantiser, decay=[0.8, 0.95], vectors=1024, codes=256, width=64),
        source="derived, for arXiv:1711.00937, appendix A.1",
        judge=judge_averages,
        controls={"measured at the codes one further": jd.rolled(measured_average="code")},
        rivals={"the codebook stays": jd.swap(predicted_average="start")},
        plot=plot_averages,
        caption="Mean distance of the codebook's vectors from their start after steps with a fixed assignment: steps (points) and "
        "closed form (dashed), for each decay.",
    ),
)
