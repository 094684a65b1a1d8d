"""Descent where the coefficients of the gradient's form change with the weights, and where inputs lack dimensions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, metrics, train
from jaxdyn.theories.galore import model
from jaxdyn.theories.galore.dynamics import decay, projected, varying
from jaxdyn.theories.galore.trials.projected import positive

__all__ = ["FORMS", "Free", "Spread", "Varying", "free_trial", "spread_trial", "varying_trial"]

FORMS = ("printed", "corrected")
WIDTH = 0.2  # of the slope of the "steep" coefficients, as a share of D
STEPS = 60


@jd.setting
class Varying:
    r"""Descent within random subspaces of ``rank`` dimensions, with coefficients that depend on W.

    :math:`A = A_0 + L_A \tanh W`, :math:`B_i = b_i(W) B_i^0` with :math:`\|B_i^0\| = 1` and C alike; ||W|| stays below D = 1.

    - "wave": :math:`b_i = \tfrac12 L_B (1 + \sin 2\langle E_i, W\rangle)`, E of norm one, in random directions;
    - "steep": B and C are multiples of the identity that fall as steeply as they may while W grows, from :math:`L_B D` on.

    Args:
        kind: of the coefficients.
        step: step size as a share of the largest for constant coefficients.
        lip: L_B and L_C.
        lip_a: L_A.
        offset: added to b and c; 0 in the theorem: they stay below L D.
        size: m and n.
        rank: of the subspaces.
        terms: N.
    """

    kind: jd.Code = jd.code("wave", "steep")
    step: jd.Swept = 0.1
    lip: jd.Swept = 1.0
    lip_a: jd.Swept = 0.1
    offset: jd.Swept = 0.0
    size: int = 5
    rank: int = 2
    terms: int = 3

    def __post_init__(self) -> None:
        jd.require(self, self.step > 0, "step is positive", "step")
        jd.require(self, self.lip > 0 and self.lip_a >= 0, "lip is positive, lip_a at least 0", "lip", "lip_a")
        jd.require(self, 1 <= self.rank < self.size, "rank is at least 1 and below size", "rank", "size")


@jd.setting
class Free:
    r"""Parametric gradients :math:`A - \frac1N\sum_i B_i W f_i f_i^\top` with any A, and inputs that span ``span`` dimensions.

    ``leak`` adds as much of random inputs that span all dimensions.
    """

    leak: jd.Swept = 0.0
    size: int = 8
    span: int = 3
    steps: int = 800

    def __post_init__(self) -> None:
        jd.require(self, self.leak >= 0, "leak is at least 0", "leak")
        jd.require(self, 1 <= self.span < self.size, "span is at least 1 and below size", "span", "size")


@jd.setting
class Spread:
    """B and C of ``terms`` terms with eigenvalues from 1 - to 1 + ``spread``; subspaces of ``rank`` of ``size`` dimensions."""

    terms: jd.Swept = 3.0
    spread: jd.Swept = 0.5
    size: int = 8
    rank: int = 3
    most: int = 10  # terms at most

    def __post_init__(self) -> None:
        jd.require(self, 0 <= self.spread < 1, "spread is from 0 to below 1", "spread")
        whole = 1 <= self.terms <= self.most and self.terms == round(self.terms)
        jd.require(self, whole, "terms is a whole number from 1 to most", "terms", "most")
        jd.require(self, 1 <= self.rank < self.size, "rank is at least 1 and below size", "rank", "size")


def _unit(x: Float[Array, "N d d"]) -> Float[Array, "N d d"]:
    return x / linalg.eigvalsh(x)[:, -1][:, None, None]


def varying_trial(s: Varying, key: PRNGKeyArray) -> jd.Observables:
    """Ratios of successive norms of the projected gradient, and the bounds on them."""
    k_b, k_c, k_a, k_p, k_q, k_e = jax.random.split(key, 6)
    steep, n = s.kind == "steep", s.size
    eye = jnp.broadcast_to(jnp.eye(n, dtype=jnp.float64), (s.terms, n, n))
    b0, c0 = (jnp.where(steep, eye, _unit(positive(k, s.terms, n))) for k in (k_b, k_c))
    p, q = (linalg.qr(jax.random.normal(k, (n, s.rank), jnp.float64))[0] for k in (k_p, k_q))
    line = jnp.outer(p[:, 0], q[:, 0])  # the direction along which the steep coefficients fall, inside the subspaces
    drawn = jax.random.normal(k_e, (2, s.terms, n, n), jnp.float64)
    waves = drawn / jnp.linalg.norm(drawn, axis=(2, 3), keepdims=True)

    def height(w: Array, e: Float[Array, "N n n"]) -> Float[Array, " N"]:
        wave = 0.5 * (1 + jnp.sin(2 * jnp.einsum("ijk,jk->i", e, w)))
        ramp = 1 - jnp.clip(jnp.vdot(line, w) - (1 - WIDTH), 0, WIDTH)
        return s.offset + s.lip * jnp.where(steep, ramp, wave)

    def parts(w: Array) -> tuple[Array, Array]:
        return height(w, waves[0])[:, None, None] * b0, height(w, waves[1])[:, None, None] * c0

    def form(w: Array) -> Array:
        b, c = parts(w)
        return jnp.einsum("imk,kl,iln->mn", b, w, c) / s.terms

    def gradient(w: Array) -> Array:
        return a0 + s.lip_a * jnp.tanh(w) - form(w)

    start = jnp.where(steep, (1 - WIDTH) * line, 0.0)
    first = jax.random.normal(k_a, (n, n), jnp.float64)
    wanted = jnp.where(steep, 0.02 * line, 0.3 * first / jnp.linalg.norm(first))
    a0 = wanted + form(start) - s.lip_a * jnp.tanh(start)
    largest = jnp.square(s.lip + s.offset)  # at least lambda_max of S, and so of its projection
    eta = s.step / largest

    def step(w: Array) -> Array:
        return w + eta * p @ (p.T @ gradient(w) @ q) @ q.T

    def observe(w: Array) -> tuple[Array, ...]:
        b, c = parts(w)
        heights = jnp.maximum(jnp.max(height(w, waves[0])), jnp.max(height(w, waves[1])))
        return jnp.linalg.norm(p.T @ gradient(w) @ q), varying.kappa(b, c, p, q), jnp.linalg.norm(w), heights

    _, (norms, kappas, sizes, heights) = train.record(step, start, observe, samples=STEPS, every=1)
    lipschitz = (s.lip_a, s.lip, s.lip)
    bounds = varying.factors(eta, kappas[:-1], tuple(jnp.asarray(x) for x in lipschitz), jnp.ones(()))
    inside = (norms[:-1] > 1e-9 * norms[0]) & (sizes[1:] < 1)  # above rounding errors, and W below D
    ratios = jnp.where(inside, norms[1:] / jnp.where(inside, norms[:-1], 1), 0)
    return jd.observables(
        predicted={"shrink": jd.named((bounds[:2] - 1) / eta, "form time")},
        measured={"shrink": jd.named((ratios - 1) / eta, "time")},
        recorded={
            "held": jd.named((bounds[2] - 1) / eta, "time"),
            "inside": jd.named(inside.astype(jnp.float64), "time"),
            "remaining": jd.named(sizes[:-1], "time"),
            "kappa": jd.named(kappas[:-1], "time"),
        },
        assumed={
            "step_over_limit": s.step,  # below 1: eta < 1/lambda_max < 2/(kappa + lambda_max)
            "coefficients_over_bound": jnp.max(heights) / s.lip,
        },
        coords={"form": FORMS},
    )


def free_trial(s: Free, key: PRNGKeyArray) -> jd.Observables:
    """The gradient at the end of descent, and the part of A that no weight feels."""
    k_f, k_mix, k_a, k_b, k_leak = jax.random.split(key, 5)
    count = 2 * s.size
    frame = linalg.qr(jax.random.normal(k_f, (s.size, s.span), jnp.float64))[0]
    mixed = linalg.qr(jax.random.normal(k_mix, (count, s.span), jnp.float64))[0]
    within = mixed * jnp.linspace(1, 2, s.span, dtype=jnp.float64) @ frame.T
    inputs = within + s.leak * jax.random.normal(k_leak, (count, s.size), jnp.float64)
    a = jax.random.normal(k_a, (s.size, s.size), jnp.float64)
    b, c = positive(k_b, count, s.size), jnp.einsum("ij,ik->ijk", inputs, inputs)
    eta = 1 / decay.modes(b, c).values[-1]

    def negative(w: Array) -> Array:
        return -jax.grad(model.linear_loss)(w, a, b, c)

    last = jax.lax.fori_loop(0, s.steps, lambda _, w: w + eta * negative(w), jnp.zeros_like(a))
    end, kept = negative(last), varying.remainder(a, within, s.span)
    rank = metrics.stable_rank(end)
    return jd.observables(
        predicted={"end": jd.named(kept, "row col"), "rank": jnp.full((), s.size - s.span, jnp.float64)},
        measured={"end": jd.named(end, "row col"), "rank": rank},
        recorded={"none": jd.named(jnp.zeros_like(a), "row col"), "start": jd.named(a, "row col"), "left": jnp.linalg.norm(end)},
        status=train.finite_status(end),
    )


def spread_trial(s: Spread, key: PRNGKeyArray) -> jd.Observables:
    """The smallest eigenvalue of the projected S, by which R decays at least, and the bound kappa on it."""
    k_b, k_c, k_p, k_q = jax.random.split(key, 4)
    eye = jnp.eye(s.size, dtype=jnp.float64)
    b, c = (eye + 2 * s.spread * (positive(k, s.most, s.size) - eye) for k in (k_b, k_c))
    share = jnp.where(jnp.arange(s.most) < s.terms, s.most / s.terms, 0.0)  # the mean is over those in use
    p, q = (linalg.qr(jax.random.normal(k, (s.size, s.rank), jnp.float64))[0] for k in (k_p, k_q))
    theory = projected.within(share[:, None, None] * b, c, jnp.zeros((s.size, s.size), jnp.float64), p, q)
    mean_b, mean_c = (jnp.mean(share[:, None, None] * x, 0)[None] for x in (b, c))
    return jd.observables(
        predicted={"rate": theory.kappa},
        measured={"rate": theory.slowest},
        recorded={"of_means": varying.kappa(mean_b, mean_c, p, q)},
    )
