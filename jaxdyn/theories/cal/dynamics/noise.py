r"""Exact statistics of SGD on a quadratic :math:`\tfrac12x^\top Hx` with gradient noise of covariance C.

One step is :math:`x^+ = (1 - \eta H)x - \eta\xi`. Everything is diagonal in pairs of eigenvectors of H: h eigenvalues (d,),
vectors (d, d), :math:`\rho = 1 - \eta h`. Source: arXiv:2012.03636.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxdyn.theories.cal.model import Scalar

Count = int | Int[Array, ""]


def mean_after(n: Count, eta: Scalar, h: Float[Array, " d"], x0: Float[Array, " d"]) -> Float[Array, " d"]:
    r"""Mean after n steps in the eigenbasis, :math:`(1-\eta h)^n x_0`; exact, also beyond the edge of stability."""
    factor = 1 - eta * h
    sign = jnp.where((n % 2 == 1) & (factor < 0), -1.0, 1.0)
    return sign * jnp.abs(factor) ** n * x0


def decay_rate(eta: Scalar, h: Float[Array, " d"]) -> Float[Array, " d"]:
    r"""Rate of a mode in time t = n eta, :math:`-\ln|1-\eta h|/\eta = h + \eta h^2/2 + \dots`; negative if :math:`\eta h > 2`."""
    return -jnp.where(eta * h < 0.5, jnp.log1p(-jnp.minimum(eta * h, 0.5)), jnp.log(jnp.abs(1 - eta * h))) / eta


def stationary_covariance(
    eta: Scalar, h: Float[Array, " d"], vectors: Float[Array, "d d"], c: Float[Array, "d d"]
) -> Float[Array, "d d"]:
    r"""Solution S of :math:`HS + SH - \eta HSH = \eta C`; for one dimension :math:`\eta\sigma^2/(h(2-\eta h))`."""
    rotated = vectors.T @ c @ vectors
    return vectors @ (eta * rotated / (h[:, None] + h[None] - eta * h[:, None] * h[None])) @ vectors.T


def diffusion_covariance(
    eta: Scalar, h: Float[Array, " d"], vectors: Float[Array, "d d"], c: Float[Array, "d d"]
) -> Float[Array, "d d"]:
    r"""The same in the diffusion limit, :math:`HS + SH = \eta C`, in one dimension :math:`\eta\sigma^2/(2h)`."""
    return vectors @ (eta * (vectors.T @ c @ vectors) / (h[:, None] + h[None])) @ vectors.T


def covariance_after(
    n: Count, eta: Scalar, h: Float[Array, " d"], vectors: Float[Array, "d d"], c: Float[Array, "d d"]
) -> Float[Array, "d d"]:
    r"""Covariance after n steps from a fixed start: :math:`\eta^2C_{ij}(1-(\rho_i\rho_j)^n)/(1-\rho_i\rho_j)` in the eigenbasis."""
    rho = 1 - eta * h
    grown = 1 - (rho[:, None] * rho[None]) ** n
    return vectors @ ((vectors.T @ stationary_covariance(eta, h, vectors, c) @ vectors) * grown) @ vectors.T
