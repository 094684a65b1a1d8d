r"""Random laws, their least loss at a budget by their own derivative, and the parabolas of approach 2 through their isoFLOP curves.

The best size is where the derivative of :math:`L(e^x, C/(6e^x))` in x, by automatic differentiation, changes its sign, measured by
bisection.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.theories.scal import optima
from jaxdyn.theories.scal.dynamics import laws

LAWS = ("additive", "kaplan")
BUDGETS = tuple(10.0**i for i in range(18, 25))
RANGE = (0.0, 60.0)  # of ln N


def sample_law(key: PRNGKeyArray) -> laws.Law:
    r"""A random law: exponents from 0.2 to 0.6, E from 1 to 2, both other terms from 0.1 to 1 at :math:`N = 10^9, D = 10^{10}`."""
    u = jax.random.uniform(key, (5,), jnp.float64)
    alpha, beta = 0.2 + 0.4 * u[0], 0.2 + 0.4 * u[1]
    return laws.Law(1 + u[2], 10 ** (u[3] - 1) * 1e9**alpha, 10 ** (u[4] - 1) * 1e10**beta, alpha, beta)


@jd.setting
class Optimum:
    """A law and what a token costs.

    Args:
        law: "additive" or "kaplan".
        power: a token costs 6 N^power operations; theory has 1.
    """

    law: jd.Code = jd.code(*LAWS)
    power: jd.Swept = jd.field(1.0, at_least=0.5, at_most=2, role="breach")


def least(f: Callable[[Array], Array]) -> Float[Array, ""]:
    """Where the derivative of a convex function changes its sign, by bisection."""

    def halve(_: int | Int[Array, ""], ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        rising = jax.grad(f)(middle) > 0
        return jnp.where(rising, ends[0], middle), jnp.where(rising, middle, ends[1])

    low, high = jax.lax.fori_loop(0, 64, halve, tuple(jnp.asarray(x, jnp.float64) for x in RANGE))
    return (low + high) / 2


def trial(s: Optimum, key: PRNGKeyArray) -> jd.Observables:
    """The best size and tokens at every budget: closed form, and by bisection."""
    law, budget = sample_law(key), jnp.asarray(BUDGETS, jnp.float64)
    other = laws.Kaplan(1e9 * (law.a / law.e), 1e10 * law.e, 0.3 * law.alpha, 0.3 * law.beta)

    def ln_loss(x: Array, c: Array) -> Array:
        n = jnp.exp(x)
        d = c / (laws.COST * n**s.power)
        return jnp.where(s.law == "kaplan", jnp.log(laws.kaplan_loss(other, n, d)), laws.loss(law, n, d))

    # by bisection and in closed form
    measured = jnp.exp(jax.vmap(lambda c: least(lambda x: ln_loss(x, c)))(budget))
    closed, kaplan = laws.optimum(law, budget), laws.kaplan_optimum(other, budget)
    n, d = (jnp.where(s.law == "kaplan", k, c) for k, c in zip(kaplan, closed, strict=True))
    # what rivals say, at the same middle budget
    r = law.alpha / law.beta
    a = jnp.where(s.law == "kaplan", 1 / (1 + r), laws.exponent(law))
    middle = jnp.exp(jnp.mean(jnp.log(budget / laws.COST)))
    g = jnp.exp(jnp.mean(jnp.log(n) - a * jnp.log(budget / laws.COST)))
    return jd.observables(
        predicted={"n": jd.named(n, "budget"), "d": jd.named(d, "budget")},
        measured={"n": jd.named(measured, "budget"), "d": jd.named(budget / (laws.COST * measured**s.power), "budget")},
        recorded={
            "n_exchanged": jd.named(g * middle**a * (budget / laws.COST / middle) ** (1 - a), "budget"),
            "n_equal": jd.named((budget / laws.COST / 20) ** 0.5, "budget"),
            "n_fixed": jd.named(jnp.full_like(n, g * middle**a), "budget"),
        },
        coords={"budget": BUDGETS},
    )


@jd.setting
class Parabola:
    """A law's exponents and the sizes on each isoFLOP curve.

    Args:
        alpha, beta: exponents.
        half: logarithm to base ten of the largest size over the middle one.
        drift: by how much the middle of the sizes moves from the best one for each e-fold of the budget.
        sizes: on each curve.
    """

    alpha: jd.Swept = jd.field(0.34, above=0)
    beta: jd.Swept = jd.field(0.28, above=0)
    half: jd.Swept = jd.field(1.0, above=0)
    drift: jd.Swept = 0.0
    sizes: int = jd.field(15, at_least=3)


def parabola_trial(s: Parabola, key: PRNGKeyArray) -> jd.Observables:
    """Slope of the vertices over budgets, and how far they lie from the best sizes."""
    law = sample_law(key)._replace(alpha=s.alpha, beta=s.beta)
    budget = jnp.asarray(BUDGETS, jnp.float64)
    best = jnp.log(laws.optimum(law, budget)[0])
    x = s.half * jnp.log(10.0) * jnp.linspace(-1, 1, s.sizes, dtype=jnp.float64)
    middle = best + s.drift * (jnp.log(budget) - jnp.mean(jnp.log(budget)))
    n = middle[:, None] + x
    losses = laws.loss(law, jnp.exp(n), budget[:, None] / (laws.COST * jnp.exp(n)))
    measured = jax.vmap(optima.vertex)(n, losses, jnp.ones_like(n))
    return jd.observables(
        predicted={
            "slope": laws.exponent(law),
            "shift": jd.named(jnp.full_like(best, laws.parabola_shift(s.alpha, s.beta, x)), "budget"),
        },
        measured={"slope": optima.slope(jnp.log(budget), measured), "shift": jd.named(measured - best, "budget")},
        recorded={"vertex": jd.named(jnp.exp(measured), "budget"), "best": jd.named(jnp.exp(best), "budget")},
        coords={"budget": BUDGETS},
    )
