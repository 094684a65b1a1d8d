r"""Encoders written down, not trained: the code f of the relevant bits, and the code g of as many irrelevant ones.

.. math:: f(x) = x_{1:k} / \sqrt k, \qquad g(x) = \operatorname{sign}(x_{k+1:2k}) / \sqrt k

g sees the bits that augmentation shrinks; their signs survive. With the two blocks of a batch exchanged, g has the similarities
of f.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data import hypercube
from jaxdyn.theories.hyper import model
from jaxdyn.theories.hyper.dynamics import codes

__all__ = ["Codes", "trial"]


@jd.setting
class Codes:
    """Two codes on new batches.

    Args:
        relevant: k.
        first: relevant bits that f reads; k, or fewer.
        factor: one number a view, or one a coordinate, shrinks the irrelevant bits.
        temperature: T.
        inputs, batch: sizes.
        batches: on which losses are means.
        tasks, examples: of the probe.
    """

    relevant: jd.Swept = 10.0
    first: jd.Swept = 10.0
    factor: jd.Code = jd.code("scalar", "coordinate")
    temperature: jd.Swept = 0.5
    inputs: int = 50
    batch: int = 512
    batches: int = 4
    tasks: int = 10
    examples: int = 5000

    def __post_init__(self) -> None:
        jd.require(self, 1 <= self.first <= self.relevant, "first is from 1 to relevant", "first", "relevant")
        jd.require(self, 2 * self.relevant <= self.inputs, "inputs is at least twice relevant", "relevant", "inputs")
        jd.require(self, self.temperature > 0, "temperature is positive", "temperature")
        for name in ("batches", "tasks"):
            jd.require(self, getattr(self, name) >= 2, f"{name} is at least 2", name)


def read(x: Float[Array, "*n D"], begin: Float[Array, ""], count: Float[Array, ""]) -> Float[Array, "*n D"]:
    """The signs of ``count`` coordinates from ``begin`` on, as a unit vector."""
    at = jnp.arange(x.shape[-1])
    return jnp.where((at >= begin) & (at < begin + count), jnp.sign(x), 0) / jnp.sqrt(count)


def exchanged(x: Float[Array, "*n D"], k: Float[Array, ""]) -> Float[Array, "*n D"]:
    """The first and the second block of k coordinates exchanged."""
    at = jnp.arange(x.shape[-1])
    place = jnp.where(at < k, at + k, jnp.where(at < 2 * k, at - k, at)).astype(int)
    return x[..., place]


def trial(s: Codes, key: PRNGKeyArray) -> jd.Observables:
    """Losses of both codes on the same batches, of the second with blocks exchanged as well, and their downstream accuracy."""
    k_data, k_points, k_view, k_task = jax.random.split(key, 4)
    scalar, k, zero = s.factor == "scalar", jnp.asarray(s.relevant, jnp.float64), jnp.float64(0)
    temperature = jnp.asarray(s.temperature, jnp.float64)

    def losses(key: PRNGKeyArray) -> tuple[Array, ...]:
        x = hypercube.pair(key, s.batch, s.inputs, k, scalar, jnp.float64)
        seen = read(x, zero, s.first), read(exchanged(x, k), k, k), read(x, k, k)
        return tuple(model.nt_xent(z, temperature) for z in seen)

    f, g, own = jax.lax.map(losses, jax.random.split(k_data, s.batches))
    x = hypercube.points(k_points, 2 * s.examples, s.inputs, jnp.float64)
    y, n = hypercube.labels(k_task, x, k, s.tasks), s.examples
    views = hypercube.view(k_view, x, k, scalar)

    def accuracy(z: Float[Array, "n d"]) -> Array:
        return jnp.mean(model.accuracy(z[:n], y[:, :n], z[n:], y[:, n:]))

    half = s.inputs // 2  # both codes in an array of their own, of which the first k columns are used
    first, second = read(views, zero, s.first)[:, :half], read(exchanged(views, k), zero, k)[:, :half]
    moment, negatives = codes.bit_moment(k, temperature), jnp.float64(2 * s.batch - 2)
    low = codes.jensen(negatives, moment, codes.bit_variance(k, temperature), temperature)
    return jd.observables(
        predicted={"tie": jd.named(f, "part"), "mean": codes.loss(negatives, moment, temperature) - low},
        measured={
            "tie": jd.named(g, "part"),
            "mean": jnp.mean(f),
            "other": jnp.mean(own),
            "relevant": accuracy(first),
            "irrelevant": accuracy(second),
        },
        recorded={"without": codes.loss(negatives, moment, temperature)},
    )
