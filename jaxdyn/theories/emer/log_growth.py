r"""Where :math:`\mu`, the searching layer's diagonal, grows without end, like the logarithm of time, and at which rate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.emer.search_flow import SearchFlow, trial

__all__ = ["CLAIMS", "judge", "judge_joint"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Slope of mu in ln t over the last decade, and mu itself against the leading term."""
    offset = abs(ds.measured_late - ds.predicted_late) / ds.predicted_slope
    return [
        jd.at_most("dmu/dln t over the last decade, against the law, relative", jd.relative_error(ds, "slope"), 0.002),
        jd.at_most("mu at t = 1e12 minus its leading term, over the slope", offset, 0.005),
    ]


def judge_joint(ds: xr.Dataset) -> list[jd.Check]:
    """Slope of mu where nu is free."""
    error = abs(ds.measured_joint_slope - ds.predicted_joint_slope)
    return [jd.at_most("dmu/dln t over the last decade, against that of the largest margin", error, 0.02)]


def power(exponent: float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival: mu grows like this power of time, and has its measured value at the end."""
    factor = (1 - 10.0**-exponent) / np.log(10)
    return jd.swap(predicted_slope=lambda ds: ds.measured_late * factor, predicted_late="measured_late")


STILL = jd.swap(predicted_slope=0.0, predicted_late=0.0, predicted_joint_slope=0.0)


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Mu along the flow, and its slope against the law's."""
    left, right = fig.subplots(1, 2)
    paths = ds.measured_mu.isel(time=slice(1, None)).stack(every=ds.status.dims).transpose("time", "every")
    left.semilogx(ds.time.values[1:], paths, color=plotting.COLORS["measured"], linewidth=1.0, alpha=0.6)
    left.set(xlabel="t", ylabel=r"$\mu$")
    joint = "train" in ds.coords and str(np.atleast_1d(ds.train.values)[0]) == "full"
    name = "joint_slope" if joint else "slope"
    plotting.scatter(right, ds[f"predicted_{name}"], ds[f"measured_{name}"], label="runs", color="measured", log=False)
    right.set(xlabel=r"$d\mu/d\ln t$ of the law", ylabel=r"$d\mu/d\ln t$ at $t = 10^{12}$")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(SearchFlow, target="top", train="diagonal", inside=[2.0, 3.0], density=0.2),
    seeds=4,
    paper_seeds=32,
    evidence="flow",
    bounds="derived",  # the next level's share is about t ** (-1/d_max), 1e-4, and the solver's error is less
    form="alone",
    source="arXiv:2509.23365, Theorem 1 (rates); the offset of the leading term is derived",
    plot=plot,
    caption=r"$\mu$ along the gradient flow, one line per run, and its slope over the last decade against the law's.",
)
SETUP = (
    "In the gradient flow of the diagonal of the searching layer's matrix, with vertices renamed at random (7 vertices, random "
    "digraphs)"
)
LOOKED = jd.looked(at="0:4", confirmed="61000000:61000004")
POWERS = {"mu grows like the root of time": power(0.5), "mu grows linearly": power(1.0)}

CLAIMS = (
    STUDY.claim(
        id="emer.log_growth",
        bounds=LOOKED,
        statement=rf"{SETUP}, with Coconut's loss and a demonstrated vertex of the highest degree $d_{{max}}$ from the thought, "
        r"$\mu$ grows without end: at $t = 10^{12}$ its slope $d\mu/d\ln t$ is $\sqrt K/(d_{max} - d_2)$ within 0.2%, $d_2$ the "
        r"second highest degree, and $\mu$ differs from the leading term $\frac{\sqrt K}{\Delta}\ln\frac{\Delta^2 r t}{nK}$ by at "
        r"most 0.005 times this slope, $\Delta = d_{max} - d_2$, r the ratio of the weights of both levels.",
        judge=judge,
        controls={"the demonstrated vertex has not the highest degree": {"target": "middle"}},
        rivals={
            "nothing moves": STILL,
            "the slope of Coconut-BFS": jd.swap(predicted_slope="second_slope"),
            **POWERS,
        },
    ),
    STUDY.claim(
        id="emer.log_growth_bfs",
        bounds=LOOKED,
        statement=rf"{SETUP}, with the loss of Coconut-BFS, $\mu$ grows without end whatever vertex is demonstrated: at "
        r"$t = 10^{12}$ its slope $d\mu/d\ln t$ is $\sqrt K/d_{max}$ within 0.2%, and $\mu$ differs from the leading term "
        r"$\frac{\sqrt K}{d_{max}}\ln\frac{d_{max}^2 r t}{nK}$ by at most 0.005 times this slope, r the weight of the vertices out "
        "of reach over that of those with $d_{max}$ edges.",
        quick=jd.grid(SearchFlow, loss="bfs", target="middle", train="diagonal", inside=[2.0, 3.0], density=0.2),
        judge=judge,
        controls={"Coconut's loss": {"loss": "coconut"}},
        rivals={"nothing moves": STILL, **POWERS},
    ),
    STUDY.claim(
        id="emer.growth_full",
        statement="In the gradient flow of the searching layer's full matrix with Coconut's loss and vertices renamed at random (7 "
        r"vertices, 3 of them in the thought, random digraphs), where a line separates the demonstrated vertex's features "
        r"$(a_p, b_p)$ from all others, how far is $d\mu/d\ln t$ at $t = 10^{12}$ from that of the matrix of least norm with "
        "margins 1? By less than 0.06 in every run.",
        expected="measured",
        quick=jd.grid(SearchFlow, target=["middle", "top"], train="full", density=0.2),
        judge=judge_joint,
        assumes=(jd.above("hull_gap", 0.05),),
        controls={"the diagonal alone is trained": {"train": "diagonal"}},
        rivals={"nothing moves": STILL, "the slope of mu alone": jd.swap(predicted_joint_slope="predicted_slope")},
        found={"dmu/dln t over the last decade, against that of the largest margin": (0.0, 0.06)},
        source="derived; arXiv:1710.10345 has the direction of separable problems",
    ),
)
