r"""The network's own gradient flow on random laws: what Theorems 2 and 3 say of its logits.

"Measured" is the flow of the network's loss in (Y, Z), by automatic differentiation, from zero. Laws and the order of the tokens
are those of ``random_laws.py``; letters as in ``dynamics/reduced.py``.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.snap import model, random_laws
from jaxdyn.theories.snap.dynamics import growth, reduced
from jaxdyn.theories.snap.dynamics.clock import clock
from jaxdyn.theories.snap.dynamics.gradient import excess, unit
from jaxdyn.theories.snap.population import population_flow

SAVES = 25


@jd.setting
class LawsFlow:
    """Random laws of ``classes`` classes, trained by gradient flow at rates ``ratio`` and 1 until eta_Y t = ``reach``."""

    ratio: jd.Swept = jd.field(1.0, above=0)  # eta_Y / eta_Z
    common: jd.Swept = jd.field(0.1, at_least=0)  # weight of the first common token, that of a class's distinct tokens is 1
    second: jd.Swept = jd.field(0.0, at_least=0)  # weight of the second common token
    unequal: jd.Swept = 0.0  # common tokens' weights times and over exp(unequal) in class 1, over and times in the others
    leak: jd.Swept = jd.field(0.0, at_least=0)  # weight of every distinct token in the next class, over its weight in its own
    per_query: jd.Swept = jd.field(1.0, at_least=1)  # K_m, classes per query
    reach: jd.Swept = jd.field(1e6, above=0, role="time")  # eta_Y t at the end
    classes: int = jd.field(4, at_least=2)  # K, next tokens, each with a law of the context
    distinct: int = jd.field(3, at_least=3)  # D, tokens that one class alone shows
    weights: tuple[float, ...] | None = None  # of the distinct tokens of every class, rising; none: random

    def __post_init__(self) -> None:
        """Refuse impossible weights of the distinct tokens."""
        random_laws.check_laws(self)


FLOW = jd.grid(LawsFlow, ratio=[0.1, 1.0, 10.0, 100.0, 1000.0], common=[0.05, 0.15], second=[0.0, 0.05], per_query=[1.0, 2.0])
ALONE = FLOW.replace(second=0.0)  # one common token
TESTED = (
    r"Gradient flow of decoder and attention from zero in float64 until $\eta_Y t$ = {reach}, $\eta_Y/\eta_Z$ of {ratio}: "
    "{classes} classes, {per_query} per query, with {distinct} distinct tokens of random weights each (1 together), a common "
    "token of weight {common} and a second one of weight {second} (0: none); {seeds} seeds."
)


def trial(s: LawsFlow, key: PRNGKeyArray) -> jd.Observables:
    """Logits and shares of attention along the flow, the relative gains of Theorem 3, and B of the reduced dynamics."""
    # the network's flow
    p = random_laws.random_laws(s, key)
    tokens = p.shape[1]
    size = tokens + 2 * s.classes
    n = np.arange(s.classes)
    query = jnp.floor(n / s.per_query).astype(jnp.int32)
    task = model.Task(jnp.pad(p, ((0, 0), (0, size - tokens))), query, tokens + s.classes + n, jnp.full(s.classes, 1 / s.classes))
    eta_y_t = jnp.concatenate([jnp.zeros(1), s.reach * jnp.logspace(-6, 0, SAVES, dtype=jnp.float64)])
    rates = model.Params(jnp.asarray(s.ratio, jnp.float64), jnp.ones((), jnp.float64))
    sol = population_flow(task, rates, eta_y_t / s.ratio)
    z = sol.ys.z[:, query, :tokens]
    f = unit(jnp.where(p > 0, p * jnp.exp(z), 0.0))
    own = n[:, None], random_laws.places(s)
    z_own, f_own, p_own = z[:, *own], f[:, *own], p[own]
    # the reduced dynamics, and what the theorems say
    problem = reduced.Problem(
        p, reduced.queries(s.classes, s.per_query), float(size), float(s.classes), s.ratio, 1.0, 1 / s.classes
    )
    path = reduced.solve(problem, eta_y_t / s.ratio, rtol=1e-9)
    bounds = {"lower": path.b[1:] * jnp.square(f_own[0, :, -1]), "upper": path.b[1:]}
    share = z_own - 0.5 * jnp.log1p(jnp.sum(jnp.square(f[0]) * jnp.expm1(2 * z), -1))[..., None]  # ln f since the start
    commons = _direction(z[..., : random_laws.COMMONS])
    commons = jnp.where(p[:, : random_laws.COMMONS] > 0, commons, commons[:, :1])  # where there is one, it stands for both
    u = clock(size * eta_y_t / s.classes, float(size))
    gain, printed, shortfall = _gains(z_own[1:], p_own)
    lag = growth.gain_shortfall(f_own[0, :, :-1], u[1:, None, None], s.ratio)
    return jd.observables(
        predicted={
            "rise": jd.named(jnp.ones_like(p_own), "class distinct"),
            "fall": jd.named(-jnp.ones_like(commons), "class common_token"),
            "grow": jd.named(jnp.ones(s.classes), "class"),
            "gain": jd.named(printed, "time class other"),
            "shortfall": jd.named(lag, "time class other"),
            **{name: jd.named(values, "time class") for name, values in bounds.items()},
        },
        measured={
            "rise": jd.named(_direction(z_own), "class distinct"),
            "fall": jd.named(commons, "class common_token"),
            "grow": jd.named(_direction(share)[:, -1], "class"),
            "gain": jd.named(gain, "time class other"),
            "shortfall": jd.named(shortfall, "time class other"),
            **{name: jd.named(z_own[1:, :, -1], "time class") for name in bounds},
        },
        recorded={
            "eta_y_t": jd.named(eta_y_t, "save"),
            "u": jd.named(u, "save"),
            "z_common": jd.named(z[..., : random_laws.COMMONS], "save class common_token"),
            "p_common": jd.named(p[:, : random_laws.COMMONS], "class common_token"),
            "z_own": jd.named(z_own, "save class distinct"),
            "f_own": jd.named(f_own, "save class distinct"),
            "p_own": jd.named(p_own, "class distinct"),
            "lower_weakest": jd.named(path.b[1:] * jnp.square(f_own[0, :, 0]), "time class"),
            "weakest_grow": jd.named(_direction(share)[:, 0], "class"),
        },
        assumed={"overlap": excess(unit(p)), "rate_ratio": s.ratio},
        status=jnp.maximum(sol.status, path.status),
    )


def _direction(z: Float[Array, "T K d"]) -> Float[Array, "K d"]:
    """1 where a logit rises between any two saves, -1 where it falls, in between where it does both."""
    return jnp.mean(jnp.sign(jnp.diff(z, axis=0)), 0)


def _gains(z: Float[Array, "T K d"], p: Float[Array, "K d"]) -> tuple[Array, Array, Array]:
    """Relative gains of the dominant distinct token over the others; by Theorem 3 from its logit; by which share they grow less."""
    start = jnp.square(p[:, -1:] / p[:, :-1]) - 1
    grown = (1 + start) * jnp.expm1(2 * (z[..., -1:] - z[..., :-1]))
    printed = growth.gain(start, z[..., -1:])
    return start + grown, printed, 1 - grown / (start * jnp.expm1(2 * z[..., -1:]))
