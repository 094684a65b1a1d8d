r"""What a network writes after k thoughts: the right path, a real path to the wrong node, or an edge that does not exist.

A network is trained as in the paper's stages: in stage s the first s steps are thoughts, and the loss is that of all the steps that
are left, and of the answer after them. In a share of the steps the stage is drawn from those so far, so that the network can be
asked with any number of thoughts. Then it is: k thoughts, and the rest of the path written greedily. Classes of what is written:

- "correct path": every step is an edge (after thoughts the first written node is as many steps from the root as it should be), and
  the end is the target;
- "wrong target": every step is an edge, and the end is another node;
- "hallucination": some step is none.

In the graphs of :mod:`jaxdyn.data.reachability` paths are unique, so that there is no longer one. With all steps thought only the
answer is left: right, or wrong.
Source: arXiv:2412.06769, section 5 (classes; a random stage in a share of examples); sizes ours.
Letters: g graphs, l hops, j inputs, k thoughts, n nodes, V tokens.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import train
from jaxdyn.nn.transformer import init
from jaxdyn.theories.coc import model
from jaxdyn.theories.coc.model import Posed
from jaxdyn.theories.coc.training import Training, marks, rate, sample_problems, shape, sizes, stage

CLASSES = ("correct path", "wrong target", "hallucination")


def loss(s: Training, params: PyTree, now: Int[Array, ""], posed: Posed) -> Float[Array, ""]:
    """Mean cross-entropy of the nodes that are written in a stage, and of the answer."""
    path = posed.problem.path

    def feed(hidden: Float[Array, "g d"], j: Int[Array, ""]) -> Float[Array, "g d"]:
        return jnp.where(j < now, hidden, params["embed"][path[:, jnp.minimum(j + 1, s.hops)]])

    out = model.outputs(shape(s), params, posed.tokens, feed, s.hops, marks(s)[0])
    nodes = jnp.take_along_axis(-jax.nn.log_softmax(out.logits[:-1]), path.T[1:, :, None], -1)[..., 0]  # [j, g]
    answer = -jnp.take_along_axis(jax.nn.log_softmax(out.answer[-1]), path[:, -1:], -1)
    left = (jnp.arange(s.hops) >= now).astype(nodes.dtype)
    return (jnp.sum(left @ nodes) + jnp.sum(answer)) / (jnp.sum(left) + 1) / len(path)


def trained(s: Training, key: PRNGKeyArray, params: PyTree) -> PyTree:
    """The weights at the end."""
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.95), optax.scale_by_schedule(lambda i: -rate(s, i)))

    def step(now: train.State) -> train.State:
        k_data, k_mixed, k_stage = jax.random.split(jax.random.fold_in(key, now.step), 3)
        posed, latest = sample_problems(s, k_data, s.batch), stage(s, now.step)
        mixed = jax.random.uniform(k_mixed, (), s.dtype) < s.mixing
        at = jnp.where(mixed, jax.random.randint(k_stage, (), 0, latest + 1), latest)
        return train.descend(tx, now, jax.grad(lambda w: loss(s, w, at, posed))(now.params))

    every = jnp.round(s.every).astype(jnp.int32)
    return train.record(step, train.init(tx, params), lambda state: state.step, samples=s.samples, every=every)[0].params


def written(s: Training, params: PyTree, posed: Posed, thoughts: Int[Array, ""]) -> tuple[Int[Array, "j g"], Int[Array, " g"]]:
    """Nodes that are the likeliest after 0 to l - 1 inputs, of which the first are thoughts, and the answer after l inputs."""

    def feed(hidden: Float[Array, "g d"], j: Int[Array, ""]) -> Float[Array, "g d"]:
        likeliest = jnp.argmax((hidden @ params["embed"].T)[:, : sizes(s).nodes], -1)
        return jnp.where(j < thoughts, hidden, params["embed"][likeliest])

    out = model.outputs(shape(s), params, posed.tokens, feed, s.hops, marks(s)[0])
    return jnp.argmax(out.logits[: s.hops, :, : sizes(s).nodes], -1), jnp.argmax(out.answer[-1], -1)


def classified(nodes: Int[Array, "j g"], answer: Int[Array, " g"], posed: Posed, thoughts: Int[Array, ""]) -> Int[Array, " g"]:
    """The number of the class of each problem; with all steps thought by the answer alone, where a wrong one is a wrong target."""
    problem, hops = posed.problem, len(nodes)
    before = jnp.concatenate([problem.roots[:, :1].T, nodes[:-1]])
    edge = jnp.any((problem.edges[None, ..., 0] == before[..., None]) & (problem.edges[None, ..., 1] == nodes[..., None]), -1)
    j = jnp.arange(hops)[:, None]
    reached = jnp.take_along_axis(posed.away, nodes.T, -1).T == j + 1  # as many steps from the root as inputs
    real = jnp.all(jnp.where(j < thoughts, True, jnp.where((j == thoughts) & (thoughts > 0), reached, edge)), 0)
    end = jnp.where(thoughts == hops, answer, nodes[-1])
    return jnp.where(real, jnp.where(end == problem.candidates[:, 0], 0, 1), 2)


def trial(s: Training, key: PRNGKeyArray) -> jd.Observables:
    """Shares of classes after 0 to l thoughts, and of right answers; ``recipe`` and ``mixing`` are as for Coconut."""
    k_init, k_data, k_problems = jax.random.split(key, 3)
    params = trained(s, k_data, init(shape(s), k_init))
    posed = sample_problems(s, k_problems, s.graphs)

    def asked(thoughts: Int[Array, ""]) -> tuple[Array, Array]:
        nodes, answer = written(s, params, posed, thoughts)
        kind = classified(nodes, answer, posed, thoughts)
        shares = jnp.mean((kind[:, None] == jnp.arange(len(CLASSES))).astype(s.dtype), 0)
        return shares, jnp.mean((answer == posed.problem.candidates[:, 0]).astype(s.dtype))

    shares, right = jax.lax.map(asked, jnp.arange(s.hops + 1, dtype=jnp.int32))
    return jd.observables(
        predicted={},
        measured={"share": jd.named(shares, "thoughts outcome"), "right": jd.named(right, "thoughts")},
        coords={"outcome": CLASSES, "thoughts": range(s.hops + 1)},
        status=train.finite_status(params),
    )
