r"""Runs on two scalars, :math:`L = \tfrac12(uv-1)^2`: gradient descent and gradient flow from one start."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, train
from jaxdyn.status import DIVERGED, OK, UNCONVERGED
from jaxdyn.theories.cal.dynamics import pair as theory
from jaxdyn.theories.cal.model import pair_loss
from jaxdyn.theories.cal.trials.checks import at_least_one, positive

__all__ = ["Pair", "trial"]


@jd.setting
class Pair:
    """Two scalars with loss ``(uv - 1)^2 / 2``: from the point ``(u, v)``, or from a random one near it.

    Gradient descent makes ``steps`` steps, gradient flow runs until time ``horizon``.
    """

    eta: jd.Swept = 0.1
    optimizer: jd.Code = jd.code("gd", "adam")
    start: jd.Code = jd.code("reference", "random")
    u: jd.Swept = 3.0  # the reference start
    v: jd.Swept = 0.2
    horizon: jd.Swept = 20.0
    steps: int = 3000

    def __post_init__(self) -> None:
        positive(self, "eta", "horizon")
        at_least_one(self, "steps")


SETTLED = 1e-10  # residual |uv - 1| at which a run has stopped


def trial(s: Pair, key: PRNGKeyArray) -> jd.Observables:
    """Gradient descent and gradient flow from one start, both to the end."""
    u0, v0 = jax.random.uniform(key, (2,), jnp.float64, jnp.array([2.5, 0.05]), jnp.array([3.0, 0.25]))
    drawn = s.start == "random"
    start = jnp.where(drawn, u0, s.u), jnp.where(drawn, v0, s.v)
    tx = train.switched(s.optimizer, {"gd": optax.sgd(s.eta), "adam": optax.adam(s.eta)})
    step = train.make_step(pair_loss, tx)
    last, _ = train.record(step, train.init(tx, start), lambda c: None, samples=1, every=s.steps)
    u, v = last.params
    sol = flow.gradient_flow(pair_loss, start, jnp.stack([0 * s.horizon, s.horizon]), rtol=1e-11, atol=1e-13)
    sharpness = u**2 + v**2
    flow_end = sol.ys[0][-1] ** 2 + sol.ys[1][-1] ** 2
    of_flow = theory.flow_sharpness(*start)
    settled = jnp.where(jnp.abs(u * v - 1) < SETTLED, OK, UNCONVERGED)
    ended = jnp.where(jnp.isfinite(sharpness), settled, DIVERGED)
    return jd.observables(
        predicted={"edge": theory.edge(s.eta), "flow": of_flow, "lead": of_flow + s.eta * theory.flattening(*start)},
        measured={"edge": sharpness, "flow": flow_end, "lead": sharpness},
        recorded={"start_sharpness": start[0] ** 2 + start[1] ** 2},
        status=jnp.where(sol.status == OK, ended, sol.status),
    )
