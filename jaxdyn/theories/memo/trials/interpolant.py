"""The constructed network through random points with random values, evaluated unit by unit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

import jaxdyn as jd
from jaxdyn import sampling
from jaxdyn.theories.memo.dynamics import interpolant

__all__ = ["Points", "trial"]


@jd.setting
class Points:
    """Points and the network through them.

    Args:
        points: n, at most ``most``.
        less: units left out, 0 or 1; the one in the middle.
        equal: 1 puts two neighbours in one place, each with its own value.
        inputs, most: sizes.
    """

    points: jd.Swept = 50.0
    less: jd.Swept = 0.0
    equal: jd.Swept = 0.0
    inputs: int = 10
    most: int = 500

    def __post_init__(self) -> None:
        jd.require(self, 3 <= self.points <= self.most, "points is from 3 to most", "points", "most")
        for name in ("less", "equal"):
            jd.require(self, getattr(self, name) in (0, 1), f"{name} is 0 or 1", name)


def trial(s: Points, key: PRNGKeyArray) -> jd.Observables:
    """Values at the points, by the network, and how many weights it has."""
    k_x, k_y, k_a = jax.random.split(key, 3)
    used = jnp.arange(s.most) < s.points
    x = sampling.normal(k_x, (s.most, s.inputs))
    x = jnp.where((s.equal > 0) & (jnp.arange(s.most) == 1)[:, None], x[0], x)
    y, a = sampling.normal(k_y, (s.most,)), sampling.normal(k_a, (s.inputs,))
    dropped = jnp.where(s.less > 0, jnp.floor(s.points / 2), -1).astype(int)
    network = interpolant.construct(a, x, y, used, dropped)
    units = jnp.sum(network.w != 0, dtype=jnp.float64)
    error = jnp.where(used, interpolant.apply(network, x) - y, 0)
    return jd.observables(
        predicted={"values": jd.named(jnp.where(used, y, 0), "point"), "weights": interpolant.weights(s.points, s.inputs)},
        measured={"values": jd.named(jnp.where(used, y + error, 0), "point"), "weights": 2 * units + a.size},
        recorded={"residual": jnp.max(jnp.abs(error)), "mean": jnp.sum(jnp.where(used, y, 0)) / s.points},
    )
