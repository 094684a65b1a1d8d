r"""Losses by a random law at a grid of sizes and tokens, and what the parametric fit of approach 3 makes of them.

Sizes run over two decades and tokens over two, every pair once. The fit knows neither the law nor its range: it starts from the
grid of starts that was published.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import sampling
from jaxdyn.theories.scal import fits
from jaxdyn.theories.scal.dynamics import laws
from jaxdyn.theories.scal.trials.laws import drawn

__all__ = ["PARAMETERS", "Exact", "Noisy", "noisy_trial", "trial"]

PARAMETERS = ("A", "B", "E", "alpha", "beta")
STRICT, DEFAULT = (1e-15, 1e-12), (2.2e-9, 1e-5)  # least gain of a step, least derivative
DECADES = ((8.0, 10.0), (9.0, 11.0))  # of sizes and of tokens


@jd.setting
class Exact:
    """Losses without noise, and the search.

    Args:
        law: "additive", or "kaplan": then no additive law is true.
        objective: Huber's losses are summed, or averaged.
        stops: "default", those of L-BFGS-B: the search ends when a step gains less than 2.2e-9 max(|f|, 1) or no derivative is
            above 1e-5; "strict": 1e-15 and 1e-12.
        digit: losses are rounded to multiples of it; 0: not at all.
        sizes: number of sizes, and of numbers of tokens.
        starts: the best of the grid's that are used.
    """

    law: jd.Code = jd.code("additive", "kaplan")
    objective: jd.Code = jd.code("sum", "mean")
    stops: jd.Code = jd.code("strict", "default")
    digit: jd.Swept = 0.0
    sizes: int = 7
    starts: int = 6

    def __post_init__(self) -> None:
        jd.require(self, self.digit >= 0, "digit is not negative", "digit")
        jd.require(self, self.sizes >= 3, "sizes is at least 3", "sizes")
        jd.require(self, 1 <= self.starts <= len(fits.GRID), f"starts is from 1 to {len(fits.GRID)}", "starts")


def grid(sizes: int) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Logarithms of sizes and tokens, every pair once."""
    n, d = (jnp.linspace(*ends, sizes, dtype=jnp.float64) * jnp.log(10.0) for ends in DECADES)
    n, d = jnp.meshgrid(n, d, indexing="ij")
    return n.ravel(), d.ravel()


def trial(s: Exact, key: PRNGKeyArray) -> jd.Observables:
    """The law's parameters and those of the fit, by L-BFGS from many starts and by variable projection."""
    law = drawn(key)
    n, d = grid(s.sizes)
    other = laws.Kaplan(1e9, 1e10, 0.3 * law.alpha, 0.3 * law.beta)
    losses = jnp.where(s.law == "kaplan", laws.kaplan_loss(other, jnp.exp(n), jnp.exp(d)), laws.loss(law, jnp.exp(n), jnp.exp(d)))
    step = jnp.maximum(s.digit, 1e-300)
    losses = jnp.where(s.digit > 0, jnp.round(losses / step) * step, losses)
    p = fits.Points(n, d, jnp.log(losses), jnp.ones_like(n))
    scale = jnp.where(s.objective == "mean", 1 / n.size, 1.0)
    first = fits.starts(p, s.starts)
    loose = s.stops == "default"
    stops = fits.Stops(*(jnp.where(loose, a, b) for a, b in zip(DEFAULT, STRICT, strict=True)))
    ends, steps = jax.vmap(lambda start: fits.lbfgs(start, p, scale, stops))(first)
    values = jax.vmap(lambda theta: fits.objective(theta, p))(ends)
    best = jnp.argmin(values)
    theta = ends[best]
    projected = fits.fitted(p)

    def numbers(law: laws.Law) -> Any:
        return jd.named(jnp.stack([jnp.asarray(x, jnp.float64) for x in (law.a, law.b, law.e, law.alpha, law.beta)]), "parameter")

    return jd.observables(
        predicted={"parameters": numbers(law), "exponent": laws.exponent(law)},
        measured={"parameters": numbers(fits.as_law(theta)), "exponent": laws.exponent(fits.as_law(theta))},
        recorded={
            "start": numbers(fits.as_law(first[0])),
            "start_exponent": laws.exponent(fits.as_law(first[0] + jnp.array([0, 0, 0, 1e-9, 1e-9]))),
            "projected": numbers(fits.as_law(projected)),
            "value": values[best],
            "steps": steps[best].astype(jnp.float64),
        },
        coords={"parameter": PARAMETERS},
    )


@jd.setting
class Noisy:
    """Losses with noise, and the bootstrap.

    Args:
        noise: standard deviation of ln L.
        shared: share of the noise's variance that all models of a size have in common.
        sizes: number of sizes, and of numbers of tokens.
        resamples: of the points, with replacement.
        level: of the interval.
    """

    noise: jd.Swept = 0.005
    shared: jd.Swept = 0.0
    sizes: int = 8
    resamples: int = 100
    level: float = 0.95

    def __post_init__(self) -> None:
        jd.require(self, self.noise > 0, "noise is positive", "noise")
        jd.require(self, 0 <= self.shared <= 1, "shared is from 0 to 1", "shared")
        jd.require(self, self.sizes >= 3 and self.resamples >= 2, "sizes is at least 3, resamples 2", "sizes", "resamples")
        jd.require(self, 0 < self.level < 1, "level is between 0 and 1", "level")


def noisy_trial(s: Noisy, key: PRNGKeyArray) -> jd.Observables:
    """The exponent of the law, that of the fit, and its bootstrap interval."""
    k_law, k_noise, k_boot = jax.random.split(key, 3)
    law = drawn(k_law)
    n, d = grid(s.sizes)
    own, common = jnp.split(sampling.normal(k_noise, (n.size + s.sizes,)), [n.size])
    noise = jnp.sqrt(1 - s.shared) * own + jnp.sqrt(s.shared) * jnp.repeat(common, s.sizes)
    p = fits.Points(n, d, jnp.log(laws.loss(law, jnp.exp(n), jnp.exp(d))) + s.noise * noise, jnp.ones_like(n))
    theta = fits.fitted(p)
    each = fits.resampled(k_boot, theta, p, s.resamples)
    a = each[:, 4] / (each[:, 3] + each[:, 4])
    low, high = jnp.quantile(a, jnp.array([(1 - s.level) / 2, (1 + s.level) / 2]))
    return jd.observables(
        predicted={"exponent": laws.exponent(law)},
        measured={"exponent": laws.exponent(fits.as_law(theta))},
        recorded={"low": low, "high": high},
    )
