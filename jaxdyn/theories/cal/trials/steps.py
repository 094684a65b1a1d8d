r"""Runs of finite step sizes: a two-layer linear network trained by optax, beside the theory's flows and error terms.

The network is trained from its own gradient; the prediction is a joint solve of the theory's equations (``dynamics.steps``).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, train
from jaxdyn.engine.claim import Named
from jaxdyn.theories.cal.dynamics import steps as theory
from jaxdyn.theories.cal.model import Linear, linear_loss
from jaxdyn.theories.cal.trials.checks import at_least_one, positive

__all__ = ["Steps", "problem", "trial"]


@jd.setting
class Steps:
    """A two-layer linear network trained with a finite step size, against its flows.

    ``clock`` is the time that one step counts for: ``eta``, or ``eta / (1 - beta)``. ``start`` "uv" is the scalar problem
    ``(uv - 1)^2 / 2`` from ``(1.5, 0.2)``, embedded in the same matrices. ``decay_known`` is
    the theory's: whether it takes the weight decay into account.
    """

    eta: jd.Swept = 0.1
    optimizer: jd.Code = jd.code("gd", "heavy_ball", "adam")
    beta: jd.Swept = 0.9
    clock: jd.Code = jd.code("step", "effective")
    decay: jd.Swept = 0.0
    start: jd.Code = jd.code("random", "uv")
    decay_known: jd.Swept = 1.0
    inputs: int = 4
    hidden: int = 5
    outputs: int = 3
    horizon: float = 1.0
    samples: int = 5

    def __post_init__(self) -> None:
        positive(self, "eta", "horizon")
        at_least_one(self, "inputs", "hidden", "outputs", "samples")
        jd.require(self, 0 <= self.beta < 1, "beta is at least 0 and below 1", "beta")


def problem(s: Steps, key: PRNGKeyArray) -> tuple[Linear, Float[Array, "o i"]]:
    """Start and target: random matrices, or the scalar problem ``uv -> 1`` from (1.5, 0.2) in their first entries."""
    k_w1, k_w2, k_m = jax.random.split(key, 3)

    def draw(k: PRNGKeyArray, *shape: int) -> Float[Array, "*shape"]:
        return jax.random.normal(k, shape, jnp.float64) / sum(shape) ** 0.5

    def corner(value: float, *shape: int) -> Float[Array, "*shape"]:
        return jnp.zeros(shape, jnp.float64).at[0, 0].set(value)

    shapes = (s.hidden, s.inputs), (s.outputs, s.hidden), (s.outputs, s.inputs)
    random = [draw(k, *shape) for k, shape in zip((k_w1, k_w2, k_m), shapes, strict=True)]
    scalar = [corner(value, *shape) for value, shape in zip((1.5, 0.2, 1.0), shapes, strict=True)]
    w1, w2, m = (jnp.where(s.start == "uv", b, a) for a, b in zip(random, scalar, strict=True))
    return Linear(w1, w2), m


def _train(s: Steps, start: Linear, m: Float[Array, "o i"], every: Int[Array, ""]) -> tuple[Linear, Float[Array, "time h h"]]:
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
    tick = jnp.where(s.clock == "effective", s.eta / (1 - s.beta), s.eta)
    every = jnp.maximum(1, jnp.round(s.horizon / s.samples / tick)).astype(jnp.int32)
    weights, drift = _train(s, start, m, every)

    ts = jnp.arange(s.samples + 1) * (every * tick)
    args = theory.FlowsArgs(m, s.eta, s.decay * s.decay_known)
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
        recorded={
            "t": jd.named(ts[1:], "time"),
            "first": jd.named(jnp.concatenate([w.ravel() for w in start]), "entry"),
        },
        status=jnp.maximum(sol.status, exact.status),
    )
