r"""The weights' scaled Fourier transform, and the potentials through which alone the loss depends on it.

.. math:: w_{a}[:,j] = \sum_k z_{akj} \varphi_k, \quad w_{b}[:,j] = \sum_k z_{bkj} \varphi_k, \quad
    w_{c}[:,j] = \sum_k z_{ckj} \overline{\varphi_k}

Weights are real if and only if :math:`z_{p,-k,j} = \overline{z_{pkj}}`. The sum potentials are
:math:`r_{k_1k_2k} = \sum_j z_{ak_1j} z_{bk_2j} z_{ckj}` and :math:`r_{pk_1k_2k} = \sum_j z_{pk_1j} z_{pk_2j} z_{ckj}`, p in a, b.
Source: arXiv:2410.01779, section 3, with the transform's constants made explicit. Letters: d elements, q nodes; spectra are one
array (3, d, q) with layers a, b, c.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float

from jaxdyn.data.abelian import Abelian

_EXACT = jax.lax.Precision.HIGHEST


def _characters(group: Abelian, dtype: jnp.dtype) -> Complex[Array, "d d"]:
    return jnp.asarray(group.characters, jnp.result_type(dtype, jnp.complex64))


def transform(w: Float[Array, "3 d q"], group: Abelian) -> Complex[Array, "3 d q"]:
    r""":math:`z_{pkj} = \frac1d \sum_m w_p[m,j] \overline{\varphi_k(m)}` for a and b, without the conjugation for c."""
    chi = _characters(group, w.dtype)
    z = jnp.einsum("km,pmj->pkj", jnp.conj(chi), w.astype(chi.dtype), precision=_EXACT) / group.order
    return z.at[2].set(jnp.conj(z[2]))


def inverse(z: Complex[Array, "3 d q"], group: Abelian) -> Float[Array, "3 d q"]:
    """The real weights of a Hermitian spectrum (of any other: the real part)."""
    chi = _characters(group, z.dtype)
    z = z.at[2].set(jnp.conj(z[2]))
    return jnp.einsum("km,pkj->pmj", chi, z, precision=_EXACT).real


def negated(z: Complex[Array, "3 d q"], group: Abelian) -> Complex[Array, "3 d q"]:
    """The conjugate of z_{p,-k,j}: equal to z if and only if the weights are real."""
    return jnp.conj(z[:, jnp.asarray(group.negative)])


def potentials(z: Complex[Array, "3 d q"]) -> Complex[Array, "d d d"]:
    """r_{k1 k2 k}: indices k1, k2, k."""
    return jnp.einsum("aj,bj,cj->abc", z[0], z[1], z[2], precision=_EXACT)


def autopotentials(z: Complex[Array, "3 d q"]) -> Complex[Array, "2 d d d"]:
    """r_{p k1 k2 k} with both factors of one layer: p = a, b, then k1, k2, k."""
    return jnp.einsum("paj,pbj,cj->pabc", z[:2], z[:2], z[2], precision=_EXACT)


def sums(auto: Complex[Array, "2 d d d"], group: Abelian) -> Complex[Array, "2 d d"]:
    r""":math:`S_{p,m,k} = \sum_{k'} r_{p,k',m-k',k}` over all k': indices p, m, k."""
    other = jnp.asarray(group.add)[:, jnp.asarray(group.negative)]  # [m, k'] -> m - k'
    first = jnp.arange(group.order)[None]
    return jnp.sum(auto[:, first, other], 2)


class Terms(NamedTuple):
    """Parts of d (L - 1 + 1/d) in the paper's scale, each summed over k != 0."""

    target: Float[Array, ""]  # -2 Re r_kkk
    cross: Float[Array, ""]  # |r_{k1 k2 k}|^2, k1, k2 != 0
    mean: Float[Array, ""]  # the output's mean over both operands
    one: Float[Array, ""]  # the parts of the output that depend on one operand alone


def terms(z: Complex[Array, "3 d q"], group: Abelian) -> Terms:
    r"""The loss over all pairs in potentials, for any spectrum.

    .. math:: \ell_k = -2\,\mathrm{Re}\, r_{kkk} + \sum_{k_1,k_2 \ne 0} |r_{k_1k_2k}|^2
        + \Bigl|r_{00k} + \tfrac12 \sum_p S_{p,0,k}\Bigr|^2
        + \sum_{m \ne 0} \Bigl( |r_{m0k} + \tfrac12 S_{a,m,k}|^2 + |r_{0mk} + \tfrac12 S_{b,m,k}|^2 \Bigr)

    Source: arXiv:2410.01779, Theorem 1, with the zero modes of a and b included (derived).
    """
    r, s = potentials(z), sums(autopotentials(z), group)
    return Terms(
        target=-2 * jnp.sum(jnp.einsum("kkk->k", r)[1:].real),
        cross=_square(r[1:, 1:, 1:]),
        mean=_square(r[0, 0, 1:] + (s[0, 0, 1:] + s[1, 0, 1:]) / 2),
        one=_square(r[1:, 0, 1:] + s[0, 1:, 1:] / 2) + _square(r[0, 1:, 1:] + s[1, 1:, 1:] / 2),
    )


def loss(z: Complex[Array, "3 d q"], group: Abelian) -> Float[Array, ""]:
    """L over all pairs, paper scale, from the terms."""
    return sum(terms(z, group)) / group.order + 1 - 1 / group.order


def _square(x: Complex[Array, "..."]) -> Float[Array, ""]:
    return jnp.sum(jnp.square(x.real) + jnp.square(x.imag))
