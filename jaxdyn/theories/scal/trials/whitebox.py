r"""The linear model trained by gradient descent, and the best number of features at budgets :math:`C = Nt` by three approaches.

The loss is recorded along training at times that are even in their logarithm; at a budget every size has its time C/N, at which
ln L is interpolated linearly in ln t. Parabolas go through the sizes within a factor of 4 of the best; approach 1 takes
the lowest curve; the parametric fit has the same points as the parabolas.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.scipy.special import zeta
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.theories.scal import fits, model, optima
from jaxdyn.theories.scal.dynamics import laws, whitebox
from jaxdyn.theories.scal.dynamics.whitebox import MOST

__all__ = ["APPROACHES", "BUDGETS", "Whitebox", "trial"]

APPROACHES = ("envelope", "parabolas", "additive fit")
RATE = 0.5  # of gradient descent; the largest eigenvalue is 1
SIZES = tuple(int(round(2 ** (i / 8))) for i in range(24, 89))  # 8 to 2048
BUDGETS = tuple(10 ** (4 + i / 8) for i in range(17))
STEPS = tuple(int(s) for s in np.unique(np.round(2 ** (np.arange(0, 129) / 8))))  # steps at which the loss is recorded
NEAR = float(np.log(4.0))


@jd.setting
class Whitebox:
    """The spectrum.

    Args:
        p: exponent of the eigenvalues.
        q: exponent of what each feature explains.
        cut: rate at which the eigenvalues fall below the power law; theory has 0.
    """

    p: jd.Swept = 1.5
    q: jd.Swept = 1.75
    cut: jd.Swept = 0.0

    def __post_init__(self) -> None:
        jd.require(self, self.p > 0 and self.q > 1, "p is positive, q above 1", "p", "q")
        jd.require(self, 0 <= self.cut <= 0.01, "cut is from 0 to 0.01", "cut")


def trained(s: Whitebox) -> Float[Array, "t s"]:
    """Losses of all sizes along training."""
    eigenvalues = model.spectrum(MOST, s.p, s.cut)
    goal = model.target(eigenvalues, s.q)
    step = train.make_step(lambda w: model.loss(w, eigenvalues, goal), optax.sgd(RATE))
    counts = jnp.diff(jnp.asarray((0, *STEPS), jnp.int32))
    at = jnp.asarray(SIZES) - 1

    def advance(state: train.State, count: Array) -> tuple[train.State, Array]:
        state = jax.lax.fori_loop(0, count, lambda _, state: step(state), state)
        return state, model.losses(state.params, eigenvalues, goal, s.q)[at]

    return jax.lax.scan(advance, train.init(optax.sgd(RATE), jnp.zeros(MOST, jnp.float64)), counts)[1]


def trial(s: Whitebox, key: PRNGKeyArray) -> jd.Observables:
    """Exponents of the best size in the budget, by approach; and the loss beside its law."""
    del key
    curves = trained(s)
    n, t = jnp.log(jnp.asarray(SIZES, jnp.float64)), RATE * jnp.asarray(STEPS, jnp.float64)
    budget = jnp.log(jnp.asarray(BUDGETS, jnp.float64))
    due = budget[:, None] - n
    at = jax.vmap(lambda x, curve: jnp.interp(x, jnp.log(t), jnp.log(curve)), (1, 1), 1)(due, curves)
    middle = optima.vertices(n, at, NEAR)
    lowest = optima.envelope(n, at)
    inside = (due <= jnp.log(t[-1])) & (jnp.abs(n - middle[:, None]) <= NEAR)
    p = fits.Points(jnp.tile(n, len(BUDGETS)), due.ravel(), at.ravel(), inside.ravel().astype(float))
    law = fits.as_law(fits.fitted(p))
    predicted = jax.lax.map(lambda time: whitebox.loss(jnp.asarray(SIZES), time, s.p, s.q, RATE), t)
    slopes = [optima.slope(budget, lowest), optima.slope(budget, middle), laws.exponent(law)]
    return jd.observables(
        predicted={
            "exponent": jd.named(jnp.full(3, whitebox.exponent(s.p)), "approach"),
            "loss": jd.named(predicted, "time size"),
        },
        measured={"exponent": jd.named(jnp.stack(slopes), "approach"), "loss": jd.named(curves, "time size")},
        recorded={
            "best": jd.named(jnp.exp(jnp.stack([lowest, middle])), "way budget"),
            "isoflop": jd.named(jnp.exp(at), "budget size"),
            "sum_of_limits": jd.named(whitebox.late(jnp.exp(n), s.q) + whitebox.large(t[:, None], s.p, s.q), "time size"),
            "still": jd.named(jnp.zeros(3), "approach"),
            "start": jd.named(jnp.full_like(curves, zeta(s.q, 1.0)), "time size"),
            "parameters": jd.named(jnp.stack([law.e, law.a, law.b, law.alpha, law.beta]), "parameter"),
        },
        coords={
            "approach": APPROACHES,
            "time": tuple(float(RATE * x) for x in STEPS),
            "size": SIZES,
            "budget": BUDGETS,
            "way": APPROACHES[:2],
            "parameter": ("E", "A", "B", "alpha", "beta"),
        },
    )
