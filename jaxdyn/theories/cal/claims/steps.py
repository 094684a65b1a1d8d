r"""Claims on finite step sizes: gradient descent, heavy ball and weight decay against gradient flow; conserved quantities.

One trial serves them all: a two-layer linear network is trained by optax from its own gradient; the prediction is a joint
solve of the theory's equations (``dynamics.steps``).
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import optax
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, train
from jaxdyn.engine.claim import Named
from jaxdyn.theories.cal.claims.orders import distance, error_curve, halvings, order_check, order_checks
from jaxdyn.theories.cal.dynamics import steps as theory
from jaxdyn.theories.cal.model import Linear, linear_loss
from jaxdyn.theories.cal.setting import Steps

__all__ = ["CLAIMS", "problem", "trial"]

HALVINGS = [0.1, 0.05, 0.025, 0.0125, 0.00625]
MOMENTUM_HALVINGS = [1e-3, 5e-4, 2.5e-4, 1.25e-4]


def problem(s: Steps, key: PRNGKeyArray) -> tuple[Linear, Float[Array, "o i"]]:
    """Start and target: random matrices, or the scalar problem ``uv -> 1`` from (1.5, 0.2) in their first entries."""
    k_w1, k_w2, k_m = jax.random.split(key, 3)

    def draw(k: PRNGKeyArray, *shape: int) -> Array:
        return jax.random.normal(k, shape, jnp.float64) / sum(shape) ** 0.5

    def corner(value: float, *shape: int) -> Array:
        return jnp.zeros(shape, jnp.float64).at[0, 0].set(value)

    shapes = (s.hidden, s.inputs), (s.outputs, s.hidden), (s.outputs, s.inputs)
    random = [draw(k, *shape) for k, shape in zip((k_w1, k_w2, k_m), shapes, strict=True)]
    scalar = [corner(value, *shape) for value, shape in zip((1.5, 0.2, 1.0), shapes, strict=True)]
    w1, w2, m = (jnp.where(s.start == 1, b, a) for a, b in zip(random, scalar, strict=True))
    return Linear(w1, w2), m


def _train(s: Steps, start: Linear, m: Array, every: Array) -> tuple[Linear, Array]:
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
    """All weights as one vector a save time; the start, on which all agree, is left out."""
    flat = [w[1:].reshape(w.shape[0] - 1, -1) for w in weights]
    return jd.named(jnp.concatenate(flat, -1), "time entry")


def trial(s: Steps, key: PRNGKeyArray) -> jd.Observables:
    """Train, solve, and line both up at the times that the optimizer really reaches (a whole number of steps)."""
    start, m = problem(s, key)
    tick = jnp.where(s.clock == 1, s.eta / (1 - s.beta), s.eta)
    every = jnp.maximum(1, jnp.round(s.horizon / s.samples / tick)).astype(jnp.int32)
    weights, drift = _train(s, start, m, every)

    ts = jnp.arange(s.samples + 1) * (every * tick)
    args = theory.FlowsArgs(m, s.eta, s.penalty, s.decay * s.decay_known)
    zeros = jax.tree.map(jnp.zeros_like, start)
    joint = theory.Flows(start, zeros, start, jnp.zeros_like(drift[0]))
    sol = flow.solve(theory.flows_field, joint, ts, args, solver="dopri8", rtol=1e-12, atol=1e-14)
    exact = flow.gradient_flow(linear_loss, start, ts, m, solver="dopri8", rtol=1e-12, atol=1e-14)

    lead = jax.tree.map(lambda x, e: x + s.eta * e, sol.ys.flow, sol.ys.lead)
    trained = _vector(weights)
    held = theory.balance(start)
    moved = jax.vmap(theory.balance)(weights)[1:] - held
    axes = "time row col"
    return jd.observables(
        predicted={
            "flow": _vector(sol.ys.flow),
            "lead": _vector(lead),
            "modified": _vector(sol.ys.modified),
            "balance": jd.named(jnp.broadcast_to(held, moved.shape), axes),
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
        recorded={"t": jd.named(ts[1:], "time")},
        status=jnp.maximum(sol.status, exact.status),
    )


def _make_order_judge(name: str, order: int, slack: float):
    def judge(ds: xr.Dataset) -> list[jd.Check]:
        return order_checks(ds, name, order, slack)

    return judge


def _make_order_plot(name: str, order: int, label: str):
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
        order_check("fitted order of the drift", distance(halvings(ds).measured_drift), 1, 0.1),
        *(dataclasses.replace(c, name=f"leading drift: {c.name}") for c in order_checks(ds, "lead_drift", 2, 0.1)),
    ]


def plot_invariant(ds: xr.Dataset, fig: Figure) -> None:
    """Drift of every entry against the sum of its exact steps; its size against the step size."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_drift, ds.measured_drift, "entries of the drift")
    plotting.order(right, ds.eta, distance(ds.measured_drift), 1, "drift of the balance")
    plotting.order(right, ds.eta, error_curve(ds, "lead_drift"), 2, "minus its leading order", "third")


def _doubled(name: str):
    """The correction of the flow counted twice: a factor 2 wrong in the theory's formula."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign({f"predicted_{name}": 2 * ds[f"predicted_{name}"] - ds.predicted_flow})

    return breach


_GD = jd.grid(Steps, eta=HALVINGS, start=["random", "uv"])
_MOMENTUM = jd.grid(Steps, eta=MOMENTUM_HALVINGS, start=["random", "uv"], optimizer="heavy_ball", clock="effective")
_WEIGHTS = r"of a two-layer linear network ($L = \tfrac12\|\Sigma - W_2W_1\|_F^2$)"
_BREACHES = {"Adam": {"optimizer": "adam"}, r"heavy ball at $t = n\eta$": {"optimizer": "heavy_ball"}}

CLAIMS = (
    jd.Claim(
        id="cal.gd_order1",
        statement=rf"Gradient descent {_WEIGHTS} converges to gradient flow at order 1 in the step size: "
        r"$x_n = x(t) + O(\eta)$ at $t = n\eta$, and the Richardson limit is the flow.",
        source="Hairer, Nørsett, Wanner, Solving Ordinary Differential Equations I, section II.8, for Euler's method",
        trial=trial,
        quick=_GD,
        seeds=8,
        paper_seeds=64,
        judge=_make_order_judge("flow", 1, 0.1),
        controls=_BREACHES,
        plot=_make_order_plot("flow", 1, "gradient descent minus flow"),
    ),
    jd.Claim(
        id="cal.lead_error",
        statement=r"The leading error of gradient descent is $\eta e$ with $\dot e = -He - \tfrac12H\nabla L$, $e(0)=0$: "
        r"$x_n = x(t) + \eta e(t) + O(\eta^2)$.",
        source="Hairer, Nørsett, Wanner, Solving Ordinary Differential Equations I, section II.8, for Euler's method",
        trial=trial,
        quick=_GD,
        seeds=8,
        paper_seeds=64,
        judge=_make_order_judge("lead", 2, 0.1),
        controls={**_BREACHES, r"$\dot e = -He - H\nabla L$": _doubled("lead")},
        plot=_make_order_plot("lead", 2, r"gradient descent minus flow minus $\eta e$"),
    ),
    jd.Claim(
        id="cal.modified_flow",
        statement=r"Gradient descent follows the gradient flow of $\tilde L = L + \tfrac\eta4\|\nabla L\|^2$ up to $O(\eta^2)$.",
        source="arXiv:2009.11162, modified loss",
        trial=trial,
        quick=_GD,
        seeds=8,
        paper_seeds=64,
        judge=_make_order_judge("modified", 2, 0.1),
        controls={**_BREACHES, r"$\tfrac\eta2$ for $\tfrac\eta4$": {"penalty": 0.5}},
        plot=_make_order_plot("modified", 2, "gradient descent minus modified flow"),
    ),
    jd.Claim(
        id="cal.weight_decay",
        statement=r"Gradient descent with coupled weight decay $\lambda$ converges at order 1 to the gradient flow of "
        r"$L + \tfrac\lambda2\|x\|^2$.",
        source="arXiv:1711.05101, on L2 regularisation",
        trial=trial,
        quick=_GD.replace(decay=[0.1, 0.5]),
        seeds=8,
        paper_seeds=64,
        judge=_make_order_judge("flow", 1, 0.1),
        controls={"Adam, decay coupled": {"optimizer": "adam"}, "flow of L alone": {"decay_known": 0.0}},
        plot=_make_order_plot("flow", 1, "gradient descent minus flow with decay"),
    ),
    jd.Claim(
        id="cal.heavy_ball",
        statement=r"Heavy ball $x^+ = x - \eta\nabla L + \beta(x - x^-)$ converges at order 1 in $\eta$ to the same gradient flow, "
        r"in time $t = n\eta/(1-\beta)$.",
        source="Qian, Neural Networks 12 (1999) 145-151",
        trial=trial,
        quick=_MOMENTUM,
        seeds=8,
        paper_seeds=64,
        judge=_make_order_judge("flow", 1, 0.15),
        controls={r"time $t = n\eta$": {"clock": "step"}, "Adam": {"optimizer": "adam"}},
        plot=_make_order_plot("flow", 1, "heavy ball minus flow"),
    ),
    jd.Claim(
        id="cal.invariant",
        statement=r"$W_1W_1^\top - W_2^\top W_2$ is conserved by gradient flow; a step of gradient descent changes it by exactly "
        r"$\eta^2(AA^\top - B^\top B)$, $A = W_2^\top E$, $B = EW_1^\top$, $E = \Sigma - W_2W_1$, so that its drift is "
        r"$\eta\int(AA^\top - B^\top B)\,dt + O(\eta^2)$.",
        source="arXiv:1806.00900 (conservation); change per step derived here",
        trial=trial,
        quick=_GD,
        seeds=8,
        paper_seeds=64,
        judge=judge_invariant,
        controls=_BREACHES,
        plot=plot_invariant,
    ),
)
