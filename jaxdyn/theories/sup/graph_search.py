r"""The construction searches random digraphs: its thoughts, fed back one by one, and its answer after each of them.

A run is one set of weights on ``graphs`` digraphs. The prompt is read once into a cache; a step reads one thought, and the answer's
token after it, which the cache forgets. Thoughts are recorded as :math:`U^\top t`, weights of all tokens of the vocabulary. The
same network also has discrete thoughts: only one vertex is fed back, chosen at random with the squared weights.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data import digraphs
from jaxdyn.theories.sup import construction, dynamics, model
from jaxdyn.theories.sup.construction import Knobs, Sizes

EMBEDDINGS = ("orthogonal", "axes", "frame", "random")
THRESHOLDS = ("corrected", "printed", "half")
FORMS = ("printed", "derived")
TIE = 1e-3  # margins below it are ties: the least that counts is (N + 5)^(-1/2)


@jd.setting
class Search:
    """Digraphs, and the construction with factors on its numbers."""

    kind: jd.Code = jd.code(*digraphs.KINDS)  # of the digraphs; no_exit: no edge at the root
    nodes: jd.Swept = jd.field(16.0, at_least=digraphs.LEAST, whole=True)  # vertices of a graph
    embedding: jd.Code = jd.code(*EMBEDDINGS)  # of the tokens: random orthogonal, unit axes, a frame, random
    threshold: jd.Code = jd.code(*THRESHOLDS)  # of layer 2: 1/(4 max(m, N)), 1/(4n), 1/2
    rows: jd.Swept = jd.field(53.0, at_least=1, whole=True)  # numbers of a block that are used, by frames and random embeddings
    eta: jd.Swept = jd.field(1.0, role="none")  # factor on eta, of the keys in layer 1
    xi: jd.Swept = 1.0  # factor on xi, of the queries that look at place 1
    tau: jd.Swept = 1.0  # factor on tau, of the keys in layer 2
    position: jd.Swept = 1.0  # factor on the positions; 0: none
    names: int = 48  # N, names that vertices may have
    edges: int = jd.field(40, at_least=9)  # m, edges of a digraph
    thoughts: int = jd.field(8, at_least=1)  # C, thoughts that are fed back
    width: int = jd.field(16, at_least=4)  # of positions
    graphs: int = jd.field(32, at_least=1)  # digraphs for one set of weights
    dtype: str = "float64"

    def __post_init__(self) -> None:
        jd.require(self, self.nodes <= self.names, "nodes is at most names", "nodes", "names")
        jd.require(self, self.width % 2 == 0, "width is even", "width")


class Instance(NamedTuple):
    """Weights, graphs, prompts and the threshold of layer 2."""

    params: model.Params
    graphs: digraphs.Digraph
    candidates: Int[Array, "g 2"]
    tokens: Int[Array, "g n"]
    threshold: Float[Array, " g"]


def sizes(s: Search) -> Sizes:
    """Sizes of the construction."""
    return Sizes(names=s.names, edges=s.edges, thoughts=s.thoughts, width=s.width)


def instance(s: Search, key: PRNGKeyArray) -> Instance:
    """One set of weights and random graphs."""
    k_u, k_graph, k_order = jax.random.split(key, 3)

    def sample(k: PRNGKeyArray) -> digraphs.Digraph:
        return digraphs.draw(k, s.kind.index, s.nodes, names=s.names, edges=s.edges, steps=s.thoughts)

    graphs = jax.vmap(sample)(jax.random.split(k_graph, s.graphs))
    both = jnp.stack([graphs.target, graphs.other], 1)
    return posed(s, k_u, graphs, jnp.where(jax.random.bernoulli(k_order, 0.5, (s.graphs, 1)), both, both[:, ::-1]))


def posed(s: Search, key: PRNGKeyArray, graphs: digraphs.Digraph, candidates: Int[Array, "g 2"]) -> Instance:
    """These graphs and candidates for one set of weights; every graph has its own threshold of layer 2."""
    size = sizes(s)
    tokens = jax.vmap(lambda e, c, r: construction.prompt(size, e, c, r))(graphs.edges, candidates, graphs.root)
    orthogonal = construction.orthogonal(key, size.tokens, s.dtype)
    frame = construction.narrow(orthogonal, s.rows)
    loose = construction.narrow(jax.random.normal(key, orthogonal.shape, s.dtype), s.rows)
    each = (orthogonal, jnp.eye(size.tokens, dtype=s.dtype), frame, loose)
    safe = construction.safe(size, dtype=s.dtype)
    knobs = Knobs(s.eta * safe.eta, s.xi * safe.xi, s.tau * safe.tau, safe.first, safe.second, s.position)
    params = construction.build(size, jax.lax.select_n(s.embedding.index, *each), knobs)
    met = jax.vmap(lambda e, r: jnp.zeros(s.names, bool).at[e].set(True).at[r].set(True))(graphs.edges, graphs.root)
    printed = 1 / (4 * jnp.sum(met, 1).astype(s.dtype))
    cuts = (jnp.full_like(printed, safe.second), printed, jnp.full_like(printed, 0.5))
    return Instance(params, graphs, candidates, tokens, jax.lax.select_n(s.threshold.index, *cuts))


def think(s: Search, one: Instance, key: PRNGKeyArray) -> tuple[Float[Array, "feedback c g V"], Float[Array, "feedback c g V"]]:
    """Thoughts 1 to C + 1 and logits after 0 to C thoughts, with the whole thought fed back, and with one vertex of it."""
    size = sizes(s)
    first, second = one.params.layers
    params = one.params._replace(layers=(first, second._replace(threshold=one.threshold[:, None, None])))
    contents = params.embed[one.tokens]
    last = size.prompt - 1
    past = model.forward(params, model.inputs(params, contents[:, :last], jnp.arange(last)))[1]
    answer = jnp.broadcast_to(params.embed[s.names + 4], (len(one.tokens), 1, params.embed.shape[1]))

    def run(discrete: Bool[Array, ""]) -> tuple[Array, Array]:
        def think_once(carry: tuple[Array, list[model.Cache]], c: Int[Array, ""]) -> tuple[tuple[Array, list[model.Cache]], tuple]:
            x, recent = carry
            pair = model.inputs(params, jnp.concatenate([x, answer], 1), last + c + jnp.arange(2))
            y, recent, _ = model.step(params, past, recent, pair, c)
            weights = y @ params.head
            drawn = jax.random.categorical(jax.random.fold_in(key, c), 2 * jnp.log(jnp.maximum(weights[:, :1, : s.names], 1e-6)))
            return (jnp.where(discrete, params.embed[drawn], y[:, :1]), recent), (weights[:, 0], weights[:, 1])

        first = (contents[:, last:], model.empty(past, s.thoughts + 2))
        return jax.lax.scan(think_once, first, jnp.arange(s.thoughts + 1, dtype=jnp.int32))[1]

    return jax.vmap(run)(jnp.array([False, True]))


def margin(logits: Float[Array, "*c g V"], target: Int[Array, " g"]) -> Float[Array, "*c g"]:
    """Logit of the target minus the largest of all others."""
    right = jnp.take_along_axis(logits, jnp.broadcast_to(target[:, None], (*logits.shape[:-1], 1)), -1)[..., 0]
    here = jnp.arange(logits.shape[-1]) == target[:, None]
    return right - jnp.max(jnp.where(here, -jnp.inf, logits), -1)


def needed(margins: Float[Array, "c g"]) -> Int[Array, " g"]:
    """Number of thoughts after which the target leads for the first time, C + 1 if it never does."""
    leads = margins > TIE
    return jnp.where(jnp.any(leads, 0), jnp.argmax(leads, 0), len(margins))


def trial(s: Search, key: PRNGKeyArray) -> jd.Observables:
    """Thoughts next to the sets of breadth-first search and those by weights, and margins after every number of thoughts."""
    # the network's thoughts and logits
    k_one, k_walk = jax.random.split(key)
    one = instance(s, k_one)
    vectors, logits = think(s, one, k_walk)
    graphs, size = one.graphs, sizes(s)
    # sets by breadth-first search and by counting edges, with their margins
    within = jax.vmap(lambda e, r: digraphs.within(e, r, s.names, s.thoughts), out_axes=1)(graphs.edges, graphs.root)
    counted = jax.vmap(lambda e, r, c, t: dynamics.by_weights(e, r, c, s.names, s.thoughts, t), out_axes=1)(
        graphs.edges, graphs.root, one.candidates, one.threshold
    )
    both = jnp.stack([within, counted])  # [form, c, g, N]
    expected = jax.vmap(lambda members, t: dynamics.margins(members, t, s.dtype), (2, 0), 2)(both, graphs.target)
    # margins of the network, and distances of the targets
    gained = margin(logits, graphs.target)
    away = jnp.sum(~jnp.take_along_axis(within, graphs.target[None, :, None], 2)[..., 0], 0)  # [g]
    size_then = jnp.sum(within, -1)  # [c, g]
    visited = jnp.take_along_axis(size_then, jnp.minimum(away, s.thoughts)[None], 0)[0] - 1
    return jd.observables(
        predicted={
            "thought": jd.named(dynamics.thoughts(both[:, 1:], size.tokens, s.dtype), "form thought graph token"),
            "margin": jd.named(expected, "form thoughts graph"),
            "steps": jd.named(away, "graph"),
        },
        measured={
            "thought": jd.named(vectors[0, : s.thoughts], "thought graph token"),
            "margin": jd.named(gained[0], "thoughts graph"),
            "steps": jd.named(needed(gained[0]), "graph"),
        },
        recorded={
            "discrete_thought": jd.named(vectors[1, : s.thoughts], "thought graph token"),
            "discrete_margin": jd.named(gained[1], "thoughts graph"),
            "discrete_steps": jd.named(needed(gained[1]), "graph"),
            "visited": jd.named(visited, "graph"),
            "reached": jd.named(jnp.sum(within[-1], -1), "graph"),
        },
        coords={"form": FORMS, "thought": range(1, s.thoughts + 1), "thoughts": range(s.thoughts + 1)},
    )
