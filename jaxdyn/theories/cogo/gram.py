r"""The loss from Gram matrices of the weights: O(q^2 d) in place of the O(q d^3) of all pairs, and equal to it.

With a, b and c centred over the group (:math:`\tilde a_j(g) = a_j(g) - \bar a_j`, the centred c scaled by s), the squared output
splits into four parts that are orthogonal over all pairs, as in an analysis of variance:

.. math:: \|\textstyle\sum_j c_j m_j\|^2 + \tfrac1d \|f_a c^\top\|^2 + \tfrac1d \|f_b c^\top\|^2
    + \tfrac4{d^2} \sum_{jl} (\tilde a^\top\tilde a)_{jl} (\tilde b^\top\tilde b)_{jl} (c^\top c)_{jl}

with the means :math:`m = \overline{a^2} + \overline{b^2} + 2\bar a\bar b`, the parts of one operand
:math:`f_a = a^2 - \overline{a^2} + 2\tilde a\bar b` and :math:`f_b` likewise; the target's part is
:math:`-4 \sum_{k\ne0} \sum_j \mathrm{Re}\, z_{akj} z_{bkj} z_{ckj}`. A subset of pairs is all pairs minus the others, which are
summed directly. Source: derived; in spectra the parts are those of :func:`spectrum.terms`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxdyn.data.abelian import Abelian
from jaxdyn.theories.cogo.model import Scale, factor, loss_at


@jax.custom_vjp
def overlap(a: Float[Array, "d q"], b: Float[Array, "d q"], c: Float[Array, "d q"]) -> Float[Array, ""]:
    r"""Sum over j, l of :math:`(a^\top a)_{jl} (b^\top b)_{jl} (c^\top c)_{jl}`.

    Its derivative is written out, :math:`\partial/\partial a = 2 a\,(b^\top b \circ c^\top c)`: an automatic one does not know that
    the matrices are symmetric, makes each product twice and is three times slower.
    """
    return _overlap_forward(a, b, c)[0]


def _overlap_forward(*layers: Float[Array, "d q"]) -> tuple[Float[Array, ""], tuple]:
    grams = tuple(x.T @ x for x in layers)
    return jnp.sum(grams[0] * grams[1] * grams[2]), (layers, grams)


def _overlap_backward(saved: tuple, change: Float[Array, ""]) -> tuple[Float[Array, "d q"], ...]:
    (a, b, c), (aa, bb, cc) = saved
    return tuple(2 * change * (x @ others) for x, others in ((a, bb * cc), (b, aa * cc), (c, aa * bb)))


overlap.defvjp(_overlap_forward, _overlap_backward)


def _real_characters(group: Abelian, dtype: jnp.dtype) -> tuple[Float[np.ndarray, "2 p d"], Float[np.ndarray, "s d"]]:
    """Real and imaginary parts of one character of each conjugate pair, and the real characters."""
    chi = group.characters[group.pairs]
    return np.stack([chi.real, chi.imag]).astype(dtype), group.characters[group.real].real.astype(dtype)


def target(a: Float[Array, "d q"], b: Float[Array, "d q"], c: Float[Array, "d q"], group: Abelian) -> Float[Array, ""]:
    r"""Mean over pairs of :math:`\sum_j a_j(g_1) b_j(g_2) c_j(g_1 + g_2)` for centred a, b, c: a product for each frequency."""
    pairs, real = _real_characters(group, a.dtype)
    (ax, ay), (bx, by), (cx, cy) = ((pairs @ x) / group.order for x in (a, b, c))
    both = jnp.sum((ax * bx - ay * by) * cx + (ax * by + ay * bx) * cy)  # Re(conj(A) conj(B) C), of a pair once
    own = jnp.sum((real @ a) * (real @ b) * (real @ c)) / group.order**3
    return 2 * both + own


def loss(w: Float[Array, "3 d q"], group: Abelian, scale: Scale) -> Float[Array, ""]:
    """L over all pairs for quadratic activation, equal to :func:`model.loss`."""
    d = group.order
    a, b, c = w[0], w[1], factor(group, scale) * (w[2] - jnp.mean(w[2], 0))
    a0, b0, a2, b2 = jnp.mean(a, 0), jnp.mean(b, 0), jnp.square(a), jnp.square(b)
    at, bt = a - a0, b - b0
    mean = jnp.sum(jnp.square(c @ (jnp.mean(a2, 0) + jnp.mean(b2, 0) + 2 * a0 * b0)))
    one = jnp.concatenate([a2 - jnp.mean(a2, 0) + 2 * at * b0, b2 - jnp.mean(b2, 0) + 2 * bt * a0]) @ c.T
    both = overlap(at, bt, c)
    return mean + jnp.sum(jnp.square(one)) / d + 4 * both / d**2 - 4 * target(at, bt, c, group) + 1 - 1 / d


def loss_without(
    w: Float[Array, "3 d q"], group: Abelian, scale: Scale, out: Int[Array, "n 2"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """L over all pairs except those of ``out``, and L over these."""
    rest = loss_at(w, group, scale, out)
    every, count = group.order**2, len(out)
    return (every * loss(w, group, scale) - count * rest) / (every - count), rest
