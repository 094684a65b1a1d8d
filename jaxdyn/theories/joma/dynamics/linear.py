r"""Linear activation, with one node and with many.

Closed forms of JoMA's linear activation: Theorem 2, its extension to many nodes, blow-up, and linear attention.

With stationary gradients and exp attention :math:`b_l = x_l e^{z_l}/A` (equal rates, temperature 1) the invariant
:math:`z_l = \tfrac12\|V_l\|^2 + c_l` turns the flow into one autonomous equation per token,

.. math:: \dot V_l = \tfrac1A\, e^{c_l + \frac12 \|V_l\|^2}\, \Delta_l , \qquad \Delta_l = \mathbb E[g\,x_l] ,

so each row moves on the line :math:`V_l(0) + a_l\Delta_l`. Its position on that line,
:math:`w_l = V_l\cdot\Delta_l/\|\Delta_l\|`, obeys :math:`\dot w_l = \rho_l\, e^{w_l^2/2}` with
:math:`\rho_l = \|\Delta_l\|\,e^{z_l(0) - w_l(0)^2/2}/A`, hence

.. math:: \operatorname{erf}(w_l/\sqrt2) = \operatorname{erf}(w_l(0)/\sqrt2) + \sqrt{2/\pi}\;\rho_l\,t .

Source: arXiv:2310.00535, Theorem 2 (one node, zero start) and the low-rank statement for K > 1. Letters: M tokens, K nodes,
A constant of the attention, p = w(0), t* the first blow-up, ``remaining`` = 1 - t/t*.
Departures: erf(v/sqrt 2), where the talks print erf(v/2); the exponential outside the row sum; any start (z(0), V(0)).
Near t* everything is computed from the complement 1 - erf, which the remaining time gives without cancellation.

JoMA with many nodes whose upper gradient vanishes at a critical point: weights, their speed and how its rank falls and returns.

.. math:: \dot V_l = e^{\|V_l\|^2/2} (\mu_l - V_l) \ \text{(inserted)}, \qquad
   \dot V_l = p_l\, e^{z_l} (y_l - e^{z_l} V_l), \quad z_l = \tfrac12(\|V_l\|^2 - \|V_l(0)\|^2) \ \text{(squared error)}

Attention makes rows with a large limit fast: while they move, :math:`\dot V` is nearly of rank one; once they have arrived, the
others are left, and its rank returns. Source: arXiv:2310.00535, sections 3 and 4, with Theorem 1's logits for K nodes; the second
form, a block trained on one token a sample, is derived: attention enters forward and backward.
Letters: m tokens, k nodes, t times; mu (m, k) critical point, y (m, k) mean targets, p (m,) shares of the samples.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import erf, erfc, erfinv
from jaxtyping import Array, Float

from jaxdyn import flow
from jaxdyn.theories.joma.dynamics.nonlinear import orbit

HELD = 8.0  # where the row-sum form keeps a row that has passed its own blow-up
SQRT2 = math.sqrt(2.0)
EDGE = 1e-15  # smallest 1 - erf: beyond a blow-up a row stays there, at norm 7.9


class Rows(NamedTuple):
    """The rows of V as independent movers, each on its own line."""

    unit: Float[Array, "M K"]  # Δ_l / ‖Δ_l‖, zero where Δ_l = 0
    across: Float[Array, "M K"]  # the part of V_l(0) that is orthogonal to Δ_l; it never moves
    along: Float[Array, " M"]  # p_l = w_l(0)
    rate: Float[Array, " M"]  # ρ_l


def rows(
    delta: Float[Array, "M K"], v0: Float[Array, "M K"], z0: Float[Array, " M"], scale: float | Float[Array, ""] = 1.0
) -> Rows:
    r"""The movers for saliency ``delta``, start ``(z0, v0)`` and attention constant ``scale`` = A.

    :math:`\rho_l = \|\Delta_l\| e^{z_l(0) - p_l^2/2}/A`; at zero start simply :math:`\|\Delta_l\|/A`.
    """
    norm = jnp.linalg.norm(delta, axis=-1)
    unit = delta / jnp.where(norm > 0, norm, 1.0)[:, None]
    along = jnp.sum(v0 * unit, -1)
    return Rows(unit, v0 - along[:, None] * unit, along, norm * jnp.exp(z0 - 0.5 * along**2) / scale)


def erfcinv(c: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Inverse of erfc on (0, 2), to a few units in the last place also where 1 - c rounds to 1.

    Below 1/2 Newton's method on ln erfc, which is concave: from sqrt(-ln c), to the right of the root, it descends monotonically.
    """
    small = jnp.where(c < 0.5, c, 0.25)

    def step(_: Array, x: Array) -> Array:
        return x + (jnp.log(erfc(x)) - jnp.log(small)) * erfc(x) * jnp.exp(x**2) * (0.5 * math.sqrt(math.pi))

    tail = jax.lax.fori_loop(0, 8, step, jnp.sqrt(-jnp.log(small)))
    return jnp.where(c < 0.5, tail, erfinv(1.0 - jnp.where(c < 0.5, 1.0, c)))


def blow_up_times(r: Rows) -> Float[Array, " M"]:
    r"""When each row would diverge, :math:`t_l^* = \sqrt{\pi/2}\,\operatorname{erfc}(p_l/\sqrt2)/\rho_l`; the first one is t*."""
    return math.sqrt(math.pi / 2) * erfc(r.along / SQRT2) / r.rate


def level_remaining(r: Rows, level: float | Float[Array, ""]) -> Float[Array, ""]:
    r"""``remaining`` at which the first row reaches norm ``level`` (above every starting norm): t = t* (1 - remaining).

    Row l is there when :math:`\operatorname{erfc}(w_l/\sqrt2)`, which falls linearly in time, has decreased to its value at
    :math:`w_l^2 = \text{level}^2 - \|V_{l\perp}\|^2`.
    """
    w = jnp.sqrt(level**2 - jnp.sum(r.across**2, -1))
    times = blow_up_times(r)
    share = jnp.min(times) / times
    return jnp.max(1.0 - (1.0 - erfc(w / SQRT2) / erfc(r.along / SQRT2)) / share)


def _inverse(u: Float[Array, "*shape"], complement: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The x with erf(x) = u, where the complement 1 - u is given to more digits than u has."""
    inner = erfinv(jnp.where(u < 0.5, u, 0.0))
    return jnp.where(u < 0.5, inner, erfcinv(jnp.where(u < 0.5, 1.0, complement)))


def _along(r: Rows, remaining: Float[Array, ""]) -> Float[Array, " M"]:
    times = blow_up_times(r)
    share, behind = jnp.min(times) / times, erfc(r.along / SQRT2)
    u = erf(r.along / SQRT2) + (1.0 - remaining) * share * behind
    return SQRT2 * _inverse(u, jnp.maximum(((1.0 - share) + remaining * share) * behind, EDGE))


def position(r: Rows, remaining: Float[Array, ""]) -> Float[Array, "M K"]:
    r"""V at time :math:`t = t^*(1 - \text{remaining})`: :math:`V_{l\perp} + w_l(t)\,\Delta_l/\|\Delta_l\|`."""
    return r.across + _along(r, remaining)[:, None] * r.unit


def velocity(r: Rows, v: Float[Array, "*t M K"]) -> Float[Array, "*t M K"]:
    r"""dV/dt at V: :math:`\rho_l\,e^{w_l^2/2}\,\Delta_l/\|\Delta_l\|`."""
    w = jnp.sum(v * r.unit, -1)
    return (r.rate * jnp.exp(0.5 * w**2))[..., None] * r.unit


def limits(r: Rows) -> Float[Array, " M"]:
    r"""Where :math:`\operatorname{erf}(w_l/\sqrt2)` stands at t*: winner 1; from zero start :math:`\|\Delta_l\|/\max\|\Delta\|`."""
    times = blow_up_times(r)
    return erf(r.along / SQRT2) + jnp.min(times) / times * erfc(r.along / SQRT2)


def ratio_law(r: Rows, winner: Float[Array, ""], width: float | Float[Array, ""] = SQRT2) -> Float[Array, " M"]:
    r"""Positions of all rows from the position of the row that blows up first, whatever the clock (Theorem 2).

    :math:`[\operatorname{erf}(w_l/s) - \operatorname{erf}(p_l/s)]/\rho_l` is the same for all l, with s = ``width``: sqrt 2 is
    right, 2 is the printed form. A wrong law may ask for an erf beyond 1; it is cut there.
    """
    first = jnp.argmin(blow_up_times(r))
    pace, behind = r.rate / r.rate[first], erfc(r.along / width)
    u = erf(r.along / width) + pace * (erf(winner / width) - erf(r.along[first] / width))
    complement = (behind - pace * behind[first]) + pace * erfc(winner / width)
    return width * _inverse(u, jnp.maximum(complement, EDGE))


def row_sum_velocity(
    delta: Float[Array, "M K"],
    v: Float[Array, "*t M K"],
    scale: float | Float[Array, ""] = 1.0,
    used: float | Float[Array, ""] | None = None,
) -> Float[Array, "*t M K"]:
    r"""dV/dt in the printed form, exponential inside the row sum: :math:`\tfrac1A\,\mathrm{diag}(\exp(V\circ V/2)\,1)\,\Delta`.

    ``used``: how many of the K columns are nodes (all); the others are zero in ``delta`` and ``v``.
    """
    return _row_sum(v, used)[..., None] * delta / scale


def _row_sum(v: Float[Array, "*t M K"], used: float | Float[Array, ""] | None) -> Float[Array, "*t M"]:
    idle = 0.0 if used is None else v.shape[-1] - used
    return jnp.sum(jnp.exp(0.5 * jnp.square(v)), -1) - idle  # an idle column would count as exp(0)


def row_sum_position(
    delta: Float[Array, "M K"],
    t: Float[Array, " t"],
    scale: float | Float[Array, ""] = 1.0,
    used: float | Float[Array, ""] | None = None,
    points: int = 2048,
) -> Float[Array, "t M K"]:
    r"""V at times t from zero start in the printed form (no row of ``delta`` may be zero).

    Row l moves along Δ_l; it has gone the distance s at time
    :math:`\tfrac{A}{\|\Delta_l\|}\int_0^s ds'/\sum_k e^{s'^2 \Delta_{lk}^2/2\|\Delta_l\|^2}`, tabulated by the trapezoid rule and
    inverted by interpolation (to about 1e-5). A row that has passed its own blow-up stays at norm 8. ``used`` as in
    :func:`row_sum_velocity`.
    """
    norm = jnp.linalg.norm(delta, axis=-1)
    unit = delta / norm[:, None]
    s = jnp.linspace(0.0, HELD, points, dtype=delta.dtype)
    slowness = 1.0 / _row_sum(s[:, None, None] * unit, used)
    steps = 0.5 * (s[1] - s[0]) * (slowness[1:] + slowness[:-1])
    arrival = jnp.concatenate([jnp.zeros_like(steps[:1]), jnp.cumsum(steps, 0)]) * scale / norm
    gone = jax.vmap(lambda when: jnp.interp(t, when, s), in_axes=1, out_axes=1)(arrival)
    return gone[..., None] * unit


def hyperbolic(
    delta: Float[Array, "M K"],
    v0: Float[Array, "M K"],
    z0: Float[Array, " M"],
    t: Float[Array, ""],
) -> tuple[Float[Array, " M"], Float[Array, "M K"]]:
    r"""(z, V) at time t under linear attention b = x∘z: no blow-up.

    :math:`\dot V_l = \Delta_l z_l,\ \dot z_l = \Delta_l\cdot V_l` gives
    :math:`w_l = p_l\cosh\|\Delta_l\|t + z_l(0)\sinh\|\Delta_l\|t` and
    :math:`z_l = z_l(0)\cosh\|\Delta_l\|t + p_l\sinh\|\Delta_l\|t`.
    """
    r = rows(delta, v0, z0)
    norm = jnp.linalg.norm(delta, axis=-1)
    grow, lean = jnp.cosh(norm * t), jnp.sinh(norm * t)
    return z0 * grow + r.along * lean, r.across + (r.along * grow + z0 * lean)[:, None] * r.unit


def softmax_velocity(
    delta: Float[Array, "M K"], z: Float[Array, " M"], b_bar: Float[Array, " M"], tau: float | Float[Array, ""]
) -> Float[Array, "M K"]:
    r"""dV/dt under softmax attention, gradients stationary: :math:`\Delta_l\,e^{z_l/\tau}/\sum_j \bar b_j e^{z_j/\tau}` for row l.

    ``z`` are the logits, by the softmax law of Theorem 1; b̄ is the mean attention at z = 0, Δ the saliency there. No
    blow-up: the factor never exceeds 1/min b̄.
    """
    e = jnp.exp((z - jnp.max(z)) / tau)
    return delta * (e / (b_bar @ e))[:, None]


def inserted(mu: Float[Array, "m k"], ts: Float[Array, " t"]) -> tuple[Float[Array, "t m k"], Float[Array, "t m k"]]:
    r"""V and its speed from V = 0: row l is :math:`a_l \mu_l`, and :math:`-\ln(1 - a_l)` the orbit of Theorem 4."""
    kappa = 0.5 * jnp.sum(jnp.square(mu), -1)
    s = orbit(jnp.broadcast_to(ts[:, None], (ts.size, kappa.size)), kappa)
    a = -jnp.expm1(-s)
    return a[..., None] * mu, (jnp.exp(-s + kappa * a * a))[..., None] * mu


def _speed(v: Float[Array, "m k"], start: Array, y: Array, p: Array) -> Float[Array, "m k"]:
    gain = jnp.exp(0.5 * (jnp.sum(jnp.square(v), -1) - jnp.sum(jnp.square(start), -1)))[:, None]
    return p[:, None] * gain * (y - gain * v)


def trained(
    start: Float[Array, "m k"], y: Float[Array, "m k"], p: Float[Array, " m"], ts: Float[Array, " t"]
) -> tuple[flow.Solution, Float[Array, "t m k"]]:
    """V under squared error, and its speed."""
    solution = flow.solve(lambda _, v, args: _speed(v, *args), start, ts, (start, y, p), rtol=1e-9, atol=1e-12)
    return solution, jax.vmap(lambda v: _speed(v, start, y, p))(solution.ys)


def lowrank_limits(y: Float[Array, "m k"], iterations: int = 40) -> Float[Array, "m k"]:
    r"""Where rows from zero end under squared error: along y, at :math:`\|\mu\| e^{\|\mu\|^2/2} = \|y\|`.

    Newton's method on :math:`u + \ln u = 2 \ln\|y\|` in :math:`\ln u`, :math:`u = \|\mu\|^2`, which is convex and increasing.
    """
    size = jnp.linalg.norm(y, axis=-1)
    goal = 2 * jnp.log(size)

    def newton(_: object, x: Array) -> Array:
        return x - (jnp.exp(x) + x - goal) / (jnp.exp(x) + 1)

    u = jnp.exp(jax.lax.fori_loop(0, iterations, newton, jnp.zeros_like(goal)))
    return y * (jnp.sqrt(u) / size)[:, None]


def unattended(
    start: Float[Array, "m k"], y: Float[Array, "m k"], p: Float[Array, " m"], ts: Float[Array, " t"]
) -> Float[Array, "t m k"]:
    """The speed of V under squared error where attention does not learn: each row decays at the rate p."""
    return jnp.exp(-p * ts[:, None])[..., None] * p[:, None] * (y - start)
