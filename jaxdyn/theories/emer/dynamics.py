r"""Training averaged over names of the vertices: of the searching layer, and of the answering layer.

Training of the searching layer, averaged over names of vertices: two numbers, their limits and their rates of growth.

The average keeps :math:`W = \mu I + \nu(\mathbb 1\mathbb 1^\top - I)`. With :math:`a_v = \sum_{(u,v)} \lambda_u`,
:math:`b_v = (\sum\lambda) D_v - a_v`, D_v the in-degree, and :math:`\xi = \lambda + \mu a + \nu b`, P its softmax:

.. math:: \dot\mu = \tfrac1n \bigl(E_G[a] - E_P[a]\bigr), \qquad \dot\nu = \tfrac1{n(n-1)} \bigl(E_G[b] - E_P[b]\bigr)

G is the demonstrated vertex p (Coconut) or P within :math:`N_{c+1}` (Coconut-BFS). Of mu alone, with
:math:`d_v = a_v \sqrt K` the number of edges from the thought and :math:`F(\mu) = E_P[d]`:

- Coconut, :math:`d_p` between the least and the largest d: :math:`\mu \to \mu^*`, the root of :math:`F(\mu^*) = d_p`, which has
  the sign of :math:`d_p - F(0)`;
- Coconut, :math:`d_p = d_{max}`: :math:`\mu \approx \frac{\sqrt K}{\Delta}\ln\frac{\Delta^2 r t}{nK}`, :math:`\Delta = d_{max} -
  d_2`, r the ratio of :math:`\sum e^{\lambda_v}` over the second level to that over the top one;
- Coconut-BFS: the same with :math:`\Delta = d_{max}`, and r from the vertices outside :math:`N_{c+1}`.

With nu free, mu is bounded if and only if :math:`(a_p, b_p)` is inside the convex hull of all :math:`(a_v, b_v)`; outside, where
a line separates it, :math:`W / \ln t` tends to the matrix of least norm with margins 1, as for any separable logistic problem.
Source: arXiv:2509.23365, Theorem 1 (the equation of mu, its limit and its rates); derived here: offsets, nu and the case of nu
free (arXiv:1710.10345 has the direction of separable problems). Time is in units of 1 over the learning rate.

A flow to t = 1e12 in log time by an implicit solver, with a tolerance that rises with the rounding errors of the field.

In :math:`s = \ln(1 + t)` the field is t times the gradient, whose rounding errors of about 1e-17 count 1e-5 at t = 1e12: near an
equilibrium no solver can do better. The time is therefore solved in three parts, with absolute tolerances of 1e-8 until
t = 1e4, 1e-5 until 1e8 and 1e-3 from there on, in one compiled loop. What converges is driven to its limit all the same: an
implicit step divides the errors by t again.

Training of the answering layer: how strongly it reads the thought, and how strongly the two candidates.

With K vertices in the thought, weights :math:`\lambda = 1/\sqrt K`, the logits are :math:`\lambda\mu_A + \mu_R` for the reachable
candidate, :math:`\mu_R` for the other one, :math:`\lambda\mu_A` for the thought's other vertices and 0 for the rest:

.. math:: \dot\mu_A = k_A \lambda \bigl(y_C - P(V_C)\bigr), \qquad \dot\mu_R = k_R \bigl(1 - P(c_*) - P(c_\perp)\bigr)

y_C = 1 if the label is reachable, 0 if not. Both grow without end, :math:`\mu_A \approx \sqrt K \ln(k_A t / K)` and
:math:`\mu_R \approx \ln(k_R (K-1) t)`: their direction tends to that of the largest margin, :math:`d\mu_A/d\mu_R \to \sqrt K`,
whatever the rates. Source: arXiv:2509.23365, Theorem 3 (equations); the offsets are derived. Letters: n vertices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn import flow

Scalar = Float[Array, ""]


class Law(NamedTuple):
    """An instance as the theory sees it; ``bfs`` says which loss, ``free`` is 1 where nu moves and 0 where it is frozen."""

    prior: Float[Array, " n"]  # lambda
    a: Float[Array, " n"]
    b: Float[Array, " n"]
    target: Float[Array, " n"]
    reached: Bool[Array, " n"]
    bfs: Bool[Array, ""]
    free: Scalar


def law(thought: Array, edges: Array, target: Array, reached: Array, bfs: Bool[Array, ""] | bool, free: Any) -> Law:
    """The features a and b of every vertex."""
    a = thought @ edges
    b = jnp.sum(thought) * jnp.sum(edges, 0) - a
    return Law(thought, a, b, target, reached, jnp.asarray(bfs), jnp.asarray(free, jnp.float64))


def field(t: Any, y: Float[Array, " two"], law: Law) -> Float[Array, " two"]:
    """The rates of mu and nu."""
    del t
    n = law.prior.size
    xi = law.prior + y[0] * law.a + y[1] * law.b
    aim = jnp.where(law.bfs, jax.nn.softmax(jnp.where(law.reached, xi, -jnp.inf)), law.target)
    gap = aim - jax.nn.softmax(xi)
    return jnp.stack([gap @ law.a / n, law.free * (gap @ law.b) / (n * (n - 1))])


def solve(law: Law) -> tuple[Float[Array, "T two"], Int[Array, ""]]:
    """Both numbers from zero at ``longtime.TIMES``, up to t = 1e12, by an implicit solver in log time; and the status."""
    return solve_in_log_time(field, jnp.zeros(2, jnp.float64), law)


def solve_short(law: Law, ts: Float[Array, " T"]) -> flow.Solution:
    """Both numbers from zero at the times ``ts``, the first of them 0, by an explicit solver."""
    return flow.solve(field, jnp.zeros(2, jnp.float64), ts, law, rtol=1e-9, atol=1e-11)


def mean_degree(law: Law, mu: Scalar) -> Scalar:
    r""":math:`E_P[a]` at nu = 0, which is :math:`F(\mu)/\sqrt K`."""
    return jax.nn.softmax(law.prior + mu * law.a) @ law.a


def root(law: Law, most: float = 200.0) -> Scalar:
    r"""The root of :math:`F(\mu) = d_p` by bisection of :math:`[-most, most]`; an end of it where there is none."""

    def halve(_: Any, ends: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        low, high = ends
        middle = 0.5 * (low + high)
        below = mean_degree(law, middle) < law.target @ law.a
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    low, high = jax.lax.fori_loop(0, 70, halve, (jnp.float64(-most), jnp.float64(most)))
    return 0.5 * (low + high)


def growth(law: Law) -> tuple[Scalar, Scalar]:
    r"""Slope of mu in :math:`\ln t` and the factor c of :math:`\mu \approx slope \cdot \ln(ct)`, where mu alone moves and grows."""
    n, top = law.prior.size, jnp.max(law.a)
    at_top = law.a > top - 1e-9
    second = jnp.max(jnp.where(at_top, -jnp.inf, law.a))
    delta = jnp.where(law.bfs, top, top - second)
    rest = jnp.where(law.bfs, ~law.reached, jnp.abs(law.a - second) < 1e-9)
    weight = jnp.exp(law.prior)
    ratio = jnp.sum(jnp.where(rest, weight, 0.0)) / jnp.sum(jnp.where(at_top, weight, 0.0))
    return 1 / delta, delta**2 * ratio / n


def _differences(law: Law) -> tuple[Float[Array, "n two"], Bool[Array, " n"]]:
    """(a_p - a_v, b_p - b_v) in the geometry of the full matrix, and where they are not zero."""
    n = law.prior.size
    x = jnp.stack([(law.target @ law.a - law.a) / n**0.5, (law.target @ law.b - law.b) / (n * (n - 1)) ** 0.5], -1)
    return x, jnp.sum(x**2, -1) > 1e-12


def hull_gap(law: Law) -> Scalar:
    r"""Largest angle between neighbouring differences :math:`(a_p - a_v, b_p - b_v)`, minus :math:`\pi`.

    It is below 0 where p is inside the hull, and above 0 where a line separates p from all vertices with other features.
    """
    x, different = _differences(law)
    angle = jnp.arctan2(x[:, 1], x[:, 0])
    angle = jnp.sort(jnp.where(different, angle, jnp.max(jnp.where(different, angle, -jnp.inf))))
    return jnp.max(jnp.append(jnp.diff(angle), angle[0] + 2 * jnp.pi - angle[-1])) - jnp.pi


def margin_slope(law: Law) -> Scalar:
    r"""Mu of the matrix of least norm whose margins are at least 1: the limit of :math:`\mu / \ln t` where p is separable.

    The solution of least norm has one or two active margins; all candidates are tried.
    """
    x, different = _differences(law)
    gram = x @ x.T
    det = gram.diagonal()[:, None] * gram.diagonal()[None] - gram**2
    safe = jnp.where(det > 1e-12, det, 1.0)
    i, j = jnp.meshgrid(jnp.arange(x.shape[0]), jnp.arange(x.shape[0]), indexing="ij")
    first = (gram.diagonal()[j] - gram) / safe
    pair = first[..., None] * x[i] + first.T[..., None] * x[j]
    single = x / jnp.where(different, gram.diagonal(), 1.0)[:, None]
    theta = jnp.concatenate([pair.reshape(-1, 2), single])
    known = jnp.concatenate([(det > 1e-12).ravel(), different])
    feasible = known & jnp.all((theta @ x.T >= 1 - 1e-9) | ~different, 1)
    best = theta[jnp.argmin(jnp.where(feasible, jnp.sum(theta**2, -1), jnp.inf))]
    return best[0] / x.shape[0] ** 0.5


PARTS = ((0.0, 1e1, 1e2, 1e3, 1e4), (1e4, 1e5, 1e6, 1e7, 1e8), (1e8, 1e9, 1e10, 1e11, 1e12))
TOLERANCES = (1e-8, 1e-5, 1e-3)
RELATIVE = 1e-7
TIMES = (0.0, *(t for part in PARTS for t in part[1:]))
DECADE = 2.302585092994046  # ln 10: between the last times


def solve_in_log_time(field: flow.Field, y0: PyTree, args: Any) -> tuple[PyTree, Int[Array, ""]]:
    """States at ``TIMES`` (a leading axis on every leaf) and the status of the worst part."""

    def part(y: PyTree, plan: tuple[Float[Array, " T"], Float[Array, ""]]) -> tuple[PyTree, Any]:
        ts, atol = plan
        sol = flow.solve(flow.log_time(field), y, jnp.log1p(ts), args, solver="kvaerno5", rtol=RELATIVE, atol=atol, max_steps=400)
        return sol.y_end, (jax.tree.map(lambda leaf: leaf[1:], sol.ys), sol.status)

    plans = jnp.asarray(PARTS, jnp.float64), jnp.asarray(TOLERANCES, jnp.float64)
    _, (ys, status) = jax.lax.scan(part, y0, plans)

    def joined(start: Array, leaf: Array) -> Array:
        return jnp.concatenate([start[None], leaf.reshape(-1, *leaf.shape[2:])])

    return jax.tree.map(joined, y0, ys), jnp.max(status)


class AnswerLaw(NamedTuple):
    """Vertices n, those in the thought K, rates of both numbers, and y_C."""

    n: Any
    inside: Any
    rate_a: Any
    rate_r: Any
    reachable: Any


def answer_field(t: Any, y: Float[Array, " two"], law: AnswerLaw) -> Float[Array, " two"]:
    """The rates of mu_A and mu_R."""
    del t
    lam = jnp.sqrt(1 / law.inside)
    xi = jnp.stack([lam * y[0] + y[1], y[1], lam * y[0], 0.0 * y[0]])  # c*, the other candidate, others of the thought, the rest
    count = jnp.stack([1.0, 1.0, law.inside - 1, law.n - law.inside - 1])
    p = count * jnp.exp(xi - jnp.max(xi))
    p = p / jnp.sum(p)
    missing = law.reachable * (p[1] + p[3]) - (1 - law.reachable) * (p[0] + p[2])  # y_C - P(V_C), without cancellation
    return jnp.stack([law.rate_a * lam * missing, law.rate_r * (p[2] + p[3])])


def solve_answer(law: AnswerLaw, ts: Float[Array, " T"]) -> flow.Solution:
    r"""mu_A and mu_R from zero at the times ``ts``, the first of them 0, in :math:`\ln(1+t)`."""
    law = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), law)
    return flow.solve(
        flow.log_time(answer_field), jnp.zeros(2, jnp.float64), jnp.log1p(ts), law, rtol=1e-10, atol=1e-12, max_steps=20_000
    )


def asymptote(law: AnswerLaw, ts: Float[Array, " T"]) -> Float[Array, "two T"]:
    """Leading terms of mu_A and mu_R at late times, where the label is reachable."""
    late = jnp.log(jnp.maximum(ts, 1e-300))
    mu_a = jnp.sqrt(law.inside) * (late + jnp.log(law.rate_a / law.inside))
    return jnp.stack([mu_a, late + jnp.log(law.rate_r * (law.inside - 1))])
