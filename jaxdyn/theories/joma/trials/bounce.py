r"""The entropy bounce of Fig. 4: gradient ascent near a critical point under attention normalised over all tokens.

The upper gradient ``mu - v`` is inserted. The logits are prescribed by Theorem 1's law for exp attention (``law``: ``z = v^2/T``,
the recursion behind the figure), or trained along with v: by a gradient that takes the normalisation A(t) as given (``trained``),
or by that of the softmax (``softmax``), which differentiates A(t) as well. The theory is the exact solution of
:math:`\dot v = (\mu - v) \circ \mathrm{softmax}(v^2/T)`, and for ``softmax`` the equations of ``dynamics/thm4.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.theories.joma import published
from jaxdyn.theories.joma.critical import ATTENTIONS, draw_mu, gradients
from jaxdyn.theories.joma.dynamics.thm4 import entropy_of_logits, orbit_in_softmax_time, softmax_logits

__all__ = ["DRAWS", "LOGITS", "PREDICTED", "Bounce", "place", "step", "trial"]

DRAWS, LOGITS, DRIVES = ("random", "fig4"), ("law", "trained", "softmax"), ("critical", "linear")
RECORDS = 5000  # times at which the entropy is recorded; one step apart at step size span / RECORDS
PREDICTED = 20  # the entropy is predicted at every 20th of them
TEXT = 2.0  # the temperature of the paper's text


@jd.setting
class Bounce:
    """Tokens near a critical point mu, under attention softmax(v^2/T).

    Args:
        draw: mu is drawn at random, or that of the figure (repeated or cut to the number of tokens).
        logits: z = v^2/T by Theorem 1, or trained, with the normalisation as given or differentiated.
        drive: "linear" replaces the upper gradient mu - v by mu: no critical point.
        eta: step size.
        span: training time, number of steps times step size.
        temperature: T.
        spread: factor on the distances of mu from its mean; 0 makes all components equal.
        start: v at the start, for all tokens.
        mu_low: drawn components are uniform in [mu_low, mu_high).
        mu_high: see mu_low.
        mu: the critical point itself, one number per token, in place of ``draw``.
        tokens: number of components.
        settle: further steps of size one, which reach the limit.
    """

    draw: jd.Code = jd.code(*DRAWS)
    logits: jd.Code = jd.code(*LOGITS)
    drive: jd.Code = jd.code(*DRIVES)
    eta: jd.Swept = 0.02
    span: jd.Swept = 100.0
    temperature: jd.Swept = 3.0
    spread: jd.Swept = 1.0
    start: jd.Swept = 0.05
    mu_low: jd.Swept = 1.0
    mu_high: jd.Swept = 4.0
    mu: tuple[float, ...] | None = None
    tokens: int = 10
    settle: int = 10_000

    def __post_init__(self) -> None:
        for name in ("eta", "span", "temperature"):
            jd.require(self, getattr(self, name) > 0, f"{name} is positive", name)
        jd.require(self, 0 < self.start < self.mu_low, "0 < start < mu_low", "start", "mu_low")
        jd.require(self, self.mu_low < self.mu_high, "mu_low is below mu_high", "mu_low", "mu_high")
        if self.mu is not None:
            jd.require(self, len(self.mu) == self.tokens, "mu has one number per token", "mu", "tokens")
            jd.require(self, min(self.mu) > self.start, "every component of mu is above start", "mu", "start")
        steps = self.span / (RECORDS * self.eta)
        whole = steps > 1 - 1e-6 and abs(steps - round(steps)) <= 1e-6
        jd.require(self, whole, f"span / {RECORDS} is a whole multiple of eta", "span", "eta")


def place(s: Bounce, key: PRNGKeyArray) -> Float[Array, " d"]:
    """The critical point of a run."""
    if s.mu is not None:
        mu = jnp.asarray(s.mu, jnp.float64)
    else:
        fig4 = jnp.resize(jnp.asarray(published.FIG4_MU, jnp.float64), (s.tokens,))
        mu = jnp.where(s.draw == "fig4", fig4, draw_mu(key, s.mu_low, s.mu_high, s.tokens))
    return jnp.mean(mu) + s.spread * (mu - jnp.mean(mu))


def step(
    state: tuple[Float[Array, " d"], Float[Array, " d"]], mu: Float[Array, " d"], eta: Float[Array, ""], s: Bounce
) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
    """One step of gradient ascent of v and of the logits (learning-rate ratio 2/T), replaced by v^2/T under ``law``."""
    v, z = state
    g = jnp.where(s.drive == "critical", mu - v, mu)
    kinds = [ATTENTIONS.index("softmax"), ATTENTIONS.index("normalised")]
    attention = jd.Code(jnp.where(s.logits == "softmax", *kinds), ATTENTIONS)
    dv, dz = gradients(v, z - jnp.max(z), g, attention)
    v = v + eta * g * dv
    return v, jnp.where(s.logits == "law", v * v / s.temperature, z + eta * (2 / s.temperature) * dz)


def trial(s: Bounce, key: PRNGKeyArray) -> jd.Observables:
    """Entropy of the attention along training, and along the exact solution."""
    mu = place(s, key)
    v0 = jnp.full_like(mu, s.start)
    every = jnp.round(s.span / (RECORDS * s.eta)).astype(jnp.int32)
    state, (z, v) = train.record(
        lambda state: step(state, mu, s.eta, s),
        (v0, v0 * v0 / s.temperature),
        lambda state: state[::-1],
        samples=RECORDS,
        every=every,
    )
    settled = jax.lax.fori_loop(0, s.settle, lambda _, state: step(state, mu, jnp.ones_like(s.eta), s), state)
    h = entropy_of_logits(z)
    tau = s.span * jnp.arange(0, RECORDS + 1, PREDICTED, dtype=jnp.float64) / RECORDS
    held, text = (_theory(tau, mu, v0, t) for t in (s.temperature, jnp.full_like(s.temperature, TEXT)))
    after = jnp.concatenate([tau, jnp.array([s.span + s.settle], jnp.float64)])
    solution = softmax_logits(after, mu, v0, s.temperature)
    softmax = entropy_of_logits(solution.ys[1])
    own = entropy_of_logits(mu * mu / s.temperature)
    return jd.observables(
        predicted={
            "entropy": jd.named(jnp.where(s.logits == "softmax", softmax[:-1], held), "time"),
            "limit": jnp.where(s.logits == "softmax", softmax[-1], own),
        },
        measured={"entropy": jd.named(h[::PREDICTED], "time"), "limit": entropy_of_logits(settled[1])},
        recorded={
            "t": jd.named(tau, "time"),
            "held": jd.named(held, "time"),
            "held_limit": own,
            "text": jd.named(text, "time"),
            "text_limit": entropy_of_logits(mu * mu / TEXT),
            "lowest": jnp.min(h),
            "lowest_at": jnp.argmin(h).astype(jnp.float64),
            "last": h[RECORDS - 1],
            "critical_point": jd.named(mu, "token"),
            "v": jd.named(v[::100], "snapshot token"),
        },
        status=jnp.where(
            s.logits == "softmax", jnp.maximum(solution.status, train.finite_status(settled)), train.finite_status(settled)
        ),
    )


def _theory(
    tau: Float[Array, " T"], mu: Float[Array, " d"], v0: Float[Array, " d"], temperature: Float[Array, ""]
) -> Float[Array, " T"]:
    """Entropy of softmax(v^2/T) along the exact solution."""
    s = orbit_in_softmax_time(tau, mu * mu / temperature, -jnp.log1p(-v0 / mu))
    return entropy_of_logits(jnp.square(mu * jnp.expm1(-s)) / temperature)
