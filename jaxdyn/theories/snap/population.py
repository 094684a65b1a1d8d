r"""The network's own gradient flow in (Y, Z) at infinite length, from zero, and Theorem 3's relative gains along it.

The ratio of the learning rates is finite here and the classes overlap, so that the theorem holds approximately: gains are read
off at the moment at which the dominant token's logit reaches a given height.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow
from jaxdyn.status import OK, UNCONVERGED
from jaxdyn.theories.snap import model, tasks
from jaxdyn.theories.snap.dynamics import growth
from jaxdyn.theories.snap.dynamics.gradient import excess, unit


@jd.setting
class Population:
    """Classes with common tokens of equal weight and distinct tokens of weights linspace(0.4, 1), trained without noise."""

    ratio: jd.Swept = jd.field(1.0, above=0)  # eta_Y / eta_Z
    common: jd.Swept = jd.field(1.0, above=0)  # weight of each common token
    slow: jd.Swept = jd.field(1.0, above=0)  # divides the ratio (a breach)
    height: jd.Swept = jd.field(0.2, above=0)  # the dominant token's logit at which gains are read off
    classes: int = jd.field(2, at_least=2)
    commons: int = jd.field(2, at_least=1)
    distinct: int = jd.field(3, at_least=2)
    weights: tuple[float, ...] | None = None  # of the distinct tokens of every class, rising; none: linspace(0.4, 1)
    horizon: float = jd.field(1e12, above=0)

    def __post_init__(self) -> None:
        """Refuse weights of the distinct tokens that are impossible or do not rise."""
        tasks.check_weights(self)
        rising = self.weights is None or tuple(sorted(self.weights)) == self.weights
        jd.require(self, rising, "the last of the weights is the largest: they rise", "weights")


def population_flow(
    task: model.Task,
    rates: model.Params,
    ts: Float[Array | np.ndarray, " T"],
    height: Float[Array, ""] | float | None = None,
    top: int = 0,
) -> flow.Solution:
    r"""Gradient flow of the network's loss from Y = Z = 0, integrated in :math:`\ln(1+t)`; the field does not depend on time.

    Args:
        task: the classes.
        rates: learning rates of Y and of Z.
        ts: save times, increasing from 0.
        height: stop when the first query's logit of the token ``top`` reaches it; None: never.
        top: that token.
    """

    # the field, and the height as an event
    def field(_: object, params: model.Params, args: tuple) -> model.Params:
        return jax.tree.map(lambda rate, g: -rate * g, args[0], jax.grad(model.loss)(params, args[1]))

    def below(_: object, params: model.Params, args: tuple) -> Float[Array, ""]:
        return params.z[0, top] - args[2]

    # solved from zero
    start = model.Params(*(jnp.zeros((rows, task.p.shape[1]), jnp.float64) for rows in task.p.shape[::-1]))
    event, args = (None, (rates, task)) if height is None else (below, (rates, task, jnp.asarray(height, jnp.float64)))
    return flow.solve(flow.log_time(field), start, jnp.log1p(ts), args, event=event, rtol=1e-9, atol=1e-13, max_steps=40_000)


def trial(s: Population, key: PRNGKeyArray) -> jd.Observables:
    """Gains of the first class's dominant token over its other distinct ones where its logit passes the height."""
    del key  # nothing is random
    # the classes, and the flow up to the height
    each = jnp.linspace(0.4, 1.0, s.distinct, dtype=jnp.float64) if s.weights is None else jnp.asarray(s.weights, jnp.float64)
    weights = jnp.broadcast_to(each, (s.classes, s.distinct))
    task = tasks.weighted_task(weights, s.common * jnp.ones(s.commons, jnp.float64))
    top = s.commons + s.distinct - 1
    rates = model.Params(jnp.asarray(s.ratio / s.slow, jnp.float64), jnp.ones((), jnp.float64))
    sol = population_flow(task, rates, jnp.asarray([0.0, s.horizon], jnp.float64), s.height, top)
    z, p = sol.y_end.z[0], task.p[0]

    # relative gains there, by Theorem 3 and of the network
    def gains(token: np.ndarray | int, other: np.ndarray | int) -> tuple[Array, Array]:
        odds = p[token] / p[other]
        return growth.gain(odds**2 - 1, z[token]), jnp.expm1(2 * (jnp.log(odds) + z[token] - z[other]))

    weaker = np.arange(s.commons, top)
    predicted, measured = gains(top, weaker)
    return jd.observables(
        predicted={"gain": jd.named(predicted, "other")},
        measured={"gain": jd.named(measured, "other")},
        recorded={
            "pair_common": jd.named(jnp.stack(gains(weaker, 0)), "side other"),
            "time": jnp.expm1(sol.t_end),
            "top": z[top],
            "z": jd.named(z, "token"),
            "excess": excess(unit(task.p)),
            "steps": sol.steps,
        },
        status=jnp.where(sol.event, sol.status, jnp.where(sol.status == OK, UNCONVERGED, sol.status)),
    )


def residual(ds: xr.Dataset) -> xr.DataArray:
    """Relative gain over the one predicted from the dominant token's logit, minus 1."""
    return ds.measured_gain / ds.predicted_gain - 1
