r"""Blocks trained to convergence, and how the rows of V approach their limit: the runs of Theorem 4 in networks.

A block with self-attention (logits of its own for each query) and nodes ``h = phi(v . b + xi)`` fits the outputs of another one,
plus noise, by gradient descent on the squared error; both attention and weights are trained. "many": every sample has all tokens.
"one": one token per sample, linear nodes, exp attention, no residual path; then the tokens do not interact.

The limit :math:`\mu_l` of row l is its last value, moved by one Newton step. Letters: M tokens, K nodes, Q queries, T records,
P parameters; distance of a row = :math:`\|V_l - \mu_l\| / \|\mu_l\|`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, train
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.dynamics import nonlinear as theory

FORMS = ("theorem", "hessian")
RECORDS = 250
WINDOW = (1e-2, 1e-5)  # largest distance of a row at the start and at the end of the last decades that are compared
DEEPER = 1e-3  # a row's own speed is measured while its distance falls by this factor
SHOWN = 8
FLAT = 1e-8  # eigenvalues below it belong to directions in which the loss is constant (shifts of the softmax)


@jd.setting
class Converge:
    """A block that is trained to convergence.

    Args:
        context: all tokens in each sample, or one.
        attention: of the block.
        activation: of its nodes.
        residual: size of the queries' embeddings; 0 cuts the residual path.
        queries: in use, at most max_queries.
        eta: step size.
        late: distance of a row from which on its own speed is measured.
        span: training time from one record to the next, number of steps times eta; there are 250 after the first.
        noise: standard deviation of what is added to the targets.
        low: norms of the rows of V in the network that makes the targets are spread evenly over [low, high].
        high: see low.
        start: standard deviation of the weights at the start; logits start at 0.
        tokens: M.
        nodes: K.
        samples: of the task.
        max_queries: Q.
    """

    context: jd.Code = jd.code("many", "one")
    attention: jd.Code = jd.code("softmax", "exp")
    activation: jd.Code = jd.code("tanh", "id")
    residual: jd.Swept = 1.0
    queries: jd.Swept = jd.field(2.0, at_least=1, whole=True)
    eta: jd.Swept = jd.field(1.5, above=0)
    span: jd.Swept = jd.field(240.0, above=0)
    late: jd.Swept = jd.field(1e-4, above=0)
    noise: jd.Swept = 0.3
    low: jd.Swept = jd.field(0.5, above=0)
    high: jd.Swept = 1.6
    start: jd.Swept = jd.field(0.3, above=0)
    tokens: int = jd.field(8, at_least=3)  # for a slope over them
    nodes: int = 3
    samples: int = 192
    max_queries: int = 2

    def __post_init__(self) -> None:
        """Refuse records between steps, more queries than there are, and norms that fall."""
        steps = self.span / self.eta
        jd.require(self, steps > 1 - 1e-6 and abs(steps - round(steps)) < 1e-6, "span is a whole multiple of eta", "span", "eta")
        jd.require(self, self.queries <= self.max_queries, "queries is at most max_queries", "queries", "max_queries")
        jd.require(self, self.low <= self.high, "low is at most high", "low", "high")


def build(s: Converge, key: PRNGKeyArray) -> tuple[model.Params, model.Block, model.Batch]:
    """The block at its start, and its task."""
    # random numbers, the contexts of the samples, and the block
    dim = s.tokens + s.max_queries
    x, y, w, target_v, target_xi, target_z = model.normals(
        key,
        (s.samples, s.tokens),
        (s.samples, s.nodes),
        (dim, s.nodes),
        (s.tokens, s.nodes),
        (s.max_queries, s.nodes),
        (s.max_queries, s.tokens),
    )
    number = jnp.arange(s.samples, dtype=jnp.int32)
    one = jax.nn.one_hot(number % s.tokens, s.tokens, dtype=jnp.float64)
    x = jnp.where(s.context == "many", jax.nn.softmax(2 * x), one)
    basis = jnp.eye(dim, dtype=jnp.float64)
    block = model.Block(basis[:, : s.tokens], s.residual * basis[:, s.tokens :], s.attention, s.activation)
    # the network that makes the targets
    norm = jnp.linspace(s.low, s.high, s.tokens, dtype=jnp.float64)
    target_v = target_v * (norm / jnp.linalg.norm(target_v, axis=1))[:, None]
    logits = norm**2 / 2 + jnp.where(s.context == "many", 0.3, 0.0) * target_z  # Theorem 1's, and more
    target = model.Params(jnp.concatenate([target_v, 0.3 * target_xi]), logits)
    # its outputs, with noise
    query = number % s.queries.astype(jnp.int32)
    clean = model.activation(model.pre_activations(target, block, x, query), s.activation)
    weight = jnp.full(s.samples, 1 / s.samples, jnp.float64)
    batch = model.Batch(x, query, clean + s.noise * y, weight)
    return model.Params(s.start * w, jnp.zeros_like(logits)), block, batch


class Limit(NamedTuple):
    """Where a run ends: the parameters, the eigenvalues and eigenvectors of the loss's Hessian, and the last Newton step."""

    at: Float[Array, " P"]
    rate: Float[Array, " P"]
    mode: Float[Array, "P P"]
    step: Float[Array, " P"]


def _limit(loss: Callable[[Float[Array, " P"]], Float[Array, ""]], end: Float[Array, " P"]) -> Limit:
    rate, mode = linalg.eigh(jax.hessian(loss)(end))
    inverse = jnp.where(rate > FLAT, 1 / jnp.maximum(rate, FLAT), 0.0)
    step = -mode @ (inverse * (mode.T @ jax.grad(loss)(end)))
    return Limit(end + step, rate, mode, step)


def _last_above(values: Float[Array, " T"], mark: jd.Swept) -> Int[Array, ""]:
    """Index of the last record above a mark (0 if there is none)."""
    return jnp.max(jnp.where(values > mark, jnp.arange(values.shape[0]), 0))


def trial(s: Converge, key: PRNGKeyArray) -> jd.Observables:
    """Train; distances of the rows of V from their limit over the last decades, and the speed of each row."""
    # the block and its loss, as functions of all parameters in one vector
    params, block, batch = build(s, key)
    start, unravel = ravel_pytree(params)

    def loss(flat: Float[Array, " P"]) -> Float[Array, ""]:
        return model.squared_loss(unravel(flat), block, batch)

    def rows(flat: Float[Array, " P"]) -> Float[Array, "M K"]:
        return model.projected(unravel(flat), block)

    # training, the limit of V, and the distance of its rows from there
    tx, every = optax.sgd(s.eta), jnp.round(s.span / s.eta).astype(jnp.int32)
    step = train.make_step(loss, tx)
    state, path = train.record(step, train.init(tx, start), lambda state: state.params, samples=RECORDS, every=every)
    limit = _limit(loss, path[-1])
    mu = rows(limit.at)
    size = jnp.linalg.norm(mu, axis=1)

    def distance(apart: Float[Array, " P"]) -> Float[Array, " M"]:
        return jnp.linalg.norm(rows(apart), axis=1) / size

    apart = jax.vmap(distance)(path - limit.at)
    # the records that are compared: from the last at which a row is far to the last at which one is not yet near
    worst = jnp.max(apart, 1)
    first, last = _last_above(worst, WINDOW[0]) + 1, _last_above(worst, WINDOW[1])
    index = jnp.round(jnp.linspace(first, jnp.maximum(last, first), SHOWN)).astype(jnp.int32)
    steps = (index - index[0]) * every
    # what the Hessian at the limit predicts, what Theorem 4 does, and the rates of rows that do not interact
    shrink = jnp.abs(1 - s.eta * limit.rate) ** steps[:, None]
    linear = jax.vmap(distance)((shrink * (limit.mode.T @ (path[index[0]] - limit.at))) @ limit.mode.T)
    slowest = jnp.min(jnp.where(limit.rate > FLAT, limit.rate, jnp.inf))
    kappa = size**2 / 2
    theorem = apart[index[0]] * jnp.exp(-s.eta * steps[:, None] * slowest * jnp.exp(kappa - jnp.min(kappa)))
    measured = _speeds(s, apart)
    separate = theory.separate_rate(kappa, jnp.sum(rows(start) ** 2, 1) / 2, 1 / s.tokens, s.nodes)
    return jd.observables(
        predicted={
            "distance": jd.named(jnp.stack([theorem, linear]), "form window token"),
            "speed": jd.named(-jnp.log1p(-jnp.minimum(s.eta * separate, 0.99)) / s.eta, "token"),
        },
        measured={"distance": jd.named(apart[index], "window token"), "speed": jd.named(measured, "token")},
        recorded={
            "kappa": jd.named(kappa, "token"),
            "theorem": jd.named(theorem, "window token"),
            "slowest": slowest,
            "decades": jnp.log10(worst[index[0]] / worst[index[-1]]),
            "t": jd.named(s.eta * steps, "window"),
            "loss": jd.named(jnp.stack([loss(start), loss(limit.at)]), "end"),
        },
        assumed={"unconverged": jnp.max(distance(limit.step))},
        status=train.finite_status(state),
        coords={"form": FORMS},
    )


def _speeds(s: Converge, apart: Float[Array, "T M"]) -> Float[Array, " M"]:
    """Rate at which each row approaches its limit, from its own time at distance ``late`` on."""
    one = jax.vmap(_last_above, (1, None))
    first, last = one(apart, s.late) + 1, one(apart, DEEPER * s.late)
    token = jnp.arange(s.tokens)
    span = jnp.log(apart[first, token]) - jnp.log(apart[last, token])
    return span / (jnp.maximum(last - first, 1) * s.span)
