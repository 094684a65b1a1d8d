r"""When a network that has fitted its data generalises, predicted from the losses on spheres of weights.

With the data fitted, decay alone moves the norm: :math:`w(t) = w_0 e^{-\eta\gamma t}` for the learning rate eta and the decay
gamma of AdamW, t in steps. If the test loss depends on the norm alone, and is low below :math:`w_c`, then

.. math:: t = \frac{\ln(w_0 / w_c)}{\eta\gamma}.

Source: arXiv:2210.01117, section 2. The outer edge of the shell, :math:`w_c`, comes from the *reduced* test loss: that of the
network that minimises the training loss at a given norm.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Scalar = float | Float[Array, ""]


def passage(x: Float[Array, " T"], values: Float[Array, " T"], level: Scalar) -> Float[Array, ""]:
    """Where values first fall to a level, interpolated linearly in their logarithm; the last record where they never do."""
    return _between(x, values, level, jnp.argmax(jnp.append(values[1:] <= level, True)))


def edge(norms: Float[Array, " N"], values: Float[Array, " N"], level: Scalar) -> Float[Array, ""]:
    """The largest norm at which values are down to a level, interpolated in the logarithms; an end of the norms if none is."""
    return jnp.exp(-passage(-jnp.log(norms[::-1]), values[::-1], level))


def _between(x: Float[Array, " T"], values: Float[Array, " T"], level: Scalar, i: Int[Array, ""]) -> Float[Array, ""]:
    """Where values pass a level between records i and i + 1."""
    i = jnp.minimum(i, len(x) - 2)
    a, b, c = jnp.log(values[i]), jnp.log(values[i + 1]), jnp.log(level)
    share = jnp.where(values[i + 1] <= level, jnp.clip((a - c) / jnp.where(a == b, 1.0, a - b), 0, 1), 1.0)
    return x[i] + share * (x[i + 1] - x[i])


def delay(start: Scalar, edge: Scalar, rate: Float[Array, " g"]) -> Float[Array, " g"]:
    r"""Steps from one norm down to another, :math:`\ln(w_0/w_c) / \eta\gamma`, for every product of learning rate and decay."""
    return jnp.log(start / edge) / rate
