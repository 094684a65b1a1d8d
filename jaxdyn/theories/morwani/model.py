r"""The network of Morwani et al.: two operands, one hidden layer of squares, one output for each sum modulo p.

.. math:: f_c(a, b) = \sum_j w_{cj}\,(u_{aj} + v_{bj})^2

It is homogeneous of degree 3 in its weights, so that its margin over :math:`\|\theta\|_{2,3}^3 = \sum_j \|(u_j, v_j, w_j)\|_2^3`
does not change with their scale. Source: arXiv:2311.07568, sections 2 and 5. Letters: p modulus, m nodes, n = p^2 pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

Scalar = float | Float[Array, ""]


class Params(NamedTuple):
    """Weights of both operands and of the sums."""

    u: Float[Array, "p m"]
    v: Float[Array, "p m"]
    w: Float[Array, "p m"]


def init(key: PRNGKeyArray, modulus: int, nodes: int, size: Scalar, dtype: str = "float32") -> Params:
    """Normal weights with a standard deviation ``size``."""
    return Params(*(jnp.asarray(size, dtype) * jax.random.normal(key, (3, modulus, nodes), jnp.float32).astype(dtype)))


def outputs(params: Params) -> Float[Array, "n p"]:
    """The outputs on all pairs, b running fastest."""
    hidden = jnp.square(params.u[:, None] + params.v)
    return hidden.reshape(-1, hidden.shape[-1]) @ params.w.T


def labels(modulus: int) -> Array:
    """The sum of every pair modulo p."""
    a = jnp.arange(modulus)
    return ((a[:, None] + a) % modulus).reshape(-1)


def cross_entropy(params: Params) -> Float[Array, ""]:
    """Mean cross-entropy over all pairs."""
    out = outputs(params)
    right = jnp.take_along_axis(jax.nn.log_softmax(out), labels(len(params.u))[:, None], 1)
    return -jnp.mean(right)


def sizes(params: Params) -> Float[Array, " m"]:
    """Squared 2-norm of every node's weights."""
    whole: Any = sum(jnp.sum(jnp.square(x), 0) for x in params)
    return whole


def cubes(params: Params) -> Float[Array, " m"]:
    """The cube of every node's 2-norm; their sum is the cube of the (2,3)-norm."""
    return sizes(params) ** 1.5


def penalty(params: Params, power: Scalar) -> Float[Array, ""]:
    """Sum over nodes of a power of their 2-norm: 3 is the theorem's, 2 is weight decay."""
    return jnp.sum((sizes(params) + 1e-12) ** (power / 2))


def margin(params: Params) -> Float[Array, ""]:
    """Least difference over all pairs between the right output and the largest wrong one."""
    out, right = outputs(params), labels(len(params.u))
    wrong = jnp.where(jnp.arange(len(params.u)) == right[:, None], -jnp.inf, out)
    return jnp.min(jnp.take_along_axis(out, right[:, None], 1)[:, 0] - jnp.max(wrong, 1))


def normalised(params: Params) -> Float[Array, ""]:
    """The margin over the cube of the (2,3)-norm."""
    return margin(params) / jnp.sum(cubes(params))


def spectrum(params: Params) -> tuple[Float[Array, " k"], Float[Array, ""]]:
    """Share of the cubes at each frequency 1 ... (p-1)/2, and how pure nodes are, both weighted with the cubes.

    A node counts at the frequency that holds most of its power; its purity is the share of its power there, constants included
    in the whole. A node without weights has no share.
    """
    doubled: Any = sum(jnp.abs(jnp.fft.rfft(x, axis=0)) ** 2 * 2 for x in params)
    power = doubled.at[0].divide(2)
    chief = jnp.argmax(power[1:], 0)
    cube, pure = cubes(params), jnp.max(power[1:], 0) / jnp.maximum(jnp.sum(power, 0), 1e-30)
    share = jax.ops.segment_sum(cube, chief, len(power) - 1)
    return share / jnp.sum(cube), jnp.sum(cube * pure) / jnp.sum(cube)
