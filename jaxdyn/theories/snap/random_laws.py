r"""The reduced dynamics on random laws: the runs of Theorems 2 and 3 and of the final attention.

Tokens are ordered common, then the distinct tokens of class 1, 2, ... by increasing probability; the last of a class is its
dominant one. "Measured" is the reduced ODE, integrated. Letters as in ``dynamics/reduced.py``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import metrics
from jaxdyn.theories.snap import published, tasks
from jaxdyn.theories.snap.dynamics import growth, reduced
from jaxdyn.theories.snap.dynamics.gradient import attention

COMMONS, SAVES = 2, 33


@jd.setting
class Laws:
    """Laws of ``classes`` classes; ``unequal``, ``leak``, ``tilt`` and ``ascent`` are breaches."""

    laws: jd.Code = jd.code("random", "table")  # random, or two given laws with unequal common tokens ("table")
    common: jd.Swept = jd.field(0.3, at_least=0)  # weight of the first common token, that of a class's distinct tokens is 1
    second: jd.Swept = jd.field(0.0, at_least=0)  # weight of the second common token
    unequal: jd.Swept = 0.0  # common tokens' weights times and over exp(unequal) in class 1, over and times in the others
    leak: jd.Swept = jd.field(0.0, at_least=0)  # weight of every distinct token in the next class, over its weight in its own
    tilt: jd.Swept = 0.0  # the distinct tokens' logits start at -tilt ln P
    per_query: jd.Swept = jd.field(1.0, at_least=1)  # K_m, classes per query
    size: jd.Swept = jd.field(1000.0, above=2)  # M, tokens of the vocabulary
    eta_y: jd.Swept = jd.field(1.0, above=0)  # rate of Y, the decoder
    eta_z: jd.Swept = 1000.0  # rate of Z, the attention logits
    rho: jd.Swept = 1.0  # share of the time in which a row of Z sees a class
    ascent: jd.Swept = 1.0  # -1: Z descends J
    horizon: jd.Swept = jd.field(1e7, above=0)  # time of the last record
    classes: int = jd.field(4, at_least=2)  # K, next tokens, each with a law of the context
    distinct: int = jd.field(4, at_least=3)  # D, tokens that one class alone shows
    weights: tuple[float, ...] | None = None  # of the distinct tokens of every class, rising; none: random

    def __post_init__(self) -> None:
        """Refuse impossible weights of the distinct tokens."""
        check_laws(self)


def check_laws(s: Any) -> None:
    """Refuse weights of distinct tokens that are not one positive number each, or do not rise."""
    tasks.check_weights(s)
    rising = s.weights is None or tuple(sorted(s.weights)) == s.weights
    jd.require(s, rising, "the last of the weights is the largest: they rise", "weights")


RANDOM = jd.grid(Laws, per_query=[1.0, 2.0], eta_z=[1.0, 1000.0])
TESTED = (
    r"The reduced ODE in float64 from zero to $t$ = {horizon}, $\eta_Y$ = {eta_y}, $\eta_Z$ of {eta_z}, $\rho$ = {rho}: "
    "{classes} classes, {per_query} per query, with {distinct} distinct tokens of random weights each (1 together), a common "
    "token of weight {common} and a second one of weight {second} (0: none); a vocabulary of {size} tokens; {seeds} seeds."
)


def places(s: Any) -> Int[np.ndarray, "K d"]:
    """Places of the distinct tokens of every class."""
    return COMMONS + np.arange(s.classes * s.distinct).reshape(s.classes, s.distinct)


def _table(s: Laws) -> Float[np.ndarray, "K D"]:
    """The two laws of the table; further classes have one token of their own and overlap with nothing."""
    p = np.zeros((s.classes, COMMONS + s.classes * s.distinct))
    p[:2, :COMMONS] = np.array(published.UNEQUAL_LAWS)[:, :COMMONS]
    p[np.arange(s.classes), places(s)[:, -1]] = np.where(np.arange(s.classes) < 2, 0.6, 1.0)
    return p


def random_laws(s: Any, key: PRNGKeyArray) -> Float[Array, "K D"]:
    """Laws of the contextual tokens by a setting with the fields ``common`` to ``leak``, ``classes``, ``distinct``, ``weights``."""
    gaps = jax.random.uniform(key, (s.classes, s.distinct), jnp.float64, 0.3, 1.0)
    weights = jnp.cumsum(gaps, -1)
    if s.weights is not None:
        weights = jnp.broadcast_to(jnp.asarray(s.weights, jnp.float64), weights.shape)
    weights = weights / jnp.sum(weights, -1, keepdims=True)
    row, place = np.arange(s.classes), places(s)
    p = jnp.zeros((s.classes, COMMONS + place.size), jnp.float64).at[row[:, None], place].set(weights)
    p = p + s.leak * jnp.roll(p, 1, 0)
    sign = jnp.asarray(np.where(row == 0, 1, -1)[:, None] * np.array([1.0, -1.0]))
    p = p.at[:, :COMMONS].set(jnp.stack([s.common, s.second]) * jnp.exp(s.unequal * sign))
    return p / jnp.sum(p, -1, keepdims=True)


def sample_laws(s: Laws, key: PRNGKeyArray) -> tuple[Float[Array, "K D"], Float[Array, "R D"]]:
    """Laws of the contextual tokens, and the initial logits."""
    p = jnp.where(s.laws == "random", random_laws(s, key), jnp.asarray(_table(s)))
    logits = jnp.where(p > 0, -jnp.log(jnp.where(p > 0, p, 1.0)), 0.0).at[:, :COMMONS].set(0.0)
    return p, s.tilt * reduced.queries(s.classes, s.per_query) @ jnp.where(s.laws == "random", logits, 0.0)


def trial(s: Laws, key: PRNGKeyArray) -> jd.Observables:
    """The reduced dynamics, and what Theorems 2 and 3 predict along its path."""
    # the reduced dynamics along its path
    p, start = sample_laws(s, key)
    member = reduced.queries(s.classes, s.per_query)
    count = jnp.where(s.laws == "random", float(s.classes), 2.0)
    problem = reduced.Problem(p, member, s.size, count, s.eta_y, s.ascent * s.eta_z, s.rho)
    ts = s.horizon * jnp.concatenate([jnp.zeros(1), jnp.logspace(-9, 0, SAVES, dtype=jnp.float64)])
    path = reduced.solve(problem, ts, start=start)
    z = jnp.einsum("rk,trd->tkd", member, path.z)
    f = reduced.features(path.z, problem)
    z_rates, pressure = reduced.rates(f, path.u, problem)
    z_rates, pressure = jnp.einsum("rk,trd->tkd", member, z_rates), pressure[..., None]
    # what the theorems predict of the distinct tokens
    own = np.arange(s.classes)[:, None], places(s)
    z_own, f_own, p_own = z[:, *own], f[:, *own], p[own]
    gains = _gains(z, z_own, p, p_own)
    bounds = _bounds(z_own, f_own, path.b)
    final = _final(z[-1], p, p_own, z_own[-1], own)
    return jd.observables(
        predicted={
            "rise": jd.named((pressure * f_own**2)[1:], "time class distinct"),
            "gain": jd.named(gains["predicted"], "time class other"),
            **{name: jd.named(bounds[name], "time class") for name in ("lower", "upper")},
            "entropy": jd.named(final["predicted"], "class"),
        },
        measured={
            "rise": jd.named(z_rates[:, *own][1:], "time class distinct"),
            "gain": jd.named(gains["measured"], "time class other"),
            "lower": jd.named(z_own[1:, :, -1], "time class"),
            "upper": jd.named(z_own[1:, :, -1], "time class"),
            "entropy": jd.named(final["measured"], "class"),
        },
        recorded={
            "t": jd.named(ts, "save"),
            "z_common": jd.named(z[..., :COMMONS], "save class common_token"),
            "p_common": jd.named(p[:, :COMMONS], "class common_token"),
            "z_own": jd.named(z_own, "save class distinct"),
            "f_own": jd.named(f_own, "save class distinct"),
            "p_own": jd.named(p_own, "class distinct"),
            "c_own": jd.named(final["c_own"], "class distinct"),
            "pair_common": jd.named(gains["common"], "side time class other"),
            "lower_weakest": jd.named(bounds["lower_weakest"], "time class"),
        },
        status=path.status,
    )


def _gains(
    z: Float[Array, "T K D"], z_own: Float[Array, "T K d"], p: Float[Array, "K D"], p_own: Float[Array, "K d"]
) -> dict[str, Array]:
    """Relative gains of the dominant token over the other distinct ones; for a control, over the first common token."""

    def measure(z_other: Array, p_other: Array) -> tuple[Array, Array]:
        ratio = 2 * (jnp.log(p_own[:, -1:] / p_other) + z_own[..., -1:] - z_other)
        start = jnp.square(p_own[:, -1:] / p_other) - 1
        return growth.gain(start, z_own[..., -1:])[1:], jnp.expm1(ratio)[1:]

    there = p_own[:, :-1] > 0  # an absent token counts as the dominant one, whose gain over itself is 0
    others = jnp.where(there, p_own[:, :-1], p_own[:, -1:])
    predicted, measured = measure(jnp.where(there, z_own[..., :-1], z_own[..., -1:]), others)
    here = p[:, :1] > 0
    both = measure(jnp.where(here, z[..., :1], z_own[..., -1:]), jnp.where(here, p[:, :1], p_own[:, -1:]))
    common = jnp.stack([jnp.broadcast_to(side, measured.shape) for side in both])
    return {"predicted": predicted, "measured": measured, "common": common}


def _bounds(z_own: Float[Array, "T K d"], f_own: Float[Array, "T K d"], b: Float[Array, "T K"]) -> dict[str, Array]:
    """Theorem 3's bounds of the dominant token's logit by B, and the lower one of the least probable token."""
    f0 = jnp.square(f_own[0])
    return {"lower": (b * f0[:, -1])[1:], "upper": b[1:], "lower_weakest": (b * f0[:, 0])[1:]}


def _final(
    z: Float[Array, "K D"], p: Float[Array, "K D"], p_own: Float[Array, "K d"], z_own: Float[Array, "K d"], own: tuple
) -> dict[str, Array]:
    """Final attention on the distinct tokens of a class, and its entropy from the dominant token's logit alone."""
    c = attention(z, p)[own]
    logits = growth.partner(z_own[:, -1:], p_own / p_own[:, -1:])
    predicted = metrics.entropy(attention(logits, p_own))
    return {"measured": metrics.entropy(c / jnp.sum(c, -1, keepdims=True)), "predicted": predicted, "c_own": c}
