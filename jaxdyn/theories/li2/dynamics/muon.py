r"""Muon in Li2: the effect of orthogonalised updates on nodes that learn the same feature, and on how many nodes cover all.

A node's weights are taken as a mixture of L features with strengths alpha_l, of which the fastest wins (equation 10):

.. math:: \dot\alpha_l = \mu_l \alpha_l^2 \ \text{in the unit ball}, \qquad
    \dot\alpha_l = \mu_l \alpha_l^2 - \alpha_l \sum_k \mu_k \alpha_k^3 \ \text{on the sphere}.

With :math:`r = \mu\alpha`, :math:`\frac{d}{dt} \ln (r_i / r_k) = r_i - r_k` in both: the first leader wins. From starts
with the Frechet law :math:`\Pr[\alpha \leq x] = e^{-x^{-a}}` that is feature l with probability
:math:`\mu_l^a / \sum_k \mu_k^a`.
Source: arXiv:2509.21519, Lemmas 2, 8, 9 and Theorem 8. Letters: L features, mu their strengths, a the shape of the law of starts.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

Scalar = float | Float[Array, ""]

HALVINGS = 60  # of the time at which the ball's surface is reached: below the spacing of floats
STRIDE = 0.5  # step of the sphere's flow, in units of one over the leader's rate


def appended(along: Float[Array, " n"], across: Float[Array, " n"]) -> Float[Array, " n"]:
    r"""Lemma 9: the last column of the polar factor of [Q, v], :math:`v_\perp / \|v_\perp\| + v_\parallel / (1 + \|v_\perp\|)`.

    Q has orthonormal columns, v the part ``along`` in their span and ``across`` it.
    """
    size = jnp.linalg.norm(across)
    return across / size + along / (1 + size)


def appended_error(along: Float[Array, "*m"], across: Float[Array, "*m"]) -> Float[Array, "*m"]:
    r"""How far :func:`appended` is off, :math:`\|v_\parallel\|^2 / 2(1 + \|v_\perp\|)^2` to leading order in :math:`v_\parallel`.

    The column is exactly :math:`(v_\parallel + (1 + b) e) / \sqrt{(1 + b)^2 + \|v_\parallel\|^2}`, with :math:`v_\perp = b e`, e
    of norm one: in the plane of :math:`v_\parallel` and e the polar factor of a 2 by 2 matrix is a rotation. So the error is
    :math:`O(\|v_\parallel\|^2)`, where the paper prints :math:`O(\|v_\perp\|^2)`.

    Args:
        along: the norm of the part in the span.
        across: the norm of the part across it.
    """
    return jnp.square(along / (1 + across)) / 2


def field(alpha: Float[Array, " L"], mu: Float[Array, " L"]) -> Float[Array, " L"]:
    """Equation 10 on the sphere."""
    grown = mu * jnp.square(alpha)
    return grown - alpha * jnp.sum(grown * alpha)


def surface(alpha: Float[Array, " L"], mu: Float[Array, " L"]) -> Float[Array, " L"]:
    r"""Where the flow in the ball, :math:`\alpha_l(t) = \alpha_l / (1 - \mu_l \alpha_l t)`, meets the sphere.

    From positive strengths; starts outside of the ball are first shrunk to norm 1/2, which leaves the order of the rates as it is.
    """
    size = jnp.linalg.norm(alpha)
    alpha = alpha * jnp.where(size < 1, 1, 0.5 / size)
    rate = mu * alpha

    def halve(_: Int[Array, ""], ends: Float[Array, " 2"]) -> Float[Array, " 2"]:
        middle = jnp.mean(ends)
        inside = jnp.linalg.norm(alpha / (1 - rate * middle)) < 1
        return jnp.where(inside, ends.at[0].set(middle), ends.at[1].set(middle))

    ends = jnp.stack([jnp.zeros((), alpha.dtype), 1 / jnp.max(rate)])
    reached = alpha / (1 - rate * jax.lax.fori_loop(0, HALVINGS, halve, ends)[0])
    return reached / jnp.linalg.norm(reached)


def run(
    alpha: Float[Array, " L"], mu: Float[Array, " L"], steps: int = 60, coupling: Float[Array, "L L"] | None = None
) -> Float[Array, " L"]:
    r"""The limit of equation 10: through the ball, then by Runge-Kutta steps of order 4 on the sphere.

    Time is counted in units of one over the leader's rate, which leaves every path as it is; there the logarithm of the leader's
    head start grows by a factor e in each unit, so that 30 units decide all but starts that agree to 10 digits.

    Args:
        alpha: the start, positive.
        mu: strengths.
        steps: of length ``STRIDE``.
        coupling: C in a further term :math:`C \alpha^2` of the field, which the theory does not have.
    """

    # the field, in the leader's time
    def slope(x: Float[Array, " L"]) -> Float[Array, " L"]:
        dx = field(x, mu)
        if coupling is not None:
            extra = coupling @ jnp.square(x)
            dx = dx + extra - x * (x @ extra)
        return dx / jnp.max(mu * jnp.abs(x))

    # from the sphere on, back to it after each step
    def step(_: Int[Array, ""], x: Float[Array, " L"]) -> Float[Array, " L"]:
        k1 = slope(x)
        k2 = slope(x + STRIDE / 2 * k1)
        k3 = slope(x + STRIDE / 2 * k2)
        k4 = slope(x + STRIDE * k3)
        x = x + STRIDE / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return x / jnp.linalg.norm(x)

    return jax.lax.fori_loop(0, steps, step, surface(alpha, mu))


def frechet(key: PRNGKeyArray, shape: Sequence[int], a: Scalar) -> Float[Array, "*shape"]:
    r"""Draws with :math:`\Pr[\alpha \leq x] = e^{-x^{-a}}`, float64."""
    return jax.random.exponential(key, tuple(shape), jnp.float64) ** (-1 / a)


def selection(mu: Float[Array, " L"], a: Scalar) -> Float[Array, " L"]:
    r"""Theorem 8: feature l wins with probability :math:`\mu_l^a / \sum_k \mu_k^a`."""
    weight = mu**a
    return weight / jnp.sum(weight)


def collect(p: Float[Array, " L"]) -> Float[Array, ""]:
    r"""Mean number of nodes that collect all features, :math:`T_0 = \sum_{\emptyset \neq C} (-1)^{|C|+1} / p(C)`.

    Nodes draw independently with probabilities p. A sum over all subsets: L up to about 15. Source: Theorem 8.
    """
    members = np.array(list(itertools.product((False, True), repeat=p.shape[0])))[1:]
    signs = np.where(members.sum(1) % 2 == 1, 1.0, -1.0)
    return jnp.sum(signs / (jnp.asarray(members, p.dtype) @ p))


def guided(t0: Scalar, features: int, a: Scalar, suppression: Scalar = 0.5) -> Scalar:
    r"""Mean number of nodes with Muon, :math:`T_a = 2^{-a} T_0 + (1 - 2^{-a}) L`.

    Features that other nodes have learned are slower by the factor ``suppression``, so that they win with :math:`2^{-a}` of
    their weight; in the waiting time for a new one, :math:`1 + w_{\text{old}} / w_{\text{new}}`, the second term shrinks by that.
    Exact for a suppression of one half; stronger ones make it an upper bound. Source: Theorem 8.
    """
    share = suppression**a
    return share * t0 + (1 - share) * features


def bound(p: Float[Array, " L"]) -> Float[Array, " 2"]:
    r"""Lower bounds of :func:`collect`: as printed, :math:`\max(1 / \min p, H_L)`, and with the factor L that the proof has.

    :math:`H_L = \sum_{l \leq L} 1/l`. With :math:`L H_L` the bound is reached by equal probabilities.
    """
    features = p.shape[0]
    harmonic = sum(1 / i for i in range(1, features + 1))
    rarest = 1 / jnp.min(p)
    return jnp.stack([jnp.maximum(rarest, harmonic), jnp.maximum(rarest, features * harmonic)])


def needed(winners: Int[Array, " N"], features: int, rounds: int) -> Float[Array, ""]:
    """Mean number of successive winners until every feature has won, over ``rounds`` rounds; inf if there are too few winners.

    Stopping after a number of rounds, not of winners, leaves the mean without a bias.
    """

    def take(carry: tuple[Array, Array, Array], winner: Int[Array, ""]) -> tuple[tuple[Array, Array, Array], None]:
        held, done, used = carry
        used = used + (done < rounds)
        held = held.at[winner].set(True)
        full = jnp.all(held)
        return (held & ~full, done + full, used), None

    start = (jnp.zeros(features, bool), jnp.int32(0), jnp.int32(0))
    _, done, used = jax.lax.scan(take, start, winners)[0]
    return jnp.where(done >= rounds, used / jnp.asarray(rounds, jnp.float64), jnp.inf)


def needed_guided(starts: Float[Array, "N L"], mu: Float[Array, " L"], suppression: Scalar, steps: int = 60) -> Float[Array, ""]:
    """Number of successive nodes until every feature is learned, if learned features are suppressed; inf if there are too few."""

    def add(carry: tuple[Array, Array], alpha: Float[Array, " L"]) -> tuple[tuple[Array, Array], None]:
        held, used = carry
        used = used + ~jnp.all(held)
        winner = jnp.argmax(run(alpha, jnp.where(held, suppression * mu, mu), steps))
        return (held.at[winner].set(True), used), None

    held, used = jax.lax.scan(add, (jnp.zeros(mu.shape[0], bool), jnp.int32(0)), starts)[0]
    return jnp.where(jnp.all(held), used.astype(mu.dtype), jnp.inf)
