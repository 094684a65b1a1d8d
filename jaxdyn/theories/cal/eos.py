r"""The edge of stability, on the product of two numbers and on a tanh network.

Two scalars with loss :math:`L = \tfrac12(uv-1)^2`: how sharp the minima are in which gradient flow and gradient descent end.

Both start from one point and run to the end. The theory gives the flow's final sharpness in closed form, and the leading change of
it that a finite step size makes; no end can be sharper than the edge :math:`2/\eta`.

The edge of stability: the sharpness of a tanh network under full-batch gradient descent settles at 2 over the step size.

The sharpness, the largest eigenvalue of the Hessian, is followed by power iteration along training. Training at a small step size
stands for the flow: only runs whose flow becomes sharper than the edge count.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, train
from jaxdyn.status import DIVERGED, OK, UNCONVERGED
from jaxdyn.theories.cal import dynamics as theory
from jaxdyn.theories.cal.model import Tanh, pair_loss, tanh_init, tanh_loss
from jaxdyn.theories.cal.orders import order_checks


@jd.setting
class Pair:
    """Gradient descent and gradient flow of two scalars with loss ``(uv - 1)^2 / 2`` from one start."""

    eta: jd.Swept = jd.field(0.1, above=0)  # step size
    optimizer: jd.Code = jd.code("gd", "adam")  # gradient descent (gd) or Adam
    start: jd.Code = jd.code("reference", "random")  # reference: the point (u, v), random: a point near (3, 0.2)
    u: jd.Swept = 3.0  # first number of the reference start
    v: jd.Swept = 0.2  # second number of the reference start
    horizon: jd.Swept = jd.field(20.0, above=0)  # time at which gradient flow ends
    steps: int = jd.field(3000, at_least=1)  # steps of the optimizer


SETTLED = 1e-10  # residual |uv - 1| at which a run has stopped


def uv_trial(s: Pair, key: PRNGKeyArray) -> jd.Observables:
    """Gradient descent and gradient flow from one start, both to the end."""
    u0, v0 = jax.random.uniform(key, (2,), jnp.float64, jnp.array([2.5, 0.05]), jnp.array([3.0, 0.25]))
    drawn = s.start == "random"
    start = jnp.where(drawn, u0, s.u), jnp.where(drawn, v0, s.v)
    tx = train.switched(s.optimizer, {"gd": optax.sgd(s.eta), "adam": optax.adam(s.eta)})
    step = train.make_step(pair_loss, tx)
    last, _ = train.record(step, train.init(tx, start), lambda c: None, samples=1, every=s.steps)
    u, v = last.params
    sol = flow.gradient_flow(pair_loss, start, jnp.stack([0 * s.horizon, s.horizon]), rtol=1e-11, atol=1e-13)
    sharpness = u**2 + v**2
    flow_end = sol.ys[0][-1] ** 2 + sol.ys[1][-1] ** 2
    of_flow = theory.flow_sharpness(*start)
    settled = jnp.where(jnp.abs(u * v - 1) < SETTLED, OK, UNCONVERGED)
    ended = jnp.where(jnp.isfinite(sharpness), settled, DIVERGED)
    return jd.observables(
        predicted={"edge": theory.edge(s.eta), "flow": of_flow, "lead": of_flow + s.eta * theory.flattening(*start)},
        measured={"edge": sharpness, "flow": flow_end, "lead": sharpness},
        recorded={"start_sharpness": start[0] ** 2 + start[1] ** 2},
        status=jnp.where(sol.status == OK, ended, sol.status),
    )


SMALL = 0.03  # step sizes up to here are far below the edge for all starts, and serve the order in the step size


def judge_uv(ds: xr.Dataset) -> list[jd.Check]:
    """End of the flow; no end above the edge; and the end at small steps, to the order after the leading one."""
    small = ds.sel(eta=ds.eta[ds.eta <= SMALL]) if "eta" in ds.dims else ds
    return [
        jd.at_most("flow: relative error of the final sharpness", jd.relative_error(ds, "flow"), 1e-8),
        jd.at_most("final sharpness over 2 / step size", ds.measured_edge / ds.predicted_edge, 1.0),
        *order_checks(small, "lead", 2, 0.15),
    ]


def plot_uv(ds: xr.Dataset, fig: Figure) -> None:
    """Final sharpness against the step size, with the edge and the flow's; its change at small steps by order."""
    left, right = fig.subplots(1, 2)
    runs = ds.measured_edge.transpose("eta", ...).values.reshape(ds.sizes["eta"], -1)
    left.plot(ds.eta, runs, "o", color=plotting.COLORS["measured"], alpha=0.5, markeredgewidth=0)
    ends = np.unique(ds.predicted_flow.values[np.isfinite(ds.predicted_flow.values)])
    left.hlines(ends, ds.eta.min(), ds.eta.max(), color=plotting.COLORS["theory"], linewidth=0.8, label="where the flow stops")
    eta = np.geomspace(float(ds.eta.min()), float(ds.eta.max()), 100)
    left.plot(eta, 2 / eta, ":", color=plotting.COLORS["control"], label=r"edge $2/\eta$")
    left.set(xlabel=r"step size $\eta$", ylabel="final sharpness", xscale="log", ylim=(0, 14))
    small = ds.isel(eta=np.flatnonzero(ds.eta.values <= SMALL))
    plotting.order(right, small.eta, np.abs(small.measured_lead - small.predicted_flow), 1, "minus the flow's sharpness")
    plotting.order(right, small.eta, np.abs(small.measured_lead - small.predicted_lead), 2, "minus its leading change", "third")
    right.set_ylabel("final sharpness of gradient descent")


uv_study = jd.Study(
    evidence="network",
    bounds=jd.tuned(on="0:8", confirmed_on="45000000:45000008"),
    trial=uv_trial,
    quick=jd.grid(Pair, eta=[0.025, 0.0125, 0.00625, 0.003125, 0.1, 0.2, 0.3], start=["reference", "random"]),
    seeds=8,
    paper_seeds=256,
    source="arXiv:2103.00065 (edge of stability); final sharpness and its leading change derived here",
    tested="Gradient descent ({steps} steps) and gradient flow from $(u_0, v_0) = (3, 0.2)$ and from random points near it, at "
    "step sizes {eta}; {seeds} seeds. The small-step law is judged on the step sizes up to 0.03.",
)


@jd.setting
class Network:
    """A tanh network trained by full-batch gradient descent, and once more with small steps in place of the flow."""

    eta: jd.Swept = jd.field(0.2, above=0)  # step size of gradient descent
    inputs: int = jd.field(5, at_least=1)  # dimensions of the data
    hidden: int = jd.field(24, at_least=1)  # units in each of the two hidden layers
    points: int = jd.field(40, at_least=1)  # training points, all used in every step
    steps: int = 2000  # steps of training
    samples: int = jd.field(40, at_least=4)  # records of the sharpness after the start
    iterations: int = jd.field(20, at_least=1)  # power iterations per record
    reference: float = jd.field(0.02, above=0)  # small step size, whose run stands for gradient flow

    def __post_init__(self) -> None:
        jd.require(self, self.samples % 4 == 0, "samples is a multiple of 4", "samples")
        jd.require(self, self.steps % self.samples == 0, "samples divides steps", "samples", "steps")


def target(x: Float[Array, "n i"]) -> Float[Array, " n"]:
    r"""The smooth target :math:`2(\sin 2x_1 + x_2x_3 + \cos x_4)`; inputs that are missing count as 0."""
    z = jnp.pad(x, ((0, 0), (0, max(0, 4 - x.shape[1]))))
    return 2 * (jnp.sin(2 * z[:, 0]) + z[:, 1] * z[:, 2] + jnp.cos(z[:, 3]))


def _hvp(params: PyTree, v: PyTree, x: Float[Array, "n i"], y: Float[Array, " n"]) -> PyTree:
    """Hessian of the loss times a vector."""
    return jax.jvp(lambda p: jax.grad(tanh_loss)(p, x, y), (params,), (v,))[1]


def power_iteration(
    params: PyTree, v: PyTree, x: Float[Array, "n i"], y: Float[Array, " n"], shift: Float[Array, ""] | float, count: int
) -> tuple[PyTree, Float[Array, ""]]:
    """``count`` power iterations on H + shift from v, and the Rayleigh quotient of H that they reach."""

    def unit(w: PyTree) -> PyTree:
        return optax.tree.scale(1 / optax.tree.norm(w), w)

    def body(_: Any, w: PyTree) -> PyTree:
        return unit(jax.tree.map(lambda h, z: h + shift * z, _hvp(params, w, x, y), w))

    v = jax.lax.fori_loop(0, count, body, unit(v))
    return v, optax.tree.vdot(v, _hvp(params, v, x, y))


def _follow(
    s: Network, eta: Float[Array, ""], params: Tanh, v: Tanh, x: Float[Array, "n i"], y: Float[Array, " n"]
) -> tuple[Float[Array, " sample"], Float[Array, " sample"]]:
    """Sharpness and loss along gradient descent; every power iteration starts from the last direction."""
    tx = optax.sgd(eta)
    step = train.make_step(tanh_loss, tx)
    shift = 0.25 / eta  # an eighth of the edge: moves the negative end of the spectrum out of the way

    def sample(carry: tuple[train.State, Tanh], count: Int[Array, ""]) -> tuple[tuple[train.State, Tanh], tuple[Array, Array]]:
        state, v = carry
        state = jax.lax.fori_loop(0, count, lambda _, c: step(c, x, y), state)
        v, sharpness = power_iteration(state.params, v, x, y, shift, s.iterations)
        return (state, v), (sharpness, tanh_loss(state.params, x, y))

    counts = jnp.full(s.samples + 1, s.steps // s.samples, jnp.int32).at[0].set(0)  # the start in the same loop: compiled once
    return jax.lax.scan(sample, (train.init(tx, params), v), counts)[1]


def mlp_trial(s: Network, key: PRNGKeyArray) -> jd.Observables:
    """Train at the step size, and once more at a small one (the same for all cells of a seed), which stands for the flow."""
    k_x, k_init, k_v = jax.random.split(key, 3)
    x = jax.random.normal(k_x, (s.points, s.inputs), jnp.float64)
    y = target(x)
    sizes = (s.inputs, s.hidden, s.hidden, 1)
    params, v = tanh_init(k_init, sizes), tanh_init(k_v, sizes)
    sharpness, loss = _follow(s, s.eta, params, v, x, y)
    flow, _ = _follow(s, jnp.float64(s.reference), params, v, x, y)
    quarter = s.samples // 4
    return jd.observables(
        predicted={"sharpness": 2 / s.eta},
        measured={"sharpness": jnp.mean(sharpness[-quarter:])},
        assumed={"flow_over_edge": jnp.max(flow[-quarter:]) * s.eta / 2},
        recorded={
            "flow": jnp.max(flow[-quarter:]),
            "before": jnp.mean(sharpness[-2 * quarter : -quarter]),
            "curve": jd.named(sharpness, "sample"),
            "loss": jd.named(loss, "sample"),
            "step": jd.named(jnp.arange(s.samples + 1) * (s.steps // s.samples), "sample"),
        },
    )


def judge_mlp(ds: xr.Dataset) -> list[jd.Check]:
    """Last quarter's sharpness over 2 / step size; gate: it has settled."""
    over_edge = ds.measured_sharpness / ds.predicted_sharpness
    moved = np.abs(ds.measured_sharpness - ds.before) * ds.eta / 2
    return [
        jd.gate("change of the sharpness since the third quarter, over 2 / step size", moved, at_most=0.05),
        jd.mean_within("sharpness in the last quarter over 2 / step size", over_edge, over="seed", low=0.96, high=1.04),
    ]


def plot_mlp(ds: xr.Dataset, fig: Figure) -> None:
    """Sharpness in units of the edge along training, a band over seeds for every step size."""
    ax = fig.subplots()
    runs = ds if "eta" in ds.dims else ds.expand_dims("eta")
    colors = ("measured", "third", "fourth", "fifth")
    for i, eta in enumerate(runs.eta.values):
        part = runs.isel(eta=i)
        step = plotting.first_run(part).step.values
        plotting.band(ax, step, part.curve.transpose(..., "sample") * eta / 2, rf"$\eta = {eta:g}$", colors[i % len(colors)])
    ax.axhline(1, color=plotting.COLORS["theory"], linestyle="--", label=r"edge: sharpness $2/\eta$")
    ax.set(xlabel="step", ylabel=r"sharpness $\cdot\,\eta/2$")


mlp_study = jd.Study(
    evidence="network",
    assumes=(jd.above("flow_over_edge", 1.0),),
    bounds=jd.tuned(on="11000000:11000024", confirmed_on="15000000:15000024"),
    trial=mlp_trial,
    quick=jd.grid(Network, eta=[0.1, 0.2, 0.4]),
    paper=jd.grid(Network, eta=[0.05, 0.1, 0.2, 0.3, 0.4], steps=20000, samples=100, iterations=40),
    seeds=24,
    paper_seeds=64,
    min_ok=0.9,  # a start far sharper than the edge may diverge before it settles
    source="arXiv:2103.00065",
    tested=r"A tanh network with {inputs} inputs, two hidden layers of {hidden} units and one output, trained for {steps} steps "
    r"at the rates {eta} on {points} Gaussian points with the target $2(\sin 2x_1 + x_2x_3 + \cos x_4)$; {seeds} seeds. The "
    "sharpness is its mean over the last quarter of the steps; training at the rate {reference} stands for the flow.",
)


CLAIMS = (
    uv_study.claim(
        id="cal.uv_eos",
        title="How sharp a minimum gradient descent ends in on a two-factor loss",
        statement=r"For the loss $\tfrac12(uv-1)^2$, whose minima have the sharpness $u^2+v^2$, gradient flow from $(u_0, v_0)$ "
        r"ends at the sharpness $\sqrt{d^2+4}$ with $d = u_0^2-v_0^2$. From random starts with $2.5 \le u_0 \le 3$ and "
        r"$.05 \le v_0 \le .25$, and from $(3, .2)$, gradient descent with step size $\eta$ ends only where "
        r"$u^2+v^2 \le 2/\eta$, and for small $\eta$ at the flow's sharpness minus $\eta\,d^2J/\sqrt{d^2+4} + O(\eta^2)$, where "
        r"$J = \int_{u_0v_0}^1(1-p)/\sqrt{d^2+4p^2}\,dp$.",
        decides={"only": ("final sharpness over 2 / step size", r"an edge at $1/\eta$, as in the descent lemma")},
        judge=judge_uv,
        controls={
            r"$\eta = 0.6$ diverges": jd.Control({"eta": 0.6, "start": "reference"}, diverges=True),
            "Adam": jd.Control({"optimizer": "adam"}, breaks="Gradient descent"),
        },
        rivals={
            "nothing moves": jd.off(predicted_flow="start_sharpness", predicted_lead="start_sharpness"),
            "the flow ends at the flattest minimum, u = v": jd.swap(predicted_flow=2.0),
            "the flow's end at any step": jd.swap(predicted_lead="predicted_flow"),
            r"an edge at $1/\eta$, as in the descent lemma": jd.scaled(predicted_edge=0.5),
        },
        plot=plot_uv,
        caption=r"Left: final sharpness $u^2+v^2$ against the step size, one point per run; lines: where the flow stops from "
        r"each start; dotted: the edge $2/\eta$. Right, at small steps: final sharpness minus the flow's, and minus its leading "
        "change, median and range over runs; dashed: slopes 1 and 2.",
    ),
    mlp_study.claim(
        id="cal.eos_mlp",
        title="Gradient descent on a tanh network settles at the edge of stability",
        statement=r"Where the sharpness (the largest eigenvalue of the Hessian of the loss) grows beyond $2/\eta$ along gradient "
        r"flow of a tanh network with two hidden layers of 24 units on 40 points or more in 5 dimensions, full-batch "
        r"gradient descent with step size $\eta$ from .1 to .4, if it does not diverge, settles at the sharpness $2/\eta$, "
        "within 4% on average over starts.",
        holds={"points": (40, 160), "eta": (0.1, 0.4)},
        judge=judge_mlp,
        controls={
            r"$\eta = 0.02$: below the edge": {"eta": 0.02},
        },
        rivals={"the flow's sharpness": jd.off(predicted_sharpness="flow")},
        plot=plot_mlp,
        caption=r"Sharpness in units of the edge, $\lambda_\mathrm{max}\,\eta/2$, along training: median and central 90% of runs "
        "for each step size; dashed: the edge.",
    ),
)
