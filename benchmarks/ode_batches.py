r"""1024 starts of an ODE with a closed form, at equal achieved error: our flow, scipy (a loop, and one flat system), torchdiffeq.

Three systems of ten components, every start with its own coefficients and start:

.. math:: \dot v = (\mu - v) e^{v^2/2}, \ \mu \in [.5, 2.5] \text{ (mild)} \text{ or } [1, 4] \text{ (stiff, rates to 3000)};
          \qquad \dot v = \Delta e^{v^2/2} \text{ to } .8 \text{ of each start's blow-up time.}

Tolerances (rtol = atol) are tuned for each contestant, in quarters of a decade, until the largest error over all starts,
components and save times is below the target. The loop over starts is tuned and timed on a few starts and multiplied.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from common import interleaved, publish
from scipy.integrate import solve_ivp

from jaxdyn import flow

D, TARGET = 10, 1e-6
HALF = np.sqrt(np.pi / 2)


@dataclass(frozen=True)
class Problem:
    """Coefficients ``a`` and starts ``v0`` (starts, components), save times, and the exact states at those after the start."""

    name: str
    kind: str
    a: np.ndarray
    v0: np.ndarray
    ts: np.ndarray
    exact: np.ndarray  # (times, starts, components)

    def part(self, n: int) -> Problem:
        """The first n starts."""
        return Problem(self.name, self.kind, self.a[:n], self.v0[:n], self.ts, self.exact[:, :n])

    def error(self, states: np.ndarray) -> float:
        """Largest error; NaN and missing states count as infinite."""
        return float(np.max(np.nan_to_num(np.abs(states - self.exact), nan=np.inf))) if states.shape == self.exact.shape else np.inf


def critical(name: str, low: float, high: float, n: int) -> Problem:
    rng = np.random.default_rng(0)
    mu, v0, ts = rng.uniform(low, high, (n, D)), rng.uniform(-0.4, 0.4, (n, D)), np.linspace(0, 1, 5)
    return Problem(name, "critical", mu, v0, ts, np.stack([critical_state(mu, v0, t) for t in ts[1:]]))


def critical_state(mu: np.ndarray, v0: np.ndarray, t: float) -> np.ndarray:
    r"""v(t) from :math:`s - s_0 + C(s) = t e^{\mu^2/2}`, :math:`C = \int_{e^{-s}}^{\delta_0} (e^{\mu^2(2x - x^2)/2} - 1)/x\,dx`."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    first = 1 - v0 / mu
    low, high = np.zeros_like(mu), t * np.exp(mu**2 / 2)  # of s - s0, since C >= 0
    s = low

    def rate(x: np.ndarray, m: np.ndarray) -> np.ndarray:
        return np.expm1(m * (2 * x - x * x))

    for _ in range(60):
        delta = first * np.exp(-s)
        half, middle = (first - delta) / 2, (first + delta) / 2
        x = middle[..., None] + half[..., None] * nodes
        c = half * ((rate(x, mu[..., None] ** 2 / 2) / x) @ weights)
        excess = s + c - t * np.exp(mu**2 / 2)
        low, high = np.where(excess < 0, s, low), np.where(excess < 0, high, s)
        newton = s - excess / (1 + rate(delta, mu**2 / 2))
        new = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
        if np.max(np.abs(new - s)) <= 1e-14 * np.max(np.abs(s)):
            break
        s = new
    return mu * (1 - first * np.exp(-s))


def erf_law(n: int) -> Problem:
    rng = np.random.default_rng(1)
    delta, v0, ts = rng.normal(size=(n, D)), rng.uniform(-0.4, 0.4, (n, D)), np.linspace(0, 0.8, 5)
    u0 = scipy.special.erf(v0 / np.sqrt(2))
    blow_up = HALF * (1 - np.sign(delta) * u0) / np.abs(delta)
    delta *= blow_up.min(-1, keepdims=True)  # every start blows up at time 1
    exact = [np.sqrt(2) * scipy.special.erfinv(u0 + delta * t / HALF) for t in ts[1:]]
    return Problem("erf", "erf", delta, v0, ts, np.stack(exact))


def field(kind: str, lib: Any) -> Callable:
    """The field in v for numpy, jax.numpy or torch."""
    if kind == "critical":
        return lambda t, v, a: (a - v) * lib.exp(v * v / 2)
    return lambda t, v, a: a * lib.exp(v * v / 2)


def coordinate(kind: str) -> tuple[Callable, Callable, Callable]:
    """Start, field and way back of the better coordinate: s = ln(1/delta) - s0, or u = erf(v/sqrt 2), in which the field is constant."""
    if kind == "critical":

        def back(s, a, v0):
            return a - (a - v0) * jnp.exp(-s)

        return lambda a, v0: jnp.zeros_like(v0), lambda t, s, p: jnp.exp(back(s, *p) ** 2 / 2), back
    return (
        lambda a, v0: jax.scipy.special.erf(v0 / 2**0.5),
        lambda t, u, p: p[0] / HALF + 0 * u,
        lambda u, a, v0: 2**0.5 * jax.scipy.special.erfinv(u),
    )


def ours(kind: str, way: str, better: bool, solver: str) -> Callable:
    """``(rtol, a, v0, ts) -> (times, starts, components), steps`` by ``flow.solve``, to be compiled."""
    begin, f, back = coordinate(kind) if better else (lambda a, v0: v0, lambda t, v, p: field(kind, jnp)(t, v, p[0]), lambda v, a, v0: v)

    def one(rtol, a, v0, ts):
        solution = flow.solve(f, begin(a, v0), ts, (a, v0), solver=solver, rtol=rtol, atol=rtol, max_steps=100_000)
        return back(solution.ys, a, v0)[1:], solution.steps

    def run(rtol, a, v0, ts):
        over = functools.partial(jax.vmap, in_axes=(None, 0, 0, None))
        if way == "one shared step":
            return one(rtol, a, v0, ts)
        if way == "map over starts":
            ys, steps = jax.lax.map(lambda row: one(rtol, *row, ts), (a, v0))
        elif way == "vmap over starts":
            ys, steps = over(one)(rtol, a, v0, ts)
        else:
            ys, steps = over(over(one))(rtol, a, v0, ts)
            ys = jnp.swapaxes(ys, 1, 2)
        return jnp.swapaxes(ys, 0, 1), steps

    return run
