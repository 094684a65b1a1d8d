"""Covariances with random eigenvectors, and the layer's first weights, as all topics of in-context learning use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from jaxdyn import linalg
from jaxdyn.engine.claims.code_field import Code
from jaxdyn.theories.icl import model
from jaxdyn.theories.icl.dynamics import merged

Scalar = float | int | Float[Array, ""]
STARTS = ("paper", "white", "zero", "dense", "heads", "negative")


def basis(key: PRNGKeyArray, inputs: int) -> Float[Array, "d d"]:
    """Random orthonormal eigenvectors, in columns."""
    return linalg.qr(jax.random.normal(key, (inputs, inputs), jnp.float64))[0]


def spectrum(first: Scalar, ratio: Scalar, inputs: int) -> Float[Array, " d"]:
    """Eigenvalues of the inputs' covariance, from the largest: each is ``ratio`` times the one before."""
    return first * ratio ** jnp.arange(inputs, dtype=jnp.float64)


def first_weights(start: Code, key: PRNGKeyArray, inputs: int, heads: int, size: Scalar, imbalance: Scalar) -> model.Params:
    r"""The layer at the start; its heads are zero except for "heads".

    "paper": :math:`U = \sigma\Theta\Theta^\top` of norm :math:`\sigma` for a Gaussian :math:`\Theta`, and
    :math:`u = \sqrt{\sigma^2 + c}`; "white": the same with :math:`\Theta\Theta^\top \propto I`; "zero": no entry
    differs from zero; "dense": all entries Gaussian of standard deviation
    :math:`\sigma/\sqrt d`; "heads": separate keys and queries, all their entries Gaussian of standard deviation :math:`\sigma`;
    "negative": "white" with the sign of U changed.
    """
    k_theta, k_pv, k_kq, k_heads = jax.random.split(key, 4)
    d, zeros = inputs, jnp.zeros((inputs + 1, inputs + 1), jnp.float64)
    # merged matrices: two blocks, nothing, or all entries
    theta = jax.random.normal(k_theta, (d, d), jnp.float64)

    def normed(block: Array) -> Array:
        return block / jnp.linalg.norm(block)

    def structured(block: Array) -> Callable[[], tuple[Array, Array]]:
        corner = jnp.sqrt(size**2 + imbalance)
        return lambda: (zeros.at[d, d].set(corner), zeros.at[:d, :d].set(size * block))

    def dense() -> tuple[Array, Array]:
        pv, kq = (size / d**0.5 * jax.random.normal(k, (d + 1, d + 1), jnp.float64) for k in (k_pv, k_kq))
        return pv, kq

    kinds = [
        structured(normed(theta @ theta.T)),
        structured(jnp.eye(d) / d**0.5),
        lambda: (zeros, zeros),
        dense,
        lambda: (zeros, zeros),
        structured(-jnp.eye(d) / d**0.5),
    ]
    pv, kq = jax.lax.switch(start.index, kinds)
    # separate keys and queries
    drawn = size * jax.random.normal(k_heads, (3, heads, d + 1), jnp.float64)
    return model.Params(pv, kq, *jnp.where(start == "heads", drawn, 0.0))


def blocks(pv: Float[Array, "*T d1 d1"], kq: Float[Array, "*T d1 d1"]) -> tuple[merged.Blocks, Float[Array, " *T"]]:
    """The two blocks that the theory has, and the root mean square of the other entries that act on predictions."""
    rest: Sequence[Array] = (pv[..., -1, :-1], kq[..., -1, :-1])
    other = jnp.sqrt(sum(jnp.mean(jnp.square(r), -1) for r in rest) / 2)
    return merged.Blocks(pv[..., -1, -1], kq[..., :-1, :-1]), other
