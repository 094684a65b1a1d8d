r"""Theorem 4 in networks that are trained to convergence: how fast do the rows of V approach their limit?

The networks and their training are in ``convergence.py``. The theorem replaces the curvature of the loss by the identity. Here
nothing is replaced: the Hessian of a block with self-attention couples the tokens, and in the end the slowest of its modes is seen
in all of them. Where tokens do not interact, attention enters the rate twice, once forward and once backward.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.joma.convergence import Converge, trial
from jaxdyn.theories.joma.extrapolation import extrapolated, halving_steps

__all__ = ["CLAIMS", "exponent", "judge_separate", "judge_trained"]

LEARNED = 0.5  # of the loss at the start: the targets' noise is about a quarter of it
TYPICAL = 0.04  # error of the log distance, geometric mean over runs; single runs miss by 0.11
DECADES = 2.0  # fewer than these show no decay
ONE = {"context": "one", "attention": "exp", "activation": "id", "queries": 1.0, "residual": 0.0, "eta": 0.04, "span": 0.8}
LATE = {"late": 1e-6, "low": 0.8, "high": 1.5}  # then the faster mode of each row is gone


def exponent(ds: xr.Dataset) -> xr.DataArray:
    """Growth of the logarithm of a row's speed per unit of half its squared norm: least squares over the tokens of a run."""
    kappa = ds.kappa - ds.kappa.mean("token")
    return (kappa * np.log(ds.measured_speed)).sum("token", min_count=1) / (kappa**2).sum("token", min_count=1)


def judge_trained(ds: xr.Dataset) -> list[jd.Check]:
    """Distances over the last decades against the linear descent of the Hessian, and how speeds grow with the norm."""
    far = ds.decades >= DECADES  # NaN: a run outside the assumptions
    share = far.where(ds.decades.notnull()).mean("seed")
    ds = ds.assign({name: ds[name].where(far) for name in ("measured_distance", "measured_speed")})
    miss = np.sqrt((np.log(ds.measured_distance / ds.predicted_distance) ** 2).mean(["window", "token"]))
    return [
        jd.gate("loss in the end over loss at the start", ds.loss.isel(end=-1) / ds.loss.isel(end=0), at_most=LEARNED),
        jd.gate("share of runs whose rows approach their limit over two decades or more", share, at_least=0.8),
        jd.mean_within("ln of the rms error of the log distance from the limit", np.log(miss), over="seed", high=np.log(TYPICAL)),
        jd.mean_within("growth of ln speed with half the squared norm", exponent(ds), over="seed", low=-0.2, high=0.2),
    ]


def judge_separate(ds: xr.Dataset) -> list[jd.Check]:
    """Speed of each row over the closed form, extrapolated to step size 0."""
    ds = halving_steps(ds)
    return [jd.within("speed of a row over its prediction", extrapolated(ds.measured_speed / ds.predicted_speed), 0.99, 1.01)]


def plot_trained(ds: xr.Dataset, fig: Figure) -> None:
    """Distance of each row from its limit against the prediction, and the speeds against half the squared norm."""
    left, right = fig.subplots(1, 2)
    forms = {str(f): ds.sel(form=f) for f in ds.form.values} if "form" in ds.dims else {"hessian": ds}
    for form, label, color in (("theorem", "Theorem 4", "failed"), ("hessian", "Hessian at the limit", "measured")):
        if form in forms:
            plotting.scatter(left, forms[form].predicted_distance, ds.measured_distance, label, color, log=True)
    left.set_xlim(left=1e-7)  # Theorem 4 predicts distances down to 1e-40
    left.set_ylim(bottom=1e-7)
    left.set(xlabel="predicted distance from the limit", ylabel="distance in the trained network")
    speed = ds.measured_speed / ds.slowest
    right.semilogy(np.ravel(ds.kappa), np.ravel(speed.transpose(*ds.kappa.dims)), "o", color=plotting.COLORS["measured"])
    x = np.linspace(0, float(ds.kappa.max()), 50)
    right.semilogy(x, np.exp(x), "--", color=plotting.COLORS["theory"], label=r"$e^{\|\mu\|^2/2}$")
    right.set(xlabel=r"$\|\mu_l\|^2/2$", ylabel="speed / slowest mode")


def plot_separate(ds: xr.Dataset, fig: Figure) -> None:
    """Speed of each row against the closed form."""
    plotting.scatter(fig.subplots(), ds.predicted_speed, ds.measured_speed, "tokens of all runs and step sizes", log=True)


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Converge),
    seeds=4,
    paper_seeds=64,
    evidence="network",
    bounds=jd.looked(at="0:8", confirmed="6000:6008"),
    min_ok=0.5,
    source="arXiv:2310.00535, Theorem 4, in trained networks; Hessian and closed form derived here",
)

trained = STUDY.claim(
    id="joma.thm4_trained",
    seeds=32,
    bounds=jd.looked(at="6000:6024", confirmed="18000000:18000032"),
    statement=r"A block with softmax self-attention over 8 tokens and 3 tanh nodes, trained by gradient descent on squared error "
    r"to convergence: over the last decades (distances from $10^{-2}$ to $10^{-5}$ of the limit $\mu$) the rows of $V$ approach "
    r"$\mu$ as the Hessian of the loss at the limit says, to 4% (root mean square over tokens and times, geometric mean over "
    r"runs). Their speeds do not grow with $\|\mu_l\|^2/2$: the slope of their logarithm is within .2 of zero, mean over runs.",
    form="hessian",
    judge=judge_trained,
    assumes=(jd.below("unconverged", 1e-4),),
    controls={"one token a sample, linear nodes, exp attention": ONE},
    rivals={
        "nothing moves": jd.initial("window", "predicted_distance"),
        "the rates of Theorem 4": jd.swap(predicted_distance="theorem"),
    },
    plot=plot_trained,
    caption=r"Left: distance of each row of $V$ from its limit over the last decades of training, against the linear descent of "
    r"the Hessian at the limit and against the rates of Theorem 4 (slowest row at the slowest mode's rate); one point per token, "
    r"time and run. Right: speed of each row over that of the slowest mode, against half the squared norm of its limit; dashed: "
    r"Theorem 4.",
)

CLAIMS = (
    trained,
    trained.as_printed(
        id="joma.thm4_beyond",
        statement=r"Theorem 4 beyond its assumption of curvature one, in a block with softmax self-attention over 8 tokens and 3 "
        r"tanh nodes that is trained to convergence: the rows of $V$ approach their limit $\mu$ at rates in proportion to "
        r"$e^{\|\mu_l\|^2/2}$.",
        form="theorem",
        source="arXiv:2310.00535, Theorem 4",
    ),
    STUDY.claim(
        id="joma.thm4_separate",
        statement=r"A block with exp attention and linear nodes, trained by gradient descent on squared error with one token a "
        r"sample and no residual path: row $l$ of $V$ approaches its limit $\mu_l$ at the rate $p_l\,e^{\|\mu_l\|^2 - "
        r"\|v_l(0)\|^2}$, $p_l$ its share of the samples (to 1%, extrapolated to step size 0). Theorem 4 has half that exponent: "
        r"attention enters forward and backward.",
        form="hessian",
        quick=jd.grid(Converge, **(ONE | LATE | {"eta": [0.08, 0.04, 0.02]})),
        judge=judge_separate,
        controls={"no attention": {"attention": "softmax"}, "tanh nodes": {"activation": "tanh"}},
        rivals={
            "no attention: all rows at one rate": jd.swap(predicted_speed=lambda ds: 1 / ds.sizes["token"]),
            "the rates of Theorem 4": jd.swap(predicted_speed=lambda ds: np.exp(ds.kappa) / ds.sizes["token"]),
        },
        plot=plot_separate,
        caption=r"Rate at which each row of $V$ approaches its limit against the closed form; one point per token, step size and "
        r"run.",
    ),
)
