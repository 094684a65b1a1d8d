r"""What the trigonometric algorithm leaves of the logits, and what it takes away: progress measures of modular addition.

With :math:`w_k = 2\pi k / p` and k = 1 ... (p-1)/2 the algorithm's logits of the pair (a, b) are

.. math:: \hat z_c(a, b) = \sum_{k \in K} \alpha_k \cos\bigl(w_k (a + b - c)\bigr),

for a few *key* frequencies K. From the logits z of all pairs

- :math:`P_k z` is their part along :math:`\cos w_k(a+b)` and :math:`\sin w_k(a+b)`, functions of the pair, for each c;
- the *restricted* loss is that of :math:`\bar z + \sum_{k\in K} P_k z` (:math:`\bar z` the mean over pairs), the *excluded* loss
  that of :math:`z - \sum_{k\in K} P_k z`; chance is ln p.

A part along functions of s = a + b is a Fourier component of the mean of z over the p pairs with that sum.
Source: arXiv:2301.05217, section 5 (measures), sections 3-4 (algorithm). Letters: p residues (odd), f = (p-1)/2 frequencies,
n pairs. Departure: the paper picks the key frequencies by eye; here they are the fewest that carry a given share of
:math:`\sum_k \alpha_k^2`.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxdyn.errors import UsageError


def frequencies(p: int) -> Int[Array, " f"]:
    """The frequencies 1 ... (p-1)/2 of real waves on Z_p, p odd.

    Raises:
        UsageError: if p is even or below 3.
    """
    if p < 3 or p % 2 == 0:
        raise UsageError(f"p={p} is not allowed: the waves of Z_p are paired for odd p, at least 3")
    return jnp.arange(1, (p + 1) // 2, dtype=jnp.int32)


def waves(p: int, x: Int[Array, "*n"], dtype: str = "float32") -> Float[Array, "f 2 *n"]:
    r"""The real Fourier basis without its constant: :math:`\cos w_k x` and :math:`\sin w_k x` for every frequency.

    Phases are reduced modulo p as integers, so that float32 loses nothing.

    Raises:
        UsageError: if p is even or below 3.
    """
    turns = jnp.multiply.outer(frequencies(p), x) % p
    angle = (2 * jnp.pi / p) * turns.astype(dtype)
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1)


def spectrum(embed: Float[Array, "p d"]) -> Float[Array, " f"]:
    r"""Size of every frequency in the embedding of the residues.

    .. math:: \sqrt{2/p}\;\bigl\|\bigl(\sum_a E_a \cos w_k a,\ \sum_a E_a \sin w_k a\bigr)\bigr\|

    Their squares and that of the mean add up to the embedding's own (Parseval).
    """
    p = len(embed)
    parts = jnp.einsum("fta,ad->ftd", waves(p, jnp.arange(p), embed.dtype.name), embed)
    return jnp.sqrt(2 / p * jnp.sum(jnp.square(parts), (1, 2)))


def gini(x: Float[Array, " n"]) -> Float[Array, ""]:
    r"""Gini coefficient of non-negative numbers, in rising order :math:`x_{(1)} \le \dots \le x_{(n)}`.

    .. math:: 1 - 2 \sum_i \frac{x_{(i)}}{\sum_j x_j} \cdot \frac{n - i + 1/2}{n}

    0 if all are equal, :math:`1 - 1/n` if all but one are zero. Source: Hurley and Rickard 2009, as in the paper.
    """
    n = len(x)
    weight = (n - jnp.arange(1, n + 1, dtype=x.dtype) + 0.5) / n
    return 1 - 2 * jnp.sum(jnp.sort(x) * weight) / jnp.sum(x)


def amplitudes(z: Float[Array, "n p"], pairs: Int[Array, "n 2"], share: Bool[Array, " n"] | None = None) -> Float[Array, " f"]:
    r"""Least-squares amplitudes of the algorithm's logits on these pairs (or those of them in ``share``).

    .. math:: \alpha_k = \frac{2}{np} \sum_{(a,b)} \sum_c z_c(a,b) \cos\bigl(w_k(a + b - c)\bigr)

    On any set of pairs the waves are orthogonal: for each pair they are so as functions of c.
    """
    return _onto_cosines(_profile(z, pairs, share))


def amplitudes_by_sum(total: Float[Array, "s p"], count: Int[Array, ""]) -> Float[Array, " f"]:
    """The same from the sum of the logits over the pairs with each a + b, and the number of all pairs."""
    a = jnp.arange(len(total), dtype=jnp.int32)
    turned = jnp.take_along_axis(total, (a[:, None] + a) % len(total), 1)
    return _onto_cosines(jnp.sum(turned, 0) / count.astype(total.dtype))


def _onto_cosines(profile: Float[Array, " p"]) -> Float[Array, " f"]:
    p = len(profile)
    return 2 / p * jnp.einsum("fd,d->f", waves(p, jnp.arange(p), profile.dtype.name)[:, 0], profile)


def _profile(z: Float[Array, "n p"], pairs: Int[Array, "n 2"], share: Bool[Array, " n"] | None) -> Float[Array, " p"]:
    """Mean over pairs of the logit of a + b + x, for every x."""
    p = z.shape[1]
    answers = (jnp.sum(pairs, 1)[:, None] + jnp.arange(p, dtype=jnp.int32)) % p
    turned = jnp.take_along_axis(z, answers, 1)
    return (
        jnp.mean(turned, 0) if share is None else jnp.sum(jnp.where(share[:, None], turned, 0), 0) / jnp.sum(share).astype(z.dtype)
    )


def key_frequencies(alpha: Float[Array, " f"], share: float) -> Bool[Array, " f"]:
    r"""The fewest frequencies with that share of :math:`\sum_k \alpha_k^2`."""
    energy = jnp.square(alpha)
    order = jnp.argsort(-energy)
    before = jnp.cumsum(energy[order]) - energy[order]
    return jnp.zeros(len(alpha), bool).at[order].set(before < share * jnp.sum(energy))


def trig_logits(alpha: Float[Array, " f"], pairs: Int[Array, "n 2"], p: int) -> Float[Array, "n p"]:
    r"""The algorithm's logits :math:`\sum_k \alpha_k \cos(w_k(a + b - c))`."""
    return trig_logits_by_sum(alpha, p)[jnp.sum(pairs, 1) % p]


def trig_logits_by_sum(alpha: Float[Array, " f"], p: int) -> Float[Array, "s p"]:
    """The same, a row for each sum."""
    table = jnp.einsum("f,fd->d", alpha, waves(p, jnp.arange(p), alpha.dtype.name)[:, 0])
    a = jnp.arange(p, dtype=jnp.int32)
    return table[(a[:, None] - a) % p]


def numbers_by_sum(p: int) -> Int[Array, "s p"]:
    """Numbers of the pairs (b running fastest) by their sum, a = 0 ... p-1 in each row."""
    a = jnp.arange(p, dtype=jnp.int32)
    return p * a + (a[:, None] - a) % p


def by_sum(z: Float[Array, "pairs p"]) -> Float[Array, "s p"]:
    """Mean of the logits of all pairs (b running fastest) over the p pairs of each sum s."""
    return jnp.mean(z[numbers_by_sum(z.shape[1])], 1)


def key_part(z: Float[Array, "pairs p"], keys: Bool[Array, " f"]) -> Float[Array, "pairs p"]:
    r"""The key frequencies' part :math:`\sum_{k\in K} P_k z` of the logits of all pairs (b running fastest)."""
    a = jnp.arange(z.shape[1], dtype=jnp.int32)
    return key_part_by_sum(by_sum(z), keys)[(a[:, None] + a) % len(a)].reshape(z.shape)


def key_part_by_sum(means: Float[Array, "s p"], keys: Bool[Array, " f"]) -> Float[Array, "s p"]:
    """The same from the mean over the pairs of each sum, a row for each sum."""
    wave = waves(len(means), jnp.arange(len(means)), means.dtype.name)
    return (2 / len(means) * jnp.einsum("f,fts,ftx->sx", keys.astype(means.dtype), wave, wave)) @ means


def restricted(z: Float[Array, "pairs p"], keys: Bool[Array, " f"]) -> Float[Array, "pairs p"]:
    """The logits with nothing kept but the key frequencies of a + b and the mean over pairs."""
    return key_part(z, keys) + jnp.mean(z, 0)


def excluded(z: Float[Array, "pairs p"], keys: Bool[Array, " f"]) -> Float[Array, "pairs p"]:
    """The logits without the key frequencies of a + b."""
    return z - key_part(z, keys)
