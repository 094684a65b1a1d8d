r"""A flow to t = 1e12 in log time by an implicit solver, with a tolerance that rises with the rounding errors of the field.

In :math:`s = \ln(1 + t)` the field is t times the gradient, whose rounding errors of about 1e-17 count 1e-5 at t = 1e12: near an
equilibrium no solver can do better. The time is therefore solved in three parts, with absolute tolerances of 1e-8 until
t = 1e4, 1e-5 until 1e8 and 1e-3 from there on, in one compiled loop. What converges is driven to its limit all the same: an
implicit step divides the errors by t again.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn import flow

PARTS = ((0.0, 1e1, 1e2, 1e3, 1e4), (1e4, 1e5, 1e6, 1e7, 1e8), (1e8, 1e9, 1e10, 1e11, 1e12))
TOLERANCES = (1e-8, 1e-5, 1e-3)
RELATIVE = 1e-7
TIMES = (0.0, *(t for part in PARTS for t in part[1:]))
DECADE = 2.302585092994046  # ln 10: between the last times


def solve(field: flow.Field, y0: PyTree, args: Any) -> tuple[PyTree, Int[Array, ""]]:
    """States at ``TIMES`` (a leading axis on every leaf) and the status of the worst part."""

    def part(y: PyTree, plan: tuple[Float[Array, " T"], Float[Array, ""]]) -> tuple[PyTree, Any]:
        ts, atol = plan
        sol = flow.solve(flow.log_time(field), y, jnp.log1p(ts), args, solver="kvaerno5", rtol=RELATIVE, atol=atol, max_steps=400)
        return sol.y_end, (jax.tree.map(lambda leaf: leaf[1:], sol.ys), sol.status)

    plans = jnp.asarray(PARTS, jnp.float64), jnp.asarray(TOLERANCES, jnp.float64)
    _, (ys, status) = jax.lax.scan(part, y0, plans)

    def joined(start: Array, leaf: Array) -> Array:
        return jnp.concatenate([start[None], leaf.reshape(-1, *leaf.shape[2:])])

    return jax.tree.map(joined, y0, ys), jnp.max(status)
