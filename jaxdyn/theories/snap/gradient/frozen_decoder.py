r"""The decoder alone, on frozen inputs: classes without overlap, gradient flow from zero, and the closed forms of Theorem 1.

The network's loss is that of ``model.py`` with Z fixed, so that only Y learns. Letters as in ``model.py`` and
``dynamics/gradient.py``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow
from jaxdyn.theories.snap import model, tasks
from jaxdyn.theories.snap.dynamics import clock as theory
from jaxdyn.theories.snap.dynamics import gradient

DECADES = (-2.0, 5.0)  # saved times, in units of K / eta
SAVES = 42
NUDGE = 1e-3  # the peak of gamma is the vertex through three times that are apart by this share


@jd.setting
class Frozen:
    """Classes whose contexts share no token but the common one; the decoder learns, the attention does not."""

    eta: jd.Swept = 1.0  # rate of Y, the decoder
    common: jd.Swept = jd.field(0.0, at_least=0, below=1)  # share of a common token in every context: 0 keeps the f orthonormal
    skew: jd.Swept = 0.0  # frequencies of the classes proportional to 1 + skew n
    tokens: int = 32  # M, tokens of the vocabulary
    classes: int = 4  # K, next tokens, each with a law of the context
    distinct: int = 3  # D, tokens that one class alone shows
    weights: tuple[float, ...] | None = None  # of the distinct tokens of every class; none: random

    def __post_init__(self) -> None:
        """Refuse vocabularies that are too small."""
        tasks.check(self)


FROZEN = jd.grid(Frozen, eta=[0.25, 2.0])
FROZEN_PAPER = jd.grid(Frozen, eta=[0.25, 2.0], tokens=[48, 100, 300], classes=[2, 4, 8])
TESTED = (
    r"Gradient flow of the decoder alone from zero, in float64, at rates $\eta$ of {eta}, until $\eta t/K = 10^5$: {classes} "
    "classes with {distinct} distinct tokens each, a vocabulary of {tokens} tokens; {seeds} seeds."
)
BREACHES = {"inputs overlap (a common token)": {"common": 0.5}, "classes not equally frequent": {"skew": 0.5}}


def head_gradient(y: Float[Array, "M M"], f: Float[Array, "K M"], label: Int[Array | np.ndarray, " K"]) -> Float[Array, "K M"]:
    """What the network propagates back to the decoder's inputs: the gradient of the log-probability of each class's next token."""

    def score(f: Float[Array, " M"], label: Int[Array, ""]) -> Float[Array, ""]:
        return jax.nn.log_softmax(f @ y)[label]

    return jax.vmap(jax.grad(score))(f, label)


def advantages(logits: Float[Array, "K M"], label: Int[Array | np.ndarray, " K"]) -> Float[Array, " K"]:
    """The logit of each class's next token over the mean of all other logits."""
    target = jnp.take_along_axis(logits, jnp.asarray(label)[:, None], 1)[:, 0]
    return target - (jnp.sum(logits, 1) - target) / (logits.shape[1] - 1)


def saved_times(size: int) -> tuple[Float[np.ndarray, " T"], Int[np.ndarray, " 3"]]:
    """Rising times in units of K / eta, over decades and three around the peak of gamma; and where these three are."""
    u = gradient.peak(size)
    top = ((size - 1) * u + np.expm1(u)) / size
    unit = np.sort(np.append(np.logspace(*DECADES, SAVES), top * (1 + NUDGE * np.array([-1, 0, 1]))))
    return unit, np.searchsorted(unit, top * (1 - 0.5 * NUDGE)) + np.arange(-1, 2)


def trial(s: Frozen, key: PRNGKeyArray) -> jd.Observables:
    """Gradient flow of the decoder and its clock; its gradient and the form of Theorem 1."""
    # the network on frozen inputs
    one = tasks.random_task(key, s.tokens, s.classes, s.distinct, s.common, s.skew, weights=s.weights)
    start = model.zeros(one)
    f, label = model.normalized(model.attend(start.z[one.query], one.p)), jnp.asarray(one.label)

    def speed(y: Array) -> Array:
        return jnp.sum(f * head_gradient(y, f, label), 1) / gradient.iota(s.tokens)

    descent = jax.grad(lambda y: -model.loss(start._replace(y=y), one))

    # its flow, and the integral of gamma along it
    def field(t: Any, state: dict, eta: Array) -> dict:
        return {"y": eta * descent(state["y"]), "total": jnp.mean(speed(state["y"]))}

    unit, at = saved_times(s.tokens)
    ts = jnp.asarray(np.append(0.0, unit)) * s.classes / s.eta
    solution = flow.solve(field, {"y": start.y, "total": jnp.zeros((), jnp.float64)}, ts, s.eta, solver="dopri8")
    # gamma, and its peak from three times around it
    ys = jax.tree.map(lambda leaf: leaf[1:], solution.ys)
    logits = f @ ys["y"]
    measured_gamma = jnp.mean(jax.vmap(speed)(ys["y"]), 1)
    near, values = ts[1:][at], measured_gamma[at]
    second = values[2] - 2 * values[1] + values[0]
    vertex = near[1] - 0.5 * (near[2] - near[1]) * (values[2] - values[0]) / second
    return jd.observables(
        predicted=_predicted(s, f, label, ts[1:]),
        measured={
            "rows": jd.named(logits, "time class output"),
            "speed": jd.named(s.classes * jax.vmap(lambda y: advantages(f @ descent(y), label))(ys["y"]), "time class"),
            "hit": jd.named(jnp.mean(jax.nn.softmax(logits)[:, jnp.arange(s.classes), label], 1), "time"),
            "gradient": jd.named(jax.vmap(lambda y: head_gradient(y, f, label))(ys["y"]), "time class token"),
            **dict.fromkeys(("gamma", "rise", "fall"), jd.named(measured_gamma, "time")),
            "total": jd.named(ys["total"], "time"),
            "peak_time": vertex,
            "peak": values[1],
        },
        recorded={
            "advantage": jd.named(jax.vmap(advantages, (0, None))(logits, label), "time class"),
            "clock": jd.named(theory.clock(s.tokens * unit, float(s.tokens)), "time"),
            "narrow_hit": jd.named(theory.hit(theory.clock(s.classes * unit, float(s.classes)), float(s.classes)), "time"),
            "unit": jd.named(jnp.asarray(unit), "time"),  # no coordinate: it depends on the number of tokens
            "steps": solution.steps,
        },
        status=solution.status,
    )


def _predicted(s: Frozen, f: Float[Array, "K M"], label: Int[Array, " K"], t: Float[Array, " T"]) -> dict[str, Any]:
    """Quantities of Theorem 1 at the times t by the closed clock, and the early and the late limit of gamma."""
    size, unit = float(s.tokens), s.eta * t / s.classes
    u = theory.clock(size * unit, size)
    rows = u[:, None, None] * (jax.nn.one_hot(label, s.tokens, dtype=u.dtype) - 1 / s.tokens)
    top = gradient.peak(s.tokens)
    speed = jax.jvp(lambda unit: theory.clock(size * unit, size), (unit,), (jnp.ones_like(unit),))[1]
    return {
        "rows": jd.named(rows, "time class output"),
        "speed": jd.named(speed, "time"),
        "hit": jd.named(theory.hit(u, size), "time"),
        "gradient": jd.named(jax.vmap(lambda u: gradient.gradient_form(f, u, s.tokens))(u), "time class token"),
        "gamma": jd.named(gradient.gamma(u, s.tokens), "time"),
        "rise": jd.named((1 - 1 / size) ** 2 * unit, "time"),
        "fall": jd.named((1 - 1 / size) ** 2 * jnp.log(size * unit) / unit, "time"),
        "total": jd.named(gradient.gamma_integral(u, s.tokens, s.classes, s.eta), "time"),
        "peak_time": gradient.time_at(top, s.tokens, s.classes, s.eta),
        "peak": gradient.gamma(jnp.asarray(top, u.dtype), s.tokens),
    }
