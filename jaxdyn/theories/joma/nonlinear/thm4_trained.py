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

LEARNED = 0.5  # of the loss at the start: the targets' noise is about a quarter of it
TYPICAL = 0.04  # error of the log distance, geometric mean over runs; single runs miss by 0.11
LEAST = 1e-30  # predicted distances below it, some of which are zero to rounding, count as this
DECADES = 2.0  # fewer than these show no decay
ONE = {"context": "one", "attention": "exp", "activation": "id", "queries": 1.0, "residual": 0.0, "eta": 0.04, "span": 0.8}
LATE = {"late": 1e-6, "low": 0.8, "high": 1.5}  # then the faster mode of each row is gone


def exponent(ds: xr.Dataset) -> xr.DataArray:
    """Growth of the logarithm of a row's speed per unit of half its squared norm: least squares over the tokens of a run."""
    kappa = ds.kappa - ds.kappa.mean("token")
    return (kappa * np.log(ds.measured_speed)).sum("token", min_count=1) / (kappa**2).sum("token", min_count=1)


def predicted_growth(ds: xr.Dataset) -> float:
    """The same in the prediction: 1 at Theorem 4's rates; 0 at the Hessian's, whose slowest mode is seen in all rows in the end."""
    same = (ds.predicted_distance == ds.theorem) | ds.theorem.isnull()
    return float(same.all())


def judge_trained(ds: xr.Dataset) -> list[jd.Check]:
    """Distances over the last decades, and how speeds grow with the norm, against the prediction."""
    far = ds.decades >= DECADES  # NaN: a run outside the assumptions
    share = far.where(ds.decades.notnull()).mean("seed")
    ds = ds.assign({name: ds[name].where(far) for name in ("measured_distance", "measured_speed")})
    predicted = np.maximum(ds.predicted_distance, LEAST)
    miss = np.sqrt((np.log(ds.measured_distance / predicted) ** 2).mean(["window", "token"]))
    growth = predicted_growth(ds)
    return [
        jd.gate("loss in the end over loss at the start", ds.loss.isel(end=-1) / ds.loss.isel(end=0), at_most=LEARNED),
        jd.gate("share of runs whose rows approach their limit over two decades or more", share, at_least=0.8),
        jd.mean_within("ln of the rms error of the log distance from the limit", np.log(miss), over="seed", high=np.log(TYPICAL)),
        jd.mean_within(
            "growth of ln speed with half the squared norm", exponent(ds), over="seed", low=growth - 0.2, high=growth + 0.2
        ),
    ]


def judge_separate(ds: xr.Dataset) -> list[jd.Check]:
    """Speed of each row over the closed form, extrapolated to step size 0."""
    jd.need(ds, nodes=1)
    ds = halving_steps(ds)
    ratio = extrapolated(ds.measured_speed / ds.predicted_speed)
    parts = {"several nodes": ratio.sel(nodes=ds.nodes > 1), "one node": ratio.sel(nodes=ds.nodes == 1)}
    return [jd.within(f"{name}: speed of a row over its prediction", part, 0.99, 1.01) for name, part in parts.items() if part.size]


# One node, whose weights move along mu alone, at the rate that several have across mu.
ACROSS_ALONE = jd.swap(predicted_speed=lambda ds: ds.predicted_speed.where(ds.nodes > 1, ds.predicted_speed / (1 + 2 * ds.kappa)))


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
    bounds=jd.tuned(on="0:8", confirmed_on="6000:6008"),
    min_ok=0.5,
    tested="A block with {attention} attention over {tokens} tokens and {nodes} {activation} nodes fits the outputs of "
    "another one, plus noise of size {noise}, on {samples} samples, by gradient descent on squared error at steps of "
    "{eta} until it has converged; seeds: {seeds}.",
    source="arXiv:2310.00535, Theorem 4, in trained networks; Hessian and closed form derived here",
)

trained = STUDY.claim(
    id="joma.thm4_trained",
    talks=("training:joma-nonlinear-equation",),
    title="In trained blocks the Hessian, not Theorem 4, sets the last rates",
    seeds=32,
    bounds=jd.tuned(on="6000:6024", confirmed_on="18000000:18000032"),
    statement="Where a block with softmax self-attention and tanh nodes is trained to convergence, the rows of its weights $V$ "
    r"approach their limit $\mu$ over the last decades (distances from $10^{-2}$ to $10^{-5}$) as the Hessian of the "
    "loss at the limit says, to 4% (root mean square over tokens and times, geometric mean over runs). Their speeds do "
    r"not grow with $\|\mu_l\|^2/2$, as Theorem 4's would: the slope of their logarithm is within .2 of zero, mean over "
    "runs.",
    form="hessian",
    decides={
        "as the Hessian of the loss at the limit says": (
            "ln of the rms error of the log distance from the limit",
            "the rates of Theorem 4",
        )
    },
    judge=judge_trained,
    assumes=(jd.below("unconverged", 1e-4),),
    controls={
        "one token a sample, linear nodes, exp attention": jd.Control(
            ONE,
            why="Only all of these together make blocks whose tokens do not interact, and smaller steps for their larger rates.",
        )
    },
    rivals={
        "nothing moves": jd.off(jd.initial("window", "predicted_distance")),
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
        title="Theorem 4's rates in trained blocks with self-attention",
        statement="Beyond Theorem 4's assumption of curvature one, where a block with softmax self-attention and tanh nodes "
        r"is trained to convergence, the rows of its weights $V$ approach their limit $\mu$ at rates in proportion to "
        r"$e^{\|\mu_l\|^2/2}$: their distances over the last decades to 4% (root mean square over tokens and times, geometric "
        r"mean over runs), and the slope of the logarithm of their speeds in $\|\mu_l\|^2/2$ to .2 of one, mean over runs.",
        form="theorem",
        source="arXiv:2310.00535, Theorem 4",
    ),
    STUDY.claim(
        id="joma.thm4_separate",
        talks=("training:joma-nonlinear-equation",),
        title="Where tokens do not interact, attention enters the last rate twice",
        statement="In a block with exp attention and linear nodes, trained on squared error with one token a sample at equal "
        r"rates of weights and logits, the latter from zero, row $l$ of the weights $V$ approaches its limit $\mu_l$ at the rate "
        r"$p_l\,e^{\|\mu_l\|^2 - \|v_l(0)\|^2}$ with several nodes, where what is left in the end lies across $\mu_l$, and at $1 "
        r"+ \|\mu_l\|^2$ times that with one node, along $\mu_l$ ($p_l$: share of token $l$; to 1%, extrapolated to step size 0 "
        "from steps at which the fastest row is stable: target rows of norm .8 to 1.5). Theorem 4 has half that exponent.",
        tested="A block with exp attention over {tokens} tokens and {nodes} linear nodes, one token a sample, no residual "
        "path, fits the outputs of another one, whose rows of weights have norms from {low} to {high}, plus noise of size "
        "{noise}, on {samples} samples, by gradient descent on squared error at steps of {eta} until it has converged; a "
        "row's rate is read once it is within {late} of its limit; seeds: {seeds}.",
        form="hessian",
        quick=jd.grid(Converge, nodes=[1, 3], **(ONE | LATE | {"eta": [0.08, 0.04, 0.02]})),
        holds={"low": (0.8, 0.8), "high": (1.2, 1.5)},
        judge=judge_separate,
        controls={"no attention": {"attention": "softmax"}, "tanh nodes": {"activation": "tanh"}},
        rivals={
            "no attention: all rows at one rate": jd.off(predicted_speed=lambda ds: 1 / ds.sizes["token"]),
            "the rates of Theorem 4": jd.swap(predicted_speed=lambda ds: np.exp(ds.kappa) / ds.sizes["token"]),
            "one node at the rate that several have across mu": ACROSS_ALONE,
        },
        plot=plot_separate,
        caption=r"Rate at which each row of $V$ approaches its limit against the closed form; one point per token, step size and "
        r"run.",
    ),
)
