r"""The attention's reduced dynamics: logits driven by a decoder that has its closed form at every moment.

.. math:: \dot z_m = -\rho\,\eta_Z\,\gamma(t) \sum_{n:\,\psi(n)=m} \text{diag}(f_n)(I - f_n f_n^\top) \sum_{n'\ne n}\beta f_{n'},
          \qquad \dot B_n = \rho\,\eta_Z\,\xi_n

Integrated over the decoder's clock u, in which time is :math:`dt = \frac{K}{\eta_Y M}(M-1+e^u)\,du` and nothing is stiff.
Source: arXiv:2305.16380, Theorems 1 and 2. Letters: D contextual tokens, K classes with laws P, R queries, T times, M tokens of the
vocabulary (``size``). rho is 1 in the paper; 1/K where each class occurs once in K steps (population gradient, SGD).

The paper writes the gradient with the attention of the moment. A decoder has learned from the attention of the past, though:
:func:`solve` with ``memory=1`` replaces :math:`u f_n` by :math:`G_n = \int f_n\,du`, and then the class's own term,
M - 1 times as strong as that of another class, no longer drops out:

.. math:: g_n = \frac{1}{M-1+e^u}\Bigl[(M-1)\,G_n - \sum_{n'\ne n} G_{n'}\Bigr]
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxdyn import flow
from jaxdyn.theories.snap.dynamics.clock import clock, miss
from jaxdyn.theories.snap.dynamics.gradient import attention, beta, gamma, logit_rate, unit

Number = float | Float[Array, ""]


class Problem(NamedTuple):
    """What the reduced dynamics depends on.

    Args:
        p: laws of the contextual tokens.
        member: 1 where a class (column) has a query (row).
        size: M, tokens of the vocabulary.
        classes: K, the number of equally frequent classes.
        eta_y: learning rate of the decoder.
        eta_z: learning rate of the attention.
        rho: share of the time in which a row of Z sees a class, 1 in the paper.
        steady: 1 keeps gamma as it is at u = ln M, as under a loss whose gradient never vanishes (a breach); 0 is the theory.
    """

    p: Float[Array, "K D"]
    member: Float[Array, "R K"]
    size: Number
    classes: Number
    eta_y: Number
    eta_z: Number
    rho: Number = 1.0
    steady: Number = 0.0


class Path(NamedTuple):
    """States at the save times: clock, logits, B, and the status of the solve."""

    u: Float[Array, " T"]
    z: Float[Array, "T R D"]
    b: Float[Array, "T K"]
    status: Int[Array, ""]


def queries(classes: int, per_query: Number) -> Float[Array, "K K"]:
    """Membership of classes when ``per_query`` (K_m) of them in a row share a query; rows without a class are left over."""
    row = jnp.floor(jnp.arange(classes) / per_query)
    return (row == jnp.arange(classes)[:, None]).astype(jnp.float64)


def features(z: Float[Array, "*T R D"], problem: Problem) -> Float[Array, "*T K D"]:
    """Normalised attention f_n of every class under its query's logits."""
    logits = jnp.einsum("rk,...rd->...kd", problem.member, z)
    return unit(attention(logits, jnp.broadcast_to(problem.p, logits.shape)))


def speed(u: Float[Array, "*T"], problem: Problem) -> Float[Array, "*T"]:
    """The problem's speed gamma, a function of the clock."""
    steady = jnp.log(jnp.asarray(problem.size, jnp.float64))
    return gamma(jnp.where(jnp.asarray(problem.steady) > 0, steady, u), problem.size)


def rates(
    f: Float[Array, "*T K D"], u: Float[Array, "*T"], problem: Problem
) -> tuple[Float[Array, "*T R D"], Float[Array, "*T K"]]:
    r""":math:`\dot z_m`, the equation of the module's head, and :math:`\dot B_n = \rho\eta_Z\xi_n`.

    Here :math:`\xi_n = \gamma\beta\sum_{n'\ne n} f_n \cdot f_{n'}`.
    """
    others = jnp.sum(f, -2, keepdims=True) - f
    pace = (problem.rho * problem.eta_z * speed(u, problem) * beta(problem.size))[..., None]
    z_rate = jnp.einsum("rk,...kd->...rd", problem.member, logit_rate(f, others))
    return -pace[..., None] * z_rate, pace * jnp.sum(f * others, -1)


def _time_of_clock(u: Float[Array, ""], problem: Problem) -> Float[Array, ""]:
    """dt/du."""
    return problem.classes / (problem.eta_y * problem.size * miss(u, problem.size))


def solve(
    problem: Problem,
    ts: Float[Array, " T"],
    *,
    start: Float[Array, "R D"] | None = None,
    restart: Number = jnp.inf,
    memory: Number | None = None,
    rtol: float = 1e-11,
    max_steps: int = 4096,
) -> Path:
    """Integrate the reduced dynamics from time 0; how the solve ended is in the path's status.

    Args:
        problem: laws, queries and rates.
        ts: save times, increasing from 0.
        start: logits at time 0, by default 0.
        restart: the time at which the decoder is set back to Y = 0 (a breach), while the attention stays.
        memory: 1 gives the decoder its memory of past attention (module docstring), 0 and None do without; with a number (which
            may be traced) ``steady`` has no effect.
        rtol: relative tolerance of a step.
        max_steps: the solve fails after this many steps.
    """
    start = jnp.zeros((len(problem.member), problem.p.shape[1]), jnp.float64) if start is None else start

    # save times in the decoder's clock, which runs on where the decoder is set back
    def clock_at(t: Float[Array, "*T"]) -> Float[Array, "*T"]:
        return clock(problem.size * problem.eta_y * t / problem.classes, problem.size)

    turn = jnp.asarray(restart, jnp.float64)
    first = clock_at(jnp.where(jnp.isfinite(turn), turn, 0.0))
    until = jnp.where(jnp.isfinite(turn), first, jnp.inf)
    xs = jnp.where(ts <= turn, clock_at(ts), first + clock_at(jnp.maximum(ts - turn, 0.0)))

    # the dynamics in that clock, without or with memory
    def field(x: Float[Array, ""], y: tuple, args: tuple) -> tuple:
        problem, until = args[:2]
        u = jnp.where(x > until, x - until, x)
        pace = _time_of_clock(u, problem)
        f = features(y[0], problem)
        if memory is not None:
            learned = args[2] * y[2] + (1 - args[2]) * u * f
            return *_remembered(f, learned, u, problem, pace), f
        z_rate, b_rate = rates(f, u, problem)
        return pace * z_rate, pace * b_rate

    # solved from the start
    plain = (start, jnp.zeros(len(problem.p), jnp.float64))
    y0: tuple
    args: tuple
    y0, args = (plain, (problem, until)) if memory is None else ((*plain, jnp.zeros_like(problem.p)), (problem, until, memory))
    sol = flow.solve(field, y0, xs, args, solver="dopri8", rtol=rtol, atol=1e-14, max_steps=max_steps)
    return Path(jnp.where(xs > until, xs - until, xs), sol.ys[0], sol.ys[1], sol.status)


def _remembered(
    f: Float[Array, "K D"], g: Float[Array, "K D"], u: Float[Array, ""], problem: Problem, pace: Float[Array, ""]
) -> tuple[Float[Array, "R D"], Float[Array, " K"]]:
    """dz/du and dB/du for a decoder that stores the sums g of what it learned from; :math:`u f` without memory."""
    others = jnp.sum(g, 0) - g
    size = jnp.asarray(problem.size, jnp.float64)
    scale = pace * problem.rho * problem.eta_z * miss(u, size)
    rate = problem.member @ logit_rate(f, (size - 1) * g - others)
    return scale * rate, scale * jnp.sum(f * others, -1)
