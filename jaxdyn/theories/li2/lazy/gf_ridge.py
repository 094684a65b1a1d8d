r"""Stage I: the gradient that the top layer sends back, at the ridge solution, early, and along the flow.

One trial: the gradient flow of the top layer's loss by an ODE solver, from starts of several sizes; its closed form; gradients
by differentiation of the loss. Letters as in ``dynamics/ridge.py``; alpha is the standard deviation of V(0).
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, linalg, plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge

SOURCE = "arXiv:2509.21519"
SIZES = (0.0, 0.01, 0.1, 1.0)  # of alpha, in parts of the setting's
EARLY = (1e-7, 1e-6, 1e-5)
LATE = (1e-3, 1e-2, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)  # in parts of 1 / lambda_min(A)
SOLVED = 1e-8  # distance from the ridge solution, over its norm, that the solver resolves


@jd.setting
class StageOne:
    """The top layer on frozen features of random nodes, for random pairs of a group; ``noise`` and ``assumed`` are breaches."""

    activation: jd.Code = jd.code(*model.STUDIED)  # sigma of the hidden nodes
    eta: jd.Swept = jd.field(0.5, above=0, role="none")  # ridge (weight decay) of the top layer
    start: jd.Swept = jd.field(1e-3, above=0)  # the largest alpha
    noise: jd.Swept = 0.0  # added to the ridge solution
    assumed: jd.Swept = jd.field(1.0, above=0)  # the ridge of the closed form, in parts of eta
    group: str = "7"  # whose pairs are sampled; a number M is the residues modulo M
    samples: int = jd.field(30, at_least=2)  # random pairs of elements
    hidden: int = jd.field(8, at_least=1)  # K, frozen random nodes

    def __post_init__(self) -> None:
        """Refuse more samples than the group has pairs."""
        pairs = parse(self.group).order ** 2
        jd.require(self, self.samples <= pairs, f"samples is at most {pairs}, the number of pairs", "samples", "group")


def trial(s: StageOne, key: PRNGKeyArray) -> jd.Observables:
    """The flow from starts of every size, its closed form, and gradients at the ridge solution."""
    # frozen features, and the times and starts of the flow
    group = parse(s.group)
    k_rows, k_w, k_v, k_noise = jax.random.split(key, 4)
    samples = jax.random.choice(k_rows, model.pairs(group.order), (s.samples,), replace=False)
    w = jax.random.normal(k_w, (2 * group.order, s.hidden), jnp.float64) / 2
    f, y = model.features(w, samples, s.activation), model.targets(group, samples)
    rates, modes = linalg.eigh(ridge.gram(f, s.eta))
    rate = rates[0]
    ts = jnp.concatenate([jnp.asarray((0.0, *EARLY), jnp.float64), jnp.asarray(LATE, jnp.float64) / rate])
    shape = (s.hidden, group.order)
    starts = s.start * jnp.asarray(SIZES, jnp.float64)[:, None, None] * jax.random.normal(k_v, shape, jnp.float64)
    # V along the flow: by the solver, and its closed form
    solve = functools.partial(flow.gradient_flow, model.theory_loss, rtol=1e-11, atol=1e-15, max_steps=20_000)
    sol = jax.vmap(lambda v0: solve(v0, ts, f, y, s.eta))(starts)
    closed = jax.vmap(lambda v0: ridge.path(f, y, v0, s.assumed * s.eta, ts))(starts)

    # what is sent back
    def back(v: Float[Array, "K M"]) -> Float[Array, "n K"]:
        return -jax.grad(model.theory_loss, argnums=1)(v, f, y, s.eta)

    sent = jax.vmap(jax.vmap(back))(sol.ys)
    growth = (sent[:, 1 : 1 + len(EARLY)] - sent[:, :1]) / jnp.asarray(EARLY, jnp.float64)[:, None, None]
    # the mean rate from each time to the last, and how much of V - V* is then in the slowest mode
    v_star = ridge.solution(f, y, s.eta)
    distance = jnp.linalg.norm(sol.ys - v_star, axis=(2, 3))[:, -len(LATE) :]
    left = ts[-1] - ts[-len(LATE) : -1]
    measured_rate = jnp.log(distance[:, :-1] / distance[:, -1:]) / left
    parts = jnp.linalg.norm(modes.T @ (starts - v_star), axis=2)[:, None] * jnp.exp(-rates * ts[-len(LATE) :, None])
    room = jnp.log(jnp.linalg.norm(parts[:, :-1], axis=2) / parts[:, :-1, 0]) / left
    noisy = v_star + s.noise * jax.random.normal(k_noise, shape, jnp.float64)
    return jd.observables(
        predicted={
            "fixed": jd.named(ridge.fixed(f, y, s.eta), "sample node"),
            "growth": jd.named(ridge.early(f, y), "sample node"),
            "v": jd.named(closed, "alpha time node class"),
            "sent": jd.named(jax.vmap(jax.vmap(lambda v: ridge.backward(f, y, v)))(closed), "alpha time sample node"),
            "rate": rate,
        },
        measured={
            "fixed": jd.named(back(noisy), "sample node"),
            "growth": jd.named(growth, "alpha early sample node"),
            "v": jd.named(sol.ys, "alpha time node class"),
            "sent": jd.named(sent, "alpha time sample node"),
            "rate": jd.named(measured_rate, "alpha moment"),
        },
        recorded={
            "t": jd.named(ts, "time"),
            "floor": jnp.linalg.norm(ridge.fixed(f, y, s.eta)),
            "typical": jnp.mean(rates),
            "ridge": jnp.asarray(s.eta, jnp.float64),
            "room": jd.named(room, "alpha moment"),
            "end": jd.named(jnp.linalg.norm(parts[:, -1], axis=1) / jnp.linalg.norm(v_star), "alpha"),
        },
        status=jnp.max(sol.status),
        coords={"alpha": SIZES, "early": EARLY, "moment": LATE[:-1]},
    )


def judge_fixed(ds: xr.Dataset) -> list[jd.Check]:
    """G_F at the ridge solution."""
    return [jd.at_most("relative error of G_F", jd.relative_error(ds, "fixed", "sample node"), 1e-9)]


def _distance(ds: xr.Dataset) -> xr.DataArray:
    """Distance of the growth from the prediction, over the size of the growth."""
    dims = ["sample", "node"]
    return np.sqrt(((ds.measured_growth - ds.predicted_growth) ** 2).sum(dims) / (ds.measured_growth**2).sum(dims))


def judge_early(ds: xr.Dataset) -> list[jd.Check]:
    """The order of that distance in time, from V = 0, and in alpha, at the first time."""
    error = _distance(ds)
    in_time = stats.loglog_slope(ds.early, error.sel(alpha=0.0), "early")
    first = error.isel(early=0).sel(alpha=[a for a in SIZES if a > 0])
    in_alpha = stats.loglog_slope(first.alpha, first, "alpha")
    return [
        jd.within("order in time, from V = 0", in_time, 0.9, 1.1),
        jd.within("order in alpha, at the first time", in_alpha, 0.9, 1.1),
    ]


def judge_closed(ds: xr.Dataset) -> list[jd.Check]:
    """V and G_F along the flow, and the mean rates at which V converges between two times, with their bounds."""
    rate, least = ds.measured_rate.where(ds.end > SOLVED), ds.predicted_rate
    return [
        jd.at_most("largest relative error of V(t)", jd.relative_error(ds, "v", "node class"), 1e-5),
        jd.at_most("largest relative error of G_F(t)", jd.relative_error(ds, "sent", "sample node"), 1e-5),
        jd.at_least("mean rate of convergence over its lower bound", rate / least, 1 - 1e-4),
        jd.at_most("mean rate of convergence over its upper bound", rate / (least + ds.room), 1 + 1e-4),
    ]


def plot_fixed(ds: xr.Dataset, fig: Figure) -> None:
    """Both sides, entry by entry, for one seed."""
    ax = fig.subplots()
    one = ds.isel(seed=0)
    for kind, color in zip(model.STUDIED, ("measured", "third", "fourth"), strict=True):
        part = one.sel(activation=kind) if "activation" in one.dims else one
        plotting.scatter(ax, part.predicted_fixed, part.measured_fixed, kind, color, log=False)
    ax.set(xlabel=r"entries of $P_\eta \tilde Y \tilde Y^\top \tilde F B$", ylabel="by differentiation of the loss")


def plot_early(ds: xr.Dataset, fig: Figure) -> None:
    """The distance from the prediction against time and against alpha."""
    left, right = fig.subplots(1, 2)
    error = _distance(ds)
    plotting.order(left, ds.early, error.sel(alpha=0.0), 1, "from V = 0")
    plotting.order(right, 1e-3 * ds.alpha[1:], error.isel(early=0).sel(alpha=list(SIZES[1:])), 1, "at the first time")
    left.set(xlabel="time", ylabel=r"relative distance from $\tilde Y \tilde Y^\top \tilde F$")
    right.set(xlabel=r"$\alpha$, size of $V(0)$", ylabel="")


def plot_closed(ds: xr.Dataset, fig: Figure) -> None:
    """The size of G_F along the flow from the smallest and the largest start, for one seed, and at the ridge solution."""
    axes = fig.subplots(1, 2)
    for ax, kind in zip(axes, model.STUDIED, strict=False):
        one = ds.isel(seed=0)
        one = one.sel(activation=kind) if "activation" in one.dims else one
        t = one.t.isel(time=slice(1, None))
        for alpha, color in zip(SIZES[::3], ("measured", "third"), strict=True):
            sizes = (np.sqrt((v**2).sum(["sample", "node"])) for v in (one.measured_sent, one.predicted_sent))
            measured, predicted = (v.sel(alpha=alpha).isel(time=slice(1, None)) for v in sizes)
            ax.plot(t, measured, "o", color=plotting.COLORS[color], label=rf"$\alpha$ = {1e-3 * alpha:g}")
            ax.plot(t, predicted, color=plotting.COLORS["theory"], label="closed form" if alpha else None)
        ax.axhline(float(one.floor), color=plotting.COLORS["control"], linestyle=":", label="at the ridge solution")
        ax.set(xscale="log", yscale="log", xlabel="time", ylabel=r"$\|G_F\|$", title=kind)


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(StageOne, activation=list(model.STUDIED)),
    paper=jd.grid(StageOne, activation=list(model.STUDIED), group="S3", samples=30, hidden=24),
    seeds=6,
    paper_seeds=24,
    source=SOURCE,
    bounds="derived: float64 rounding, and the next order in time and in the size of the start",
    tested="Features of {hidden} nodes with random weights ({activation}) on {samples} random pairs of the group of residues "
    "modulo {group}; {seeds} seeds. The flow starts from V = 0 and from random V of three sizes up to {start}; rates of "
    f"convergence are those from times $x/\\lambda$, x from {LATE[0]} to {LATE[-2]:g}, until ${LATE[-1]:g}/\\lambda$, where "
    f"by the closed form the distance then still is {SOLVED:g} of the ridge solution's norm.",
)

CLAIMS = (
    STUDY.claim(
        id="li2.gf_fixed",
        talks=("grokking:li2-backpropagated",),
        title="What the fitted top layer sends back to the hidden layer",
        statement=r"An identity: where the top layer V is the ridge solution for weight decay $\eta$, the hidden layer receives "
        r"$G_F = \eta(\tilde F \tilde F^\top + \eta I)^{-1} \tilde Y \tilde Y^\top \tilde F (\tilde F^\top \tilde F + \eta "
        r"I)^{-1}$, the negative derivative of the loss $\frac12 \|\tilde Y - \tilde F V\|^2 + \frac\eta2 \|V\|^2$ with respect "
        r"to the features F; $\tilde F$ and $\tilde Y$ are features and targets minus their means over the samples.",
        source=f"{SOURCE}, Proposition 1",
        tested="Features of {hidden} nodes with random weights ({activation}) on {samples} random pairs of the group of residues "
        "modulo {group}, and the loss differentiated at the ridge solution; {seeds} seeds.",
        bounds="derived: float64 rounding of a product of solved systems",
        judge=judge_fixed,
        evidence="algebra",
        controls={"noise on the ridge solution": {"noise": 0.1}},
        rivals={
            "nothing is sent back": jd.swap(predicted_fixed=0.0),
            "the early signal": jd.swap(predicted_fixed="predicted_growth"),
        },
        plot=plot_fixed,
        caption=r"Entries of $G_F$ by differentiation of the loss against the formula, for one seed; a colour per activation. "
        "The line is equality.",
    ),
    STUDY.claim(
        id="li2.gf_early",
        title="At first the hidden layer receives the targets",
        statement=r"Under gradient flow of a top layer that starts with entries of size $\alpha$, on frozen features, the "
        r"gradient that the hidden layer receives grows as $G_F(t) = G_F(0) + t\,(\tilde Y \tilde Y^\top \tilde F + O(\alpha)) + "
        r"O(t^2)$: the targets $\tilde Y$ reach it, through the features $\tilde F$ (both minus their means), before they are "
        "fitted.",
        source=f"{SOURCE}, Stage I",
        judge=judge_early,
        evidence="flow",
        holds={"start": (3e-4, 1e-2)},
        controls={"a large top layer, alpha = 1": {"start": 1.0}},
        rivals={
            "no targets reach the hidden layer": jd.off(predicted_growth=0.0),
            "the signal at the ridge solution": jd.swap(predicted_growth="predicted_fixed"),
        },
        plot=plot_early,
        caption=r"Relative distance of $(G_F(t) - G_F(0))/t$ from $\tilde Y \tilde Y^\top \tilde F$: left over the time, from "
        r"$V = 0$; right over the size $\alpha$ of $V(0)$, at the first time. Median and central 90% of the runs; dashed: order "
        "1.",
    ),
    STUDY.claim(
        id="li2.gf_closed",
        talks=("grokking:li2-ridge",),
        title="On frozen features the top layer relaxes mode by mode",
        statement=r"Under gradient flow of the top layer on frozen features $\tilde F$ (minus their means), with weight decay "
        r"$\eta$, $V(t) = e^{-At}(V(0) - V^*) + V^*$ with $A = \tilde F^\top \tilde F + \eta I$ and the ridge solution $V^*$, "
        r"and $G_F(t)$ is the gradient at this V. Between two times V approaches $V^*$ at a mean rate of at least $\lambda$, the "
        r"smallest eigenvalue of A, and at most $\lambda + \ln(1/s) / \Delta t$, $\Delta t$ being the time between and s the share "
        r"of the slowest mode in the distance $\|V - V^*\|$ at the first of the two.",
        source=f"{SOURCE}, appendix C",
        judge=judge_closed,
        evidence="flow",
        controls={"closed form with a tenth more ridge": {"assumed": 1.1}},
        rivals={
            "the top layer does not move": jd.off(jd.initial("time", "predicted_v", "predicted_sent")),
            "convergence at the mean eigenvalue of A": jd.swap(predicted_rate="typical"),
            "convergence at the rate of the ridge alone": jd.swap(predicted_rate="ridge"),
        },
        plot=plot_closed,
        caption="Size of $G_F$ over time for one seed, a panel per activation: dots, the solver from $V = 0$ and from the "
        "largest start; lines, the closed form; dotted, the value at the ridge solution.",
    ),
)
