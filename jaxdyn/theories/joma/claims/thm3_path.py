r"""The paths of Theorem 3: a node trained by gradient descent on samples of a mixture, against the ODE for (v, xi).

Step error and Monte Carlo error are separated: the paths of three step sizes on the same samples give the order in the step size
and its limit; independent replicates of the sample set give the standard error of that limit.
"""

from __future__ import annotations

import numpy as np
import scipy.stats
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.joma.extrapolation import extrapolated, halving_steps
from jaxdyn.theories.joma.trials.mixture_path import Path, path_trial

__all__ = ["CLAIMS", "hotelling", "judge_critical", "judge_path"]

LEVEL = 0.99  # family level of simultaneous tests


def _size(a: xr.DataArray) -> xr.DataArray:
    return np.sqrt((a**2).sum(["time", "coordinate"], min_count=1))


def _pooled(a: xr.DataArray) -> xr.DataArray:
    return np.sqrt((_size(a) ** 2).sum("seed", min_count=1))


def _limit(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray, xr.Dataset]:
    """Extrapolated path, order of the step error over all seeds, and the runs of the smallest step."""
    ds = halving_steps(ds)
    coarse, middle, fine = (ds.measured_path.isel(eta=i, drop=True) for i in range(3))
    order = np.log2(_pooled(coarse - middle) / _pooled(middle - fine))
    return extrapolated(ds.measured_path), order, ds.isel(eta=-1, drop=True)


def judge_path(ds: xr.Dataset) -> list[jd.Check]:
    """The path extrapolated to step size 0 against the ODE: over the displacement, and at the end against Monte Carlo error."""
    limit, order, fine = _limit(ds)
    moved = fine.predicted_path
    size = (_size(limit) ** 2).mean("seed")
    miss = np.sqrt((_size(limit - moved) ** 2).mean("seed") / size)
    test, bound = hotelling(extrapolated(halving_steps(ds).end) - moved.isel(time=-1))
    return [
        jd.gate("order of the step error", order, at_least=0.85, at_most=1.15),
        jd.at_most("path error over the displacement, rms over runs", miss, 0.02),
        jd.at_most("end of the path, Hotelling's F", test, bound),
    ]


def hotelling(miss: xr.DataArray) -> tuple[xr.DataArray, float]:
    r"""Hotelling's test of a mean vector over replicates: F of every run, and the bound for all runs at once.

    .. math:: F = \frac{R - p}{p\,(R - 1)}\, R\, \bar m^\top S^{-1} \bar m \sim F_{p, R - p}

    Letters: R replicates, p coordinates, S their sample covariance: a :math:`\chi^2` bound for a covariance that is estimated.
    """
    values = miss.transpose(..., "replicate", "coordinate")
    replicates, p = values.shape[-2:]
    mean = values.values.mean(-2)
    rest = values.values - mean[..., None, :]
    ok = np.isfinite(values.values).all((-2, -1))
    covariance = np.where(ok[..., None, None], np.swapaxes(rest, -1, -2) @ rest / (replicates - 1), np.eye(p))
    square = replicates * np.einsum("...i,...i", mean, np.linalg.solve(covariance, mean[..., None])[..., 0])
    test = values.isel(replicate=0, coordinate=0, drop=True).copy(data=(replicates - p) / (p * (replicates - 1)) * square)
    return test, float(scipy.stats.f.isf((1 - LEVEL) / max(int(ok.sum()), 1), p, replicates - p))


def plot_path(ds: xr.Dataset, fig: Figure) -> None:
    """Extrapolated against predicted displacement, and the error against the step size."""
    left, right = fig.subplots(1, 2)
    limit, _, fine = _limit(ds)
    for kind, color in zip(fine.activation.values, plotting.CYCLE, strict=False):
        plotting.scatter(left, fine.predicted_path.sel(activation=kind), limit.sel(activation=kind), str(kind), color, log=False)
    error = _size(ds.measured_path - limit) / _size(ds.predicted_path)
    plotting.order(right, ds.eta, error.transpose(..., "eta"), 1.0, "step error")
    floor = _size(limit - fine.predicted_path) / _size(fine.predicted_path)
    right.axhline(float(floor.median()), color=plotting.COLORS["control"], label="error of the limit (median)")
    left.set(xlabel="displacement by the ODE", ylabel=r"trained network, $\eta \to 0$")
    right.set(ylabel="path error over the displacement")


def judge_critical(ds: xr.Dataset) -> list[jd.Check]:
    """Over all runs: cosine of v with the nearest centre, share of v in the span of the centres, and the pace."""
    slower = (ds.measured_pace < 0.1).where(ds.measured_pace.notnull())
    every = [d for d in ds.measured_cosine.dims if d in ("activation", "seed")]
    return [
        jd.mean_within("cosine with the nearest centre", ds.measured_cosine, over=every, low=0.9, level=0.95),
        jd.mean_within("share of v in the span of the centres", ds.measured_in_span, over=every, low=0.95, level=0.95),
        jd.share_within("share of runs that slow down tenfold", slower, over=every, low=0.5, level=0.95),
    ]


def plot_critical(ds: xr.Dataset, fig: Figure) -> None:
    """Cosine with the nearest centre, before and after training."""
    ax = fig.subplots()
    for kind, color in zip(ds.activation.values, plotting.CYCLE, strict=False):
        part = ds.sel(activation=kind)
        ax.plot(np.ravel(part.start_cosine), np.ravel(part.measured_cosine), "o", color=color, label=str(kind))
    ax.axhline(1.0, color=plotting.COLORS["theory"], linestyle="--", label="heuristic: a cluster centre")
    ax.set(xlabel="start: cosine with the nearest centre", ylabel="end: cosine with the nearest centre")


CURVED = ["relu", "tanh", "gelu"]
PATHS = jd.grid(Path, activation=CURVED, eta=[0.1, 0.05, 0.025])
STUDY = jd.Study(trial=path_trial, quick=PATHS, seeds=4, paper_seeds=64, evidence="network", source="arXiv:2310.00535, Theorem 3")

CLAIMS = (
    STUDY.claim(
        id="joma.thm3_path",
        bounds=jd.looked(at="0:8", confirmed="4000:4008"),
        statement=r"Nodes (ReLU, tanh or GELU) with a given upper gradient that is constant within each component, each trained "
        r"by gradient descent on 3126 samples of a mixture of isotropic components, follow the ODE of Theorem 3 for $(v, \xi)$ in "
        r"the mean over 32 nodes, each with samples of its own: extrapolated to step size 0, the distance of the mean path from "
        r"the ODE's is at most 2% of the displacement (root mean square over the runs of an activation), and their ends agree "
        r"within Monte Carlo error in every run.",
        judge=judge_path,
        controls={"anisotropic noise": {"anisotropy": 0.8}},
        rivals={"nothing moves": jd.swap(predicted_path=0.0), "no residual path: xi dropped": jd.swap(predicted_path="without_xi")},
        plot=plot_path,
        caption=r"Left: mean displacement of $(v, \xi)$ of the trained nodes, extrapolated to step size 0, against the ODE; one "
        r"point per component, time and run, colours are activations. Right: error of the path over the displacement against the "
        r"step size, medians over the runs with bars over their full range; the horizontal line is the median error of the limit.",
    ),
    STUDY.claim(
        id="joma.critical_points",
        statement=r"The heuristic that training ends near a cluster centre, $v_{\rm end} \parallel \bar x_c$, measured for nodes "
        r"trained long under constant upper gradients: mean cosine of $v_{\rm end}$ with the nearest centre, mean share of $v_{\rm "
        r"end}$ in the span of the centres, and share of runs whose pace falls to a tenth.",
        source="arXiv:2310.00535, Theorem 3, discussion of critical points",
        expected="measured",
        found={
            "cosine with the nearest centre": (0.593, 0.82),
            "share of v in the span of the centres": (0.777, 1.0),
            "share of runs that slow down tenfold": (0.388, 0.755),
        },
        quick=jd.grid(Path, activation=CURVED, eta=[0.5], horizon=48.0),
        judge=judge_critical,
        controls={
            "weights of the start": jd.swap(measured_cosine="start_cosine", measured_in_span="start_in_span", measured_pace=1.0)
        },
        rivals={"random directions": jd.swap(measured_cosine=0.5, measured_in_span=(3 / 8) ** 0.5, measured_pace=1.0)},
        plot=plot_critical,
        caption=r"Largest absolute cosine of $v$ with a cluster centre, at the end of training against the start; one point per "
        r"run, colours are activations. Dashed: the heuristic, cosine 1.",
    ),
)
