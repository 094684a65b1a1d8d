r"""Stable ranks of V and its speed along JoMA's dynamics with many nodes that reach a critical point.

``link_trial``: gradient flow of the layer of ``joma/layer.py`` under the upper gradient :math:`\mu - V`. ``trained_trial``: blocks
trained by gradient descent on squared error, as in ``converge.py``. Letters as in ``dynamics/lowrank.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, metrics, train
from jaxdyn.theories.joma import layer as net
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.dynamics import lowrank as theory
from jaxdyn.theories.joma.trials.converge import Converge, build

__all__ = ["RECORDS", "Link", "Trained", "link_trial", "trained_trial"]

RECORDS = 48  # of a run after its start


@jd.setting
class Link:
    """One layer with exp attention, whose upper gradient vanishes at a critical point.

    Args:
        attention: kind of attention.
        ratio: learning rate of z over that of V.
        low: norms of the rows of the critical point are spread evenly over [low, high].
        high: see low.
        horizon: time of the last record.
        tokens: m.
        nodes: k.
        samples: n.
    """

    attention: jd.Code = jd.code(*net.KINDS)
    ratio: jd.Swept = 1.0
    low: jd.Swept = 1.0
    high: jd.Swept = 3.0
    horizon: jd.Swept = 2.4
    tokens: int = 8
    nodes: int = 6
    samples: int = 32

    def __post_init__(self) -> None:
        jd.require(self, self.samples >= self.tokens, "there are at least as many samples as tokens", "samples", "tokens")
        jd.require(self, 0 < self.low <= self.high, "0 < low <= high", "low", "high")
        jd.require(self, self.horizon > 0, "horizon is positive", "horizon")


@jd.setting
class Trained(Converge):
    """A block trained on squared error; "one" token a sample with exp attention and linear nodes is the theory's world.

    Args:
        ratio: learning rate of the logits over that of V; 0: attention stays as it is.
    """

    context: jd.Code = jd.code("one", "many")
    attention: jd.Code = jd.code("exp", "softmax")
    activation: jd.Code = jd.code("id", "tanh")
    residual: jd.Swept = 0.0
    queries: jd.Swept = 1.0
    eta: jd.Swept = 0.05
    span: jd.Swept = 1.0
    start: jd.Swept = 0.05
    ratio: jd.Swept = 1.0
    nodes: int = 6


def link_trial(s: Link, key: PRNGKeyArray) -> jd.Observables:
    """V, its speed and their stable ranks along the flow, and in closed form."""
    x, g = model.normals(key, (s.samples, s.tokens), (s.samples, s.nodes))
    x = jax.nn.softmax(2 * x)
    norms = jnp.linspace(s.low, s.high, s.tokens, dtype=jnp.float64)
    x = x * norms / jnp.linalg.norm(x.T @ g / s.samples, axis=-1)  # frequencies give the rows of E[gx] their norms
    even = jnp.full(s.tokens, 1 / s.tokens, jnp.float64)
    layer = net.Layer(x, g, s.attention, even, pull=net.pull(x, 1.0))
    mu = net.saliency(layer)
    start = net.Params(jnp.zeros(s.tokens, jnp.float64), jnp.zeros_like(mu))
    ts = s.horizon * jnp.arange(RECORDS + 1, dtype=jnp.float64) / RECORDS
    sol = flow.gradient_flow(net.loss, start, ts, layer, rate=net.rates(s.ratio), rtol=1e-10, atol=1e-13)
    speed = jax.vmap(lambda z, v: -jax.grad(net.loss)(net.Params(z, v), layer).v)(sol.ys.z, sol.ys.v)[1:]
    v, rate = theory.inserted(mu, ts[1:])
    rows = "time token node"
    relaxed = -jnp.expm1(-ts[1:])[:, None, None] * mu
    return jd.observables(
        predicted={"path": jd.named(v, rows)} | _ranks(v, rate),
        measured={"path": jd.named(sol.ys.v[1:], rows)} | _ranks(sol.ys.v[1:], speed),
        recorded={"relaxed": jd.named(relaxed, rows), "start_rank": metrics.stable_rank(mu), "t": jd.named(ts[1:], "time")},
        status=sol.status,
    )


def trained_trial(s: Trained, key: PRNGKeyArray) -> jd.Observables:
    """Stable ranks of V and its negative gradient along training, and by the ODE from the start (for one token a sample)."""
    params, block, batch = build(s, key)
    every = jnp.round(s.span / s.eta).astype(jnp.int32)
    tx = model.make_tx(jd.Code.of("gd", model.OPTIMIZERS), s.eta, model.Params(1.0, s.ratio))

    def loss(p: model.Params) -> Array:
        return model.squared_loss(p, block, batch)

    def observe(state: train.State) -> tuple[Array, Array, Array]:
        speed = -model.projected(jax.grad(loss)(state.params), block)
        return model.projected(state.params, block), speed, loss(state.params)

    last, (v, speed, losses) = train.record(
        train.make_step(loss, tx), train.init(tx, params), observe, samples=RECORDS, every=every
    )
    p = batch.weight @ batch.x
    y = ((batch.weight[:, None] * batch.x).T @ batch.target) / p[:, None]
    ts = s.span * jnp.arange(RECORDS + 1, dtype=jnp.float64)
    sol, rate = theory.trained(v[0], y, p, ts)
    once = theory.inserted(theory.limits(y), jnp.mean(p) * ts)[1]
    return jd.observables(
        predicted=_ranks(sol.ys, rate),
        measured=_ranks(v, speed),
        recorded={
            "unattended": jd.named(metrics.stable_rank(theory.unattended(v[0], y, p, ts)), "time"),
            "once": jd.named(metrics.stable_rank(once), "time"),
            "loss": jd.named(losses, "time"),
            "speed": jd.named(jnp.linalg.norm(speed, axis=(1, 2)), "time"),
            "t": jd.named(ts, "time"),
        },
        status=jnp.maximum(sol.status, train.finite_status(last.params)),
    )


def _ranks(v: Float[Array, "t m k"], rate: Float[Array, "t m k"]) -> dict:
    return {"srank_v": jd.named(metrics.stable_rank(v), "time"), "srank_rate": jd.named(metrics.stable_rank(rate), "time")}
