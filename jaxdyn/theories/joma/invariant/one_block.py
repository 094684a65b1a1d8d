r"""One block on a random regression task, trained by gradient flow and by descent: the runs of Theorem 1.

Letters as in ``model.py`` and ``dynamics/invariants.py``.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, train
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.dynamics import invariants as theory

SAMPLES = 10  # recorded times of a run after its start
EXTRA = 2  # upper layers beyond the first
REFINEMENTS = (1, 2, 4)  # the step size is divided by these
DESCENT = 0.3  # descent is compared with the flow for this share of its time


@jd.setting
class OneBlock:
    """One block with a trained upper layer on a random regression task.

    Args:
        attention: of the block.
        phi: activation.
        upper: activation below each upper layer but the first.
        depth: upper layers above the first.
        loss: squared error or cross-entropy.
        optimizer: of descent.
        law: the law is compared for the logits of the first query, or for the sum over all queries.
        ratio: learning rate of z over that of w.
        tau: temperature of the attention.
        lr: the larger of the learning rates of w and z/tau.
        horizon: training time, number of steps times lr.
        weight_decay: of w and z.
        noise: standard deviation of what is added to the entries of orthonormal embeddings.
        queries: in the batch, at most max_queries.
        nodes: hidden nodes in use, at most hidden.
        fraction: probability that a sample is in a mini-batch.
        tokens, hidden, outputs, samples, max_queries, dim: sizes of the arrays.
    """

    attention: jd.Code = jd.code(*model.ATTENTIONS)
    phi: jd.Code = jd.code(*model.ACTIVATIONS)
    upper: jd.Code = jd.code(*model.UPPERS)
    loss: jd.Code = jd.code(*model.LOSSES)
    optimizer: jd.Code = jd.code(*model.OPTIMIZERS)
    law: jd.Code = jd.code("query", "sum")
    depth: jd.Swept = jd.field(0.0, at_least=0, at_most=EXTRA)
    ratio: jd.Swept = 1.0
    tau: jd.Swept = 1.0
    lr: jd.Swept = 0.0025
    horizon: jd.Swept = 0.7
    weight_decay: jd.Swept = 0.0
    noise: jd.Swept = 0.0
    queries: jd.Swept = jd.field(1.0, at_least=1, whole=True)
    nodes: jd.Swept = jd.field(2.0, at_least=1, whole=True)
    fraction: jd.Swept = 1.0
    tokens: int = 4
    hidden: int = 2
    outputs: int = 2
    samples: int = 8
    max_queries: int = 3
    dim: int = 8

    def __post_init__(self) -> None:
        """Refuse what the arrays cannot hold."""
        jd.require(self, self.queries <= self.max_queries, "queries is at most max_queries", "queries", "max_queries")
        jd.require(self, self.nodes <= self.hidden, "nodes is at most hidden", "nodes", "hidden")
        columns = self.tokens + self.max_queries
        jd.require(self, self.dim >= columns, f"{columns} orthonormal columns need dim >= {columns}", "dim")


@jd.setting
class Elementwise(OneBlock):
    """The same, with kinds of attention whose law is that of Theorem 1's proof, and not its statement."""

    attention: jd.Code = jd.code(*model.ATTENTIONS, "sigmoid", "relu")


def build(s: OneBlock, key: PRNGKeyArray) -> tuple[model.Params, model.Block, model.Batch]:
    """Network and data of one run: each node starts active on average; nodes beyond ``s.nodes`` are zero and stay zero."""
    k_embed, k_rest = jax.random.split(key)
    tokens, queries = model.embed(k_embed, s.dim, s.tokens, s.max_queries, s.noise)
    w, z, a, x, y, c = model.normals(
        k_rest,
        (s.dim, s.hidden),
        (s.max_queries, s.tokens),
        (s.hidden, s.outputs),
        (s.samples, s.tokens),
        (s.samples, s.outputs),
        (EXTRA, s.outputs, s.outputs),
    )
    used = (jnp.arange(s.hidden) < s.nodes).astype(jnp.float64)
    query = jnp.arange(s.samples) % s.queries.astype(jnp.int32)
    weight = jnp.full(s.samples, 1 / s.samples, jnp.float64)
    block = model.Block(tokens, queries, s.attention, s.phi, s.tau, upper=s.upper, depth=s.depth)
    batch = model.Batch(jax.nn.softmax(2 * x), query, 0.5 * y, weight)
    params = model.Params(w * used, 0.5 + 0.3 * z, a * used[:, None] / s.hidden**0.5, c / s.outputs**0.5)
    mean_pre = batch.weight @ model.pre_activations(params, block, batch.x, batch.query)
    return params._replace(w=params.w * jnp.where(mean_pre < 0, -1.0, 1.0)), block, batch


def rates(s: OneBlock) -> model.Params:
    """Learning rates over ``s.lr``: those of z and w have the ratio ``s.ratio``, and the larger of those of z/tau and w is 1."""
    fastest = jnp.maximum(s.ratio / s.tau, 1.0)
    return model.Params(1 / fastest, s.ratio / fastest, 1 / fastest, 1 / fastest)


def used_queries(s: OneBlock) -> Float[Array, " q"]:
    """1 for the queries whose logits the law sums over: all that are in use, or the first."""
    return (jnp.arange(s.max_queries) < jnp.where(s.law == "sum", s.queries, 1)).astype(jnp.float64)


def sides(s: OneBlock, block: model.Block, params: model.Params) -> tuple[Float[Array, "m k"], Float[Array, " m"]]:
    """The law's weights v and its logits' side, for the first query or summed over the queries in use."""
    return model.projected(params, block), used_queries(s) @ theory.conserved_side(params.z, s.attention, s.tau)


def law(s: OneBlock, v: Float[Array, "T m k"], side: Float[Array, "T m"]) -> Float[Array, "T m"]:
    """The logits' side of the law along a run, predicted from the weights along it."""
    return theory.invariant(v, v[0], side[0], s.ratio, s.tau, s.attention)


def steps_between(s: OneBlock, share: float = 1.0) -> Array:
    """Steps from one record to the next at the largest step size, for a share of the training time."""
    return jnp.maximum(1, jnp.round(share * s.horizon / (SAMPLES * s.lr))).astype(jnp.int32)


def invariant_trial(s: OneBlock, key: PRNGKeyArray) -> jd.Observables:
    """The law along the gradient flow of the loss, and along descent with three step sizes over the first part of that time."""
    # gradient flow
    params, block, batch = build(s, key)
    args = (block, batch, s.weight_decay)
    loss = functools.partial(model.training_loss, s.loss)
    ts = jnp.linspace(0.0, s.horizon, SAMPLES + 1, dtype=jnp.float64)
    solution = flow.gradient_flow(loss, params, ts, *args, rate=rates(s), max_steps=1024)
    v_flow, side_flow = jax.vmap(lambda p: sides(s, block, p))(solution.ys)

    # descent with each step size
    def descend(refinement: Array) -> tuple[Array, Array]:
        tx = model.make_tx(s.optimizer, s.lr / refinement, rates(s))
        step = train.make_step(lambda p: loss(p, *args), tx)
        observe = lambda state: sides(s, block, state.params)  # noqa: E731
        return train.record(step, train.init(tx, params), observe, samples=SAMPLES, every=steps_between(s, DESCENT) * refinement)[1]

    v, side = jax.vmap(descend)(jnp.asarray(REFINEMENTS, jnp.int32))
    return jd.observables(
        predicted={
            "flow": jd.named(law(s, v_flow, side_flow), "time token"),
            "descent": jd.named(jax.vmap(lambda v, side: law(s, v, side))(v, side), "refinement time token"),
        },
        measured={"flow": jd.named(side_flow, "time token"), "descent": jd.named(side, "refinement time token")},
        recorded={"solver_steps": solution.steps},
        status=solution.status,
        coords={"refinement": REFINEMENTS, "time": tuple(i / SAMPLES for i in range(SAMPLES + 1))},
    )


def identity_trial(s: OneBlock, key: PRNGKeyArray) -> jd.Observables:
    """The drift of the law along (S)GD, and the sums over its steps of squared increments and of what weight decay takes.

    In addition the sum of every query's logits, which the normalisation of softmax attention conserves.
    """
    # the network, and its mini-batches
    k_build, k_batch = jax.random.split(key)
    params, block, data = build(s, k_build)
    used = used_queries(s)

    def batch(step: Array) -> model.Batch:
        chosen = jax.random.uniform(jax.random.fold_in(k_batch, step), (s.samples,), jnp.float64) < s.fraction
        weight = chosen.astype(jnp.float64)
        return data._replace(weight=weight / jnp.maximum(jnp.sum(weight), 1.0))

    # one step, which adds up the increments and what weight decay takes
    tx = model.make_tx(s.optimizer, s.lr, rates(s))
    advance = train.make_step(lambda p, b: model.training_loss(s.loss, p, block, b, s.weight_decay), tx, batch)

    def step(carry: tuple[train.State, Array, Array, Array]) -> tuple[train.State, Array, Array, Array]:
        state, dv2, dz2, lost = carry
        new = advance(state)
        (v, side), after = sides(s, block, state.params), model.projected(new.params, block)
        pull = s.weight_decay * s.lr * rates(s).w * theory.decay_pull(side, v, s.ratio, s.tau, s.attention)
        return new, dv2 + (after - v) ** 2, dz2 + used @ (new.params.z - state.params.z) ** 2, lost + pull

    # training
    v0, none = model.projected(params, block), jnp.zeros(s.tokens, jnp.float64)
    start = (train.init(tx, params), jnp.zeros_like(v0), none, none)

    def observe(carry: tuple[train.State, Array, Array, Array]) -> tuple[Array, ...]:
        state, dv2, dz2, lost = carry
        increments = theory.discrete_drift(dv2, dz2, s.ratio, s.tau, s.attention)
        return *sides(s, block, state.params), increments, lost, state.params.z

    _, (v, side, increments, lost, z) = train.record(step, start, observe, samples=SAMPLES, every=steps_between(s))
    total = jnp.sum(z, -1)
    return jd.observables(
        predicted={
            "drift": jd.named(increments + lost, "time token"),
            "total": jd.named(jnp.broadcast_to(total[0], total.shape), "time query"),
        },
        measured={"drift": jd.named(side - law(s, v, side), "time token"), "total": jd.named(total, "time query")},
        recorded={
            "side": jd.named(side, "time token"),
            "increments": jd.named(increments, "time token"),
            "lost": jd.named(lost, "time token"),
            "moved": jd.named(jnp.sum(jnp.abs(z - z[0]), -1), "time query"),
            "squares": jd.named(0.5 * s.ratio / s.tau * (jnp.sum(v**2, (1, 2)) - jnp.sum(v0**2)), "time"),
        },
        coords={"time": tuple(i / SAMPLES for i in range(SAMPLES + 1))},
    )
