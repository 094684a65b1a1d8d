r"""Fourier blocks of a node's halves: the shares of irreps, the shape of the block in one irrep, members of the largest one.

At a maximum the blocks of u and v in the irrep have rank one, of quaternionic type two equal singular values, and share their right
singular vectors (theorem 2). A member is any u in an irrep, with v = u: its energy is a sum of fourth powers of singular values.
Letters as in ``dynamics/energy.py``.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact, Int

from jaxdyn import linalg
from jaxdyn.data import irreps as fourier
from jaxdyn.data.irreps import Irreps
from jaxdyn.theories.li2.dynamics import energy


def shares(u: Float[Array, "M K"], irreps: Irreps) -> Float[Array, "K peaks"]:
    """The share of u in each irrep but the trivial one, conjugate pairs together."""
    mass = energy.masses(u, irreps)
    mass = mass / jnp.sum(mass, 1, keepdims=True)
    return jnp.stack([jnp.sum(mass[:, list(numbers)], 1) for numbers in irreps.merged[1:]], 1)


def shapes(
    u: Float[Array, "M K"], v: Float[Array, "M K"], irreps: Irreps, place: Int[Array, " K"]
) -> tuple[Float[Array, "K rank"], Float[Array, " K"], Float[Array, "K rank"]]:
    r"""Of the blocks of u and v in the irrep of number ``place`` among the peaks: singular values, alignment, predicted values.

    Singular values are those of the block of u or v that is farther from the prediction, on the unit sphere; the alignment is
    :math:`\|\hat u \hat v^*\| / \|\hat u\| \|\hat v\|`.
    """
    # blocks of all irreps, then the peaks one by one: each writes the nodes that lie in its irrep
    rank, count = int(irreps.degrees.max()), u.shape[1]
    blocks = [fourier.blocks(fourier.transform(f.T, irreps), irreps) for f in (u, v)]
    values, predicted, aligned = jnp.zeros((count, rank)), jnp.zeros((count, rank)), jnp.zeros(count)
    for i, peak in enumerate(energy.peaks(irreps)):
        x, y = (b[peak.irreps[0]] for b in blocks)
        both = jnp.linalg.norm(jnp.einsum("nab,ncb->nac", x, jnp.conj(y)), axis=(1, 2))
        both = both / (jnp.linalg.norm(x, axis=(1, 2)) * jnp.linalg.norm(y, axis=(1, 2)))
        ideal = np.zeros(rank)
        ideal[: 2 if peak.kind == "quaternionic" else 1] = 0.5**0.5 if peak.kind == "quaternionic" else 1.0
        here, s = (place == i)[:, None], _worse(_singular(x, rank), _singular(y, rank), ideal)
        values, predicted = jnp.where(here, s, values), jnp.where(here, ideal, predicted)
        aligned = jnp.where(here[:, 0], both, aligned)
    return values, aligned, predicted


def _singular(block: Inexact[Array, "K d d"], rank: int) -> Float[Array, "K rank"]:
    """Singular values, of sum of squares 1, with zeros at the end."""
    d = block.shape[-1]
    s = linalg.singular_values(block) if d > 1 else jnp.abs(block[:, 0])
    return jnp.pad(s / jnp.linalg.norm(s, axis=1, keepdims=True), ((0, 0), (0, rank - d)))


def _worse(a: Float[Array, "K rank"], b: Float[Array, "K rank"], ideal: Float[np.ndarray, " rank"]) -> Float[Array, "K rank"]:
    far = jnp.max(jnp.abs(a - ideal), 1) >= jnp.max(jnp.abs(b - ideal), 1)
    return jnp.where(far[:, None], a, b)


def members(w: Float[Array, "D K"], irreps: Irreps) -> tuple[Array, Array, Array]:
    """The start's part in the largest irrep, v = u: singular values, energy over all pairs, and the energy by singular values."""
    group, peak = irreps.group, largest(energy.peaks(irreps))
    projector = sum(irreps.projector(k) for k in peak.irreps).real
    u = jnp.asarray(projector) @ w[: group.order]
    u = u / jnp.sqrt(2 * jnp.sum(jnp.square(u), 0))
    block = fourier.blocks(fourier.transform(u.T, irreps), irreps)[peak.irreps[0]]
    s = _singular(block, int(irreps.degrees.max()))
    # scaled by the norm of u, shared by a pair's two blocks, and not by the transform's own scale
    fourth = jnp.sum(s**4, 1) * (0.5 / len(peak.irreps)) ** 2
    formula = 2 * group.order / peak.degree * len(peak.irreps) * fourth
    return s, energy.energy(energy.join(u, u, group), group), formula


def largest(peaks: tuple[energy.Peak, ...]) -> energy.Peak:
    """The peak of the irrep of largest degree, the first of them."""
    return max(peaks, key=lambda p: p.degree)
