r"""Gradient flow of the diagonal network next to the predicted path: error, products, and the time of the switch.

Time is in units of 1/lambda. Letters as in ``dynamics/path.py``; the error is the squared distance of w from the truth, which is
sparse, over the square of the truth: the population's loss.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow
from jaxdyn.theories.lyu import model
from jaxdyn.theories.lyu.dynamics import path as theory
from jaxdyn.theories.lyu.dynamics import sparse

__all__ = ["Switch", "trial"]

FITTED = 0.25  # from here on, in units of 1/lambda, the data are fitted
AFTER = 8.0  # units of 1/lambda recorded after ln(alpha)


@jd.setting
class Switch:
    """Gradient flow of the diagonal network with weight decay.

    Args:
        alpha: size of the start, for the theory and the clock.
        decay: lambda.
        acting: "no" trains without the decay, a breach; the clock keeps it.
        shrink: factor on the start that the theory does not know of, a breach.
        samples: n.
        inputs: d.
        active: entries of the truth that are not zero.
        records: recorded times after the start.
    """

    alpha: jd.Swept = jd.field(8.0, above=0)
    decay: jd.Swept = jd.field(0.01, above=0)
    acting: jd.Code = jd.code("yes", "no")
    shrink: jd.Swept = jd.field(1.0, above=0)
    samples: int = 12
    inputs: int = 24
    active: int = jd.field(2, at_least=1)
    records: int = jd.field(72, at_least=8)

    def __post_init__(self) -> None:
        """Refuse data that determine the weight, and a truth that is not sparse."""
        sizes = ("active", "samples", "inputs")
        jd.require(self, self.active < self.samples < self.inputs, "active < samples < inputs", *sizes)


def time_of_switch(time: Float[Array, " T"], errors: Float[Array, " T"], level: Float[Array, ""]) -> Float[Array, ""]:
    """The last time at which the error falls through a level; the start, where w still grows from zero, counts as fitted."""
    first = jnp.argmax(time >= FITTED)
    return theory.crossing(time, jnp.where(jnp.arange(len(time)) < first, errors[first], errors), level)


def trial(s: Switch, key: PRNGKeyArray) -> jd.Observables:
    """The network's error and effective weight along the flow, next to the entropic path."""
    # data and clock: time in units of 1/lambda, which runs on where the decay does not act
    data = model.sample(key, s.samples, s.inputs, s.active)
    time = jnp.linspace(0, jnp.abs(jnp.log(s.alpha)) + AFTER, s.records + 1, dtype=jnp.float64)
    decay = jnp.where(s.acting == "yes", s.decay, 0.0)
    # the network's flow
    start = model.init(s.alpha * s.shrink, s.inputs)
    options = {"solver": "kvaerno5", "rtol": 1e-7, "atol": 1e-10}  # fitting is stiff: 4 alpha^2 against lambda
    solution = flow.gradient_flow(model.loss, start, time / s.decay, data, decay, **options)
    w, product = jax.vmap(model.weight)(solution.ys), jnp.abs(solution.ys.u * solution.ys.v)
    # the theory: the entropic path and its two ends
    predicted = theory.path(data, s.alpha * jnp.exp(-time))
    near, sparsest = theory.kernel(data), sparse.least_one_norm(data)

    # errors, and the time at which they are halved
    def error(w: Float[Array, "*T d"]) -> Float[Array, "*T"]:
        return jnp.sum(jnp.square(w - data.truth), -1) / jnp.sum(jnp.square(data.truth))

    half = error(near) / 2
    early = jnp.argmin(jnp.abs(time - jnp.abs(jnp.log(s.alpha)) / 2))
    return jd.observables(
        predicted={
            "switch": time_of_switch(time, error(predicted), half),
            "error": jd.named(error(predicted), "record"),
            "product": jd.named(jnp.broadcast_to(theory.product(s.alpha, time)[:, None], product.shape), "record input"),
            "end": jd.named(sparsest, "input"),
        },
        measured={
            "switch": time_of_switch(time, error(w), half),
            "error": jd.named(error(w), "record"),
            "product": jd.named(product, "record input"),
            "end": jd.named(w[-1], "input"),
        },
        recorded={
            "time": jd.named(time, "record"),
            "kernel_error": error(near),
            "early": jnp.linalg.norm(w[early] - near) / jnp.linalg.norm(near),
            "kernel": jd.named(near, "input"),
            "fitted": jd.named(jnp.where(time >= FITTED, 1.0, 0.0), "record"),
        },
        assumed={"left": jnp.linalg.norm(predicted[-1] - sparsest) / jnp.linalg.norm(sparsest)},
        status=solution.status,
    )
