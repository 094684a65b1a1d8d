r"""Finite step sizes: gradient descent, heavy ball and weight decay against gradient flow; conserved quantities.

A two-layer linear network is trained by optax from its own gradient; predicted are gradient flow, its leading error, the modified
flow and the drift of the balance, from a joint solve of the theory's equations (``dynamics.py``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, train
from jaxdyn.engine.claims.observables import Named
from jaxdyn.theories.cal import dynamics as theory
from jaxdyn.theories.cal.model import Linear, linear_loss
from jaxdyn.theories.cal.orders import LIMIT, distance, error_curve, halvings, limit_order, order_checks


@jd.setting
class Steps:
    """A two-layer linear network trained with a finite step size, against its flows."""

    eta: jd.Swept = jd.field(0.1, above=0)  # step size
    optimizer: jd.Code = jd.code("gd", "heavy_ball", "adam")  # gradient descent (gd), heavy ball or Adam
    beta: jd.Swept = jd.field(0.9, at_least=0, below=1)  # momentum of heavy-ball descent
    clock: jd.Code = jd.code("step", "effective")  # flow time per step: eta (step) or eta / (1 - beta) (effective)
    decay: jd.Swept = 0.0  # lambda, weight decay added to the gradient
    start: jd.Code = jd.code("random", "uv")  # random matrices, or (uv - 1)^2 / 2 from (1.5, 0.2) embedded in them
    decay_known: jd.Swept = 1.0  # 1: the theory includes the weight decay, 0: it ignores it
    inputs: int = jd.field(4, at_least=1)  # input dimension of the network
    hidden: int = jd.field(5, at_least=1)  # units of the hidden layer
    outputs: int = jd.field(3, at_least=1)  # output dimension
    horizon: float = jd.field(1.0, above=0)  # flow time at the end, up to rounding to whole steps
    samples: int = jd.field(5, at_least=1)  # times after the start at which weights are compared


def problem(s: Steps, key: PRNGKeyArray) -> tuple[Linear, Float[Array, "o i"]]:
    """Start and target: random matrices, or the scalar problem ``uv -> 1`` from (1.5, 0.2) in their first entries."""
    k_w1, k_w2, k_m = jax.random.split(key, 3)

    def normal(k: PRNGKeyArray, *shape: int) -> Float[Array, "*shape"]:
        return jax.random.normal(k, shape, jnp.float64) / sum(shape) ** 0.5

    def corner(value: float, *shape: int) -> Float[Array, "*shape"]:
        return jnp.zeros(shape, jnp.float64).at[0, 0].set(value)

    shapes = (s.hidden, s.inputs), (s.outputs, s.hidden), (s.outputs, s.inputs)
    random = [normal(k, *shape) for k, shape in zip((k_w1, k_w2, k_m), shapes, strict=True)]
    scalar = [corner(value, *shape) for value, shape in zip((1.5, 0.2, 1.0), shapes, strict=True)]
    w1, w2, m = (jnp.where(s.start == "uv", b, a) for a, b in zip(random, scalar, strict=True))
    return Linear(w1, w2), m


def train_steps(s: Steps, start: Linear, m: Float[Array, "o i"], every: Int[Array, ""]) -> tuple[Linear, Float[Array, "time h h"]]:
    """Weights at the save times, and the drift of the balance summed up step by step from its exact rate."""
    optimizers = {"gd": optax.sgd(s.eta), "heavy_ball": optax.sgd(s.eta, momentum=s.beta), "adam": optax.adam(s.eta)}
    tx = optax.chain(optax.add_decayed_weights(s.decay), train.switched(s.optimizer, optimizers))
    step = train.make_step(lambda p: linear_loss(p, m), tx)

    def advance(carry: tuple[train.State, Array]) -> tuple[train.State, Array]:
        state, drift = carry
        return step(state), drift + s.eta**2 * theory.balance_rate(state.params, m)

    first = train.init(tx, start), jnp.zeros((s.hidden, s.hidden), jnp.float64)
    _, (weights, drift) = train.record(advance, first, lambda c: (c[0].params, c[1]), samples=s.samples, every=every)
    return weights, drift


def _vector(weights: Linear) -> Named:
    """All weights as one vector per save time; the start, on which all agree, is left out."""
    flat = [w[1:].reshape(w.shape[0] - 1, -1) for w in weights]
    return jd.named(jnp.concatenate(flat, -1), "time entry")


def trial(s: Steps, key: PRNGKeyArray) -> jd.Observables:
    """Train, solve, and line both up at the times that the optimizer really reaches (a whole number of steps)."""
    # the trained network
    start, m = problem(s, key)
    tick = jnp.where(s.clock == "effective", s.eta / (1 - s.beta), s.eta)
    every = jnp.maximum(1, jnp.round(s.horizon / s.samples / tick)).astype(jnp.int32)
    weights, drift = train_steps(s, start, m, every)

    # the theory's flows, and the exact flow of the network's own loss
    ts = jnp.arange(s.samples + 1) * (every * tick)
    args = theory.FlowsArgs(m, s.eta, s.decay * s.decay_known)
    zeros = jax.tree.map(jnp.zeros_like, start)
    joint = theory.Flows(start, zeros, start, jnp.zeros_like(drift[0]))
    sol = flow.solve(theory.flows_field, joint, ts, args, solver="dopri8", rtol=1e-12, atol=1e-14)
    exact = flow.gradient_flow(linear_loss, start, ts, m, solver="dopri8", rtol=1e-12, atol=1e-14)

    # what is compared: all weights, and the balance
    lead = jax.tree.map(lambda x, e: x + s.eta * e, sol.ys.flow, sol.ys.lead)
    trained = _vector(weights)
    conserved = theory.balance(start)
    moved = jax.vmap(theory.balance)(weights)[1:] - conserved
    axes = "time row col"
    return jd.observables(
        predicted={
            "flow": _vector(sol.ys.flow),
            "lead": _vector(lead),
            "modified": _vector(sol.ys.modified),
            "balance": jd.named(jnp.broadcast_to(conserved, moved.shape), axes),
            "drift": jd.named(drift[1:], axes),
            "lead_drift": jd.named(s.eta * sol.ys.drift[1:], axes),
        },
        measured={
            "flow": trained,
            "lead": trained,
            "modified": trained,
            "balance": jd.named(jax.vmap(theory.balance)(exact.ys)[1:], axes),
            "drift": jd.named(moved, axes),
            "lead_drift": jd.named(moved, axes),
        },
        recorded={
            "t": jd.named(ts[1:], "time"),
            "first": jd.named(jnp.concatenate([w.ravel() for w in start]), "entry"),
        },
        status=jnp.maximum(sol.status, exact.status),
    )


HALVINGS = [0.1, 0.05, 0.025, 0.0125, 0.00625]
MOMENTUM_HALVINGS = [1e-3, 5e-4, 2.5e-4, 1.25e-4]


def make_order_judge(name: str, order: int, slack: float) -> Callable[[xr.Dataset], list[jd.Check]]:
    """Judge of one prediction: its order of convergence, and its Richardson limit."""

    def judge(ds: xr.Dataset) -> list[jd.Check]:
        return order_checks(ds, name, order, slack)

    return judge


def make_order_plot(name: str, order: int, label: str) -> Callable[[xr.Dataset, Figure], None]:
    """Figure of one prediction: its error against the step size."""

    def plot(ds: xr.Dataset, fig: Figure) -> None:
        ax = fig.subplots()
        plotting.order(ax, ds.eta, error_curve(ds, name), order, label)
        ax.set_ylabel("distance over the trajectory")

    return plot


def judge_invariant(ds: xr.Dataset) -> list[jd.Check]:
    """Conservation along the flow, the exact change in every step of gradient descent, and the order of its drift."""
    axes = "time row col"
    return [
        jd.at_most("relative change along gradient flow", jd.relative_error(ds, "balance", axes), 1e-9),
        jd.at_most("relative error of the drift summed from its exact steps", jd.relative_error(ds, "drift", axes), 1e-9),
        jd.within(f"drift: {LIMIT}", limit_order(distance(halvings(ds).measured_drift)), 0.9, 1.1),
        *(dataclasses.replace(c, name=f"leading drift: {c.name}") for c in order_checks(ds, "lead_drift", 2, 0.1)),
    ]


def plot_invariant(ds: xr.Dataset, fig: Figure) -> None:
    """Drift of every entry against the sum of its exact steps; its size against the step size."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_drift, ds.measured_drift, "entries of the drift")
    plotting.order(right, ds.eta, distance(ds.measured_drift), 1, "drift of the balance")
    plotting.order(right, ds.eta, error_curve(ds, "lead_drift"), 2, "minus its leading order", "third")


NETWORK = r"a two-layer linear network with the loss $L = \tfrac12\|\Sigma - W_2W_1\|_F^2$"
BREACHES: dict[str, Any] = {
    "Adam": jd.Control({"optimizer": "adam"}, breaks="gradient descent"),
    r"heavy ball at $t = n\eta$": {"optimizer": "heavy_ball"},
}
RUNS = "over random problems and the scalar one (median and range), against the step size; dashed: slope"


def caption(what: str, order: int) -> str:
    """Caption of an order plot."""
    return f"Distance over the trajectory between {what}, {RUNS} {order}."


study = jd.Study(
    trial=trial,
    evidence="network",
    bounds=jd.tuned(on="0:8", confirmed_on="45000000:45000008"),
    quick=jd.grid(Steps, eta=HALVINGS, start=["random", "uv"]),
    seeds=8,
    paper_seeds=64,
    source="Hairer, Nørsett, Wanner, Solving Ordinary Differential Equations I, section II.8, for Euler's method",
    tested="A linear network with {inputs} inputs, {hidden} hidden units and {outputs} outputs, trained until time {horizon} "
    "with step sizes {eta}, from random starts towards random targets; and the scalar problem of fitting 1 by a product that "
    "starts at 1.5 times 0.2. {seeds} seeds.",
)

CLAIMS = (
    study.claim(
        id="cal.gd_order1",
        talks=("grokking:gradient-flow",),
        title="Gradient descent converges to gradient flow at first order",
        statement=rf"Gradient descent on {NETWORK} converges to gradient flow at order 1 in the step size $\eta$: the weights "
        "after "
        r"$n$ steps are $x_n = x(t) + O(\eta)$ at $t = n\eta$, where $x(t)$ is the flow, and their Richardson limit for $\eta "
        r"\to 0$ is "
        "the flow.",
        judge=make_order_judge("flow", 1, 0.1),
        controls=BREACHES,
        rivals={"nothing moves": jd.off(predicted_flow="first")},
        plot=make_order_plot("flow", 1, "gradient descent minus flow"),
        caption=caption("gradient descent and gradient flow", 1),
    ),
    study.claim(
        id="cal.lead_error",
        title="The leading error of gradient descent solves a linear ODE",
        statement=rf"For {NETWORK} the leading error of gradient descent with step size $\eta$ is $\eta e$ with "
        r"$\dot e = -He - \tfrac12H\nabla L$, $e(0)=0$: after $n$ steps the weights are $x_n = x(t) + \eta e(t) + O(\eta^2)$ at "
        r"$t = n\eta$, where $x(t)$ is gradient flow and $H$ the Hessian of the loss along it.",
        judge=make_order_judge("lead", 2, 0.1),
        controls=BREACHES,
        rivals={"nothing moves": jd.off(predicted_lead="first"), "gradient flow alone": jd.swap(predicted_lead="predicted_flow")},
        plot=make_order_plot("lead", 2, r"gradient descent minus flow minus $\eta e$"),
        caption=caption(r"gradient descent and gradient flow plus its leading error $\eta e$", 2),
    ),
    study.claim(
        id="cal.modified_flow",
        title="Gradient descent follows the flow of a loss with a gradient penalty",
        statement=rf"Until any fixed time, gradient descent with step size $\eta$ on {NETWORK} follows the gradient flow of "
        r"$\tilde L = L + \tfrac\eta4\|\nabla L\|^2$ up to $O(\eta^2)$.",
        source="arXiv:2009.11162, modified loss",
        judge=make_order_judge("modified", 2, 0.1),
        controls=BREACHES,
        rivals={
            "nothing moves": jd.off(predicted_modified="first"),
            "gradient flow of L": jd.swap(predicted_modified="predicted_flow"),
        },
        plot=make_order_plot("modified", 2, "gradient descent minus modified flow"),
        caption=caption("gradient descent and the gradient flow of the modified loss", 2),
    ),
    study.claim(
        id="cal.weight_decay",
        title="Descent with weight decay converges to the flow of the penalised loss",
        statement=rf"Gradient descent with coupled weight decay $\lambda$ on {NETWORK} converges at order 1 in the step size to "
        r"the gradient flow of $L + \tfrac\lambda2\|x\|^2$, where $x$ are all weights.",
        tested="As for cal.gd_order1, with weight decay {decay}; {seeds} seeds.",
        source="arXiv:1711.05101, on L2 regularisation",
        quick=study.quick.replace(decay=[0.1, 0.5]),
        judge=make_order_judge("flow", 1, 0.1),
        controls={"Adam, decay coupled": {"optimizer": "adam"}, "flow of L alone": {"decay_known": 0.0}},
        rivals={"nothing moves": jd.off(predicted_flow="first")},
        plot=make_order_plot("flow", 1, "gradient descent minus flow with decay"),
        caption=caption("gradient descent with weight decay and the gradient flow of the regularised loss", 1),
    ),
    study.claim(
        id="cal.heavy_ball",
        title="Heavy-ball descent converges to gradient flow in rescaled time",
        statement=r"Heavy-ball descent, $x_{n+1} = x_n - \eta\nabla L(x_n) + \beta(x_n - x_{n-1})$, "
        rf"on {NETWORK} converges at order 1 in $\eta$ to gradient flow at the time $t = n\eta/(1-\beta)$, for $\beta$ from "
        ".5 to .9.",
        holds={"beta": (0.5, 0.9)},
        tested="As for cal.gd_order1, with momentum {beta} and step sizes {eta}; {seeds} seeds.",
        source="Qian, Neural Networks 12 (1999) 145-151",
        quick=study.quick.replace(eta=MOMENTUM_HALVINGS, optimizer="heavy_ball", clock="effective"),
        judge=make_order_judge("flow", 1, 0.15),
        controls={r"time $t = n\eta$": {"clock": "step"}, "Adam": jd.Control({"optimizer": "adam"}, breaks="Heavy-ball descent")},
        rivals={"nothing moves": jd.off(predicted_flow="first")},
        plot=make_order_plot("flow", 1, "heavy ball minus flow"),
        caption=caption(r"heavy ball and gradient flow, at equal times $n\eta/(1-\beta)$", 1),
    ),
    study.claim(
        id="cal.invariant",
        title="The balance of two linear layers is conserved by flow, not by descent",
        statement=rf"In {NETWORK} gradient flow conserves $W_1W_1^\top - W_2^\top W_2$. A step of gradient descent of size "
        rf"$\eta$ changes "
        r"it by exactly $\eta^2(AA^\top - B^\top B)$ with $A = W_2^\top E$, $B = EW_1^\top$, $E = \Sigma - W_2W_1$, so that it "
        r"drifts by $\eta\int(AA^\top - B^\top B)\,dt + O(\eta^2)$.",
        decides={"exactly": ("relative error of the drift summed from its exact steps", r"heavy ball at $t = n\eta$")},
        source="arXiv:1806.00900 (conservation); change per step derived here",
        judge=judge_invariant,
        controls=BREACHES,
        rivals={
            "descent conserves it, too": jd.off(predicted_drift=0.0, predicted_lead_drift=0.0),
            "the flow drifts as descent does": jd.swap(predicted_balance=lambda ds: ds.predicted_balance + ds.predicted_drift),
        },
        plot=plot_invariant,
        caption=r"Left: every entry of the drift of $W_1W_1^\top - W_2^\top W_2$ under gradient descent against the sum of its "
        "exact changes per step. Right: norm of the drift, and of the drift minus its leading order, against the step size "
        "(median and range over runs; dashed: slopes 1 and 2).",
    ),
)
