r"""The reduced dynamics with one common token in all classes and one distinct token in each, and the law of Theorem 4.

One trial serves the law for any number K_m of classes per query, its two branches, its misprints, the effect of the decoder's
learning rate, and the end of the attention's movement. "Measured" is the reduced ODE, integrated. Letters as in
``dynamics/growth.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.snap.dynamics import growth, reduced
from jaxdyn.theories.snap.dynamics.clock import clock, miss
from jaxdyn.theories.snap.dynamics.gradient import gamma_integral

TIMES = 1e7 * 0.5 ** np.arange(33, -1, -1)  # doubling from about 1e-3
FORMS = ("derived", "no quarter", "constant")
SETTLED = 2.0  # times K ln M / eta_Y: the end of the transition
SLOWER = -0.02  # of B, what twice the decoder's rate takes: half of the least that the law says of these runs


@jd.setting
class Pair:
    """One common token and a distinct token per class; ``steady`` and ``restart`` are breaches."""

    odds: jd.Swept = jd.field(0.05, above=0)  # P of the common token over P of the distinct one
    per_query: jd.Swept = jd.field(1.0, at_least=1)  # K_m, classes per query
    size: jd.Swept = jd.field(1000.0, above=2)  # M, tokens of the vocabulary
    eta_y: jd.Swept = jd.field(1.0, above=0)  # rate of Y, the decoder
    eta_z: jd.Swept = 2e6  # rate of Z, the attention logits
    rho: jd.Swept = 1.0  # share of the time in which a row of Z sees a class
    factor: jd.Swept = jd.field(2.0, above=1)  # the second run's eta_Y over the first one's
    coupling: jd.Swept = 0.0  # its eta_Z grows by factor^coupling
    steady: jd.Swept = 0.0  # 1: gamma stays as at u = ln M, the loss never saturates
    restart: jd.Swept = 0.0  # the decoder restarts from zero at this multiple of K ln M / eta_Y (0: never)
    classes: int = jd.field(4, at_least=2)  # K, each with one distinct token

    def __post_init__(self) -> None:
        """Refuse queries with more classes than there are."""
        jd.require(self, self.per_query <= self.classes, "per_query is at most classes", "per_query", "classes")


def problem_of(s: Pair) -> reduced.Problem:
    """Laws and rates of the reduced dynamics; token 0 is the common one."""
    p = jnp.concatenate([jnp.full((s.classes, 1), s.odds), jnp.eye(s.classes, dtype=jnp.float64)], 1) / (1 + s.odds)
    member = reduced.queries(s.classes, s.per_query)
    return reduced.Problem(p, member, s.size, float(s.classes), s.eta_y, s.eta_z, s.rho, s.steady)


def trial(s: Pair, key: PRNGKeyArray) -> jd.Observables:
    """B, its growth and the attention's movement by the reduced ODE and by the law, and what another eta_Y changes."""
    del key  # nothing is random
    # times and rates, and the reduced dynamics for both pairs of rates
    ts = jnp.concatenate([jnp.zeros(1), jnp.asarray(TIMES, jnp.float64)])
    problem = problem_of(s)
    late = jnp.log(s.size) * problem.classes / s.eta_y
    restart = jnp.where(s.restart > 0, s.restart * late, jnp.inf)
    rates = jnp.stack([jnp.ones(2), jnp.stack([s.factor, s.factor**s.coupling])])  # of (Y, Z): this run's, and the other's

    def run(scale: Float[Array, " 2"]) -> tuple[reduced.Path, Array, Array]:
        both = problem._replace(eta_y=scale[0] * problem.eta_y, eta_z=scale[1] * problem.eta_z)
        path = reduced.solve(both, ts, restart=restart)
        f = reduced.features(path.z, both)
        return path, reduced.rates(f, path.u, both)[1][:, 0], (f / jnp.sum(f, -1, keepdims=True))[:, 0]

    path, pressure, c = jax.vmap(run)(rates)
    # the law for both
    b, t = path.b[:, 1:, 0], ts[1:]
    law = jax.vmap(lambda scale: _law(s, t, scale))(rates)
    effect = law["derived"][1] - law["derived"][0]
    rising = t * pressure[0, 1:]  # dB / dln t
    own = {name: values[0] for name, values in law.items()}  # at this run's rates
    return jd.observables(
        predicted={
            "b": jd.named(jnp.stack([own[form] for form in FORMS]), "form time"),
            "growth": jd.named(own["growth"], "time"),
            "effect": jd.named(effect, "time"),
            **{name: jd.named(own[name], "time") for name in ("early", "late", "limit")},
            "move": jd.named(_moves(growth.suppressed(own["derived"], s.odds, s.per_query)), "double"),
        },
        measured={
            **{name: jd.named(b[0], "time") for name in ("b", "early", "late")},
            **{name: jd.named(rising, "time") for name in ("growth", "limit")},
            "effect": jd.named(b[1] - b[0], "time"),
            "move": jd.named(_moves(c[0, 1:, 0]), "double"),
        },
        recorded={
            "four": jd.named(own["four"], "time"),
            "four_move": jd.named(_moves(growth.suppressed(own["four"], s.odds, s.per_query)), "double"),
            "u": jd.named(path.u[0, 1:], "time"),
            "error": jd.named((s.size - 1) * miss(path.u[0, 1:], s.size), "time"),
            "c": jd.named(c[0, 1:, 0], "time"),
            "settles": late,
            "step_ratio": s.factor,
            "odds_squared": jnp.square(jnp.asarray(s.odds, jnp.float64)),
        },
        assumed={"grown": log_argument(s, SETTLED * late)},
        status=jnp.max(path.status),
        coords={"time": TIMES.tolist(), "double": TIMES[:-1].tolist(), "form": FORMS},
    )


def log_argument(s: Pair, t: Float[Array, ""]) -> Float[Array, ""]:
    r""":math:`q\rho\eta_Z\Gamma / C_0` at a time: how far B's logarithm is from its linear part."""
    k, c0, q = float(s.classes), growth.constant(s.odds, s.classes, s.size), growth.exponent(s.per_query)
    return q * s.rho * s.eta_z * gamma_integral(clock(s.size * s.eta_y * t / k, s.size), s.size, k, s.eta_y) / c0


def _moves(c: Float[Array, " T"]) -> Float[Array, " T-1"]:
    """L1 distance of the attention at time 2t from that at time t; what one of two tokens loses the other gains."""
    return 2 * jnp.abs(c[1:] - c[:-1])


def _law(s: Pair, t: Float[Array, " T"], scale: Float[Array, " 2"]) -> dict[str, Float[Array, " T"]]:
    """Theorem 4 in its exact form and as it is printed, for learning rates times ``scale``."""
    eta_y, rate = scale[0] * s.eta_y, s.rho * scale[1] * s.eta_z
    k, c0, q = float(s.classes), growth.constant(s.odds, s.classes, s.size), growth.exponent(s.per_query)
    u = clock(s.size * eta_y * t / k, s.size)
    drive = rate * gamma_integral(u, s.size, k, eta_y)
    exact = growth.b_law(drive, c0, q)
    early = growth.b_law(rate * growth.early_drive(t, s.size, k, eta_y), c0, q)
    late = growth.b_law(rate * jnp.where(t * eta_y > k, growth.late_drive(t, s.size, k, eta_y), 0.0), c0, q)
    return {
        "derived": exact,
        "no quarter": q * exact,
        "constant": exact + jnp.log(c0) / q,
        "four": growth.b_law(drive, c0, 4.0),
        "growth": growth.slope(u, drive, c0, q, s.size),
        "limit": 2 / (q * u),
        "early": early,
        "late": late,
    }
