r"""Occam's razor: a path of zero loss from a product y * z' to its factor z', and which of the two is the smaller.

With :math:`e = [1, 0, \dots, 0]` at every frequency, e * z' is the network z' with dead nodes. Where all four sets of conditions
hold for z' (:math:`r_{kkk} = 1`, all else zero), y * z' has zero loss if :math:`r_{kkk}(y) = 1`, and so has every point of

1. c moves on a straight line to :math:`(1/(a_1b_1), 0, \dots, 0)`;
2. :math:`a_j, b_j` of the other nodes shrink to 0;
3. :math:`a_1^{1-s}, b_1^{1-s}` (principal powers) go to 1 with :math:`c_1 = 1/(a_1b_1)`,

since :math:`r_{kkk}(y) = 1` at each of them. Source: arXiv:2410.01779, theorem on Occam's razor; the explicit path, the bound for
any z' and the equilibrium under weight decay: derived. Letters: d elements, m nodes of y; spectra (3, d, m) as in ``spectrum.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex, Float, Int

from jaxdyn.data.abelian import Abelian
from jaxdyn.theories.cogo.dynamics.semiring import Element, element

NEWTON = 8


def pseudo_identity(y: Element) -> Element:
    """E in the places of y: one at the first node, zero at the others."""
    return element(jnp.zeros_like(y.z).at[..., 0].set(1), y.nodes)


def normalized(y: Element) -> Element:
    """Y with layer c divided by :math:`r_{kkk}` at every frequency, so that :math:`r_{kkk}(y) = 1`."""
    r = jnp.sum(y.z[0] * y.z[1] * y.z[2], -1).at[0].set(1)
    return y._replace(z=y.z.at[2].divide(r[:, None]))


def leading(y: Element, group: Abelian) -> Element:
    r"""Y with a node first along whose powers the path can go; all NaN if there is no such node.

    It is the node whose smallest :math:`|a_{1k} b_{1k}|` is largest, among those with positive a and b at the real characters,
    where the path must stay real and away from 0.
    """
    size = jnp.min(jnp.abs(y.z[0, 1:] * y.z[1, 1:]), 0)
    able = y.nodes & jnp.all(y.z[:2, group.real].real > 0, (0, 1)) & (size > 0)
    chosen = jnp.argmax(jnp.where(able, size, -1.0))
    order = jnp.argsort(jnp.arange(y.nodes.size) != chosen, stable=True)
    return Element(jnp.where(jnp.any(able), y.z[..., order], jnp.nan), y.nodes[order])


def path(y: Element, t: Float[Array, ""]) -> Element:
    """The factor at time t of the path, from y at 0 to the pseudo-identity at 3; each leg takes one unit of time.

    Args:
        y: start, with :math:`r_{kkk}(y) = 1`, its first node as :func:`leading` chooses it.
        t: time, 0 to 3.
    """
    one, two, three = jnp.clip(t, 0, 1), jnp.clip(t - 1, 0, 1), jnp.clip(t - 2, 0, 1)
    first = jnp.arange(y.nodes.size) == 0
    lead = jnp.exp((1 - three) * jnp.log(y.z[:2, 1:, 0]))  # no zero mode: its logarithm would be infinite
    rest = jnp.where(first, 0, (1 - two) * y.z[:2, 1:])
    ab = rest.at[..., 0].set(lead)
    c = (1 - one) * y.z[2, 1:] + one * jnp.where(first, 1 / (lead[0] * lead[1])[:, None], 0)
    return y._replace(z=y.z.at[:, 1:].set(jnp.concatenate([ab, c[None]])))


def straight(y: Element, t: Float[Array, ""]) -> Element:
    """The factor on the straight line from y to the pseudo-identity, for the same times: not a path of zero loss."""
    return y._replace(z=(1 - t / 3) * y.z + t / 3 * pseudo_identity(y).z)


def _square(z: Complex[Array, "3 d q"]) -> Float[Array, "3 d"]:
    return jnp.sum(jnp.square(z.real) + jnp.square(z.imag), -1)


def product_energy(y: Element, x: Element) -> Float[Array, ""]:
    r"""Fourier norm squared of y * x: :math:`\sum_{pk} \|y_{pk}\|^2 \|x_{pk}\|^2`."""
    return jnp.sum(_square(y.z) * _square(x.z))


def least_energy(x: Element) -> Float[Array, ""]:
    r"""No y * x with :math:`r_{kkk}(y) = 1` has a Fourier norm squared below :math:`3 \sum_k \prod_p \|x_{pk}\|^{2/3}`.

    By Hölder's inequality :math:`\prod_p \|y_{pk}\| \ge |r_{kkk}(y)| = 1`, and a sum of three is at least thrice the root of their
    product. The bound is :math:`\|x\|^2` itself if the three layers of x have equal norms at every frequency; else a y of order one
    that balances them makes the product smaller than x.
    """
    return 3 * jnp.sum(jnp.cbrt(jnp.prod(_square(x.z), 0)))


def imbalance(x: Element) -> Float[Array, ""]:
    """Largest relative difference of the squared norms of two layers at a frequency; 0 if all three are equal at each."""
    square = _square(x.z)[:, 1:]
    return jnp.max(jnp.max(square, 0) / jnp.min(square, 0)) - 1


def at_equilibrium(energy: float | Float[Array, ""], decay: Float[Array, ""], group: Abelian) -> Float[Array, ""]:
    r"""By which factor s weight decay shrinks the weights of a zero-loss network in all three layers.

    There :math:`L = \frac{d-1}d (1 - s^3)^2`; with the decay :math:`\frac{\lambda}2 \|w\|^2 = \frac{\lambda d}2 E s^2` of
    coupled decay the sum is stationary at :math:`6 \frac{d-1}d s (1 - s^3) = \lambda d E`. For balanced z' of norm squared E.
    """
    target = jnp.asarray(decay * group.order**2 * energy / (6 * (group.order - 1)))

    def step(_: Int[Array, ""], s: Float[Array, ""]) -> Float[Array, ""]:
        return s - (s - s**4 - target) / (1 - 4 * s**3)

    return jax.lax.fori_loop(0, NEWTON, step, jnp.ones_like(target))
