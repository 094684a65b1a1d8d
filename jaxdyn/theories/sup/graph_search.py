r"""The construction searches random digraphs: its thoughts, fed back one by one, and its answer after each of them.

A run is one set of weights on ``graphs`` digraphs. The prompt is read once into a cache; a step reads one thought, and the answer's
token after it, which the cache forgets. Thoughts are recorded as :math:`U^\top t`, weights of all tokens of the vocabulary. Beside
them, in the same network, thoughts of which only one vertex is fed back, drawn with the squared weights: discrete thoughts.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data import digraphs
from jaxdyn.theories.sup import construction, model
from jaxdyn.theories.sup.construction import Knobs, Sizes
from jaxdyn.theories.sup.dynamics import sets

__all__ = ["EMBEDDINGS", "FORMS", "THRESHOLDS", "Instance", "Search", "instance", "posed", "sizes", "think", "trial"]

EMBEDDINGS = ("orthogonal", "axes", "frame", "random")
THRESHOLDS = ("corrected", "printed", "half")
FORMS = ("printed", "derived")
TIE = 1e-3  # margins below it are ties: the least that counts is (N + 5)^(-1/2)


@jd.setting
class Search:
    """Digraphs, and the construction with factors on its numbers; 0 for ``position``: none."""

    kind: jd.Code = jd.code(*digraphs.KINDS)
    nodes: jd.Swept = 16.0  # vertices of a graph
    embedding: jd.Code = jd.code(*EMBEDDINGS)
    threshold: jd.Code = jd.code(*THRESHOLDS)  # of layer 2: 1/(4 max(m, N)), 1/(4n), 1/2
    rows: jd.Swept = 53.0  # numbers of a block that are used, by frames and random embeddings
    eta: jd.Swept = 1.0
    xi: jd.Swept = 1.0
    tau: jd.Swept = 1.0
    position: jd.Swept = 1.0
    names: int = 48
    edges: int = 40
    thoughts: int = 8
    width: int = 16  # of positions
    graphs: int = 32
    dtype: str = "float64"

    def __post_init__(self) -> None:
        jd.require(
            self, digraphs.LEAST <= self.nodes <= self.names, f"nodes is between {digraphs.LEAST} and names", "nodes", "names"
        )
        for name in ("thoughts", "graphs"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        jd.require(self, self.edges >= 9, "edges is at least 9", "edges")
        jd.require(self, self.width >= 4 and self.width % 2 == 0, "width is even and at least 4", "width")
        jd.require(self, self.rows >= 1, "rows is at least 1", "rows")


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
    draw = lambda k: digraphs.draw(k, s.kind.index, s.nodes, names=s.names, edges=s.edges, steps=s.thoughts)  # noqa: E731
    graphs = jax.vmap(draw)(jax.random.split(k_graph, s.graphs))
    both = jnp.stack([graphs.target, graphs.other], 1)
    return posed(s, k_u, graphs, jnp.where(jax.random.bernoulli(k_order, 0.5, (s.graphs, 1)), both, both[:, ::-1]))


def posed(s: Search, key: PRNGKeyArray, graphs: digraphs.Digraph, candidates: Int[Array, "g 2"]) -> Instance:
    """These graphs and candidates before one set of weights; the threshold of layer 2 is one a graph."""
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
    """Logit of the target less the largest of all others."""
    right = jnp.take_along_axis(logits, jnp.broadcast_to(target[:, None], (*logits.shape[:-1], 1)), -1)[..., 0]
    here = jnp.arange(logits.shape[-1]) == target[:, None]
    return right - jnp.max(jnp.where(here, -jnp.inf, logits), -1)


def needed(margins: Float[Array, "c g"]) -> Int[Array, " g"]:
    """Number of thoughts after which the target leads for the first time, C + 1 if it never does."""
    leads = margins > TIE
    return jnp.where(jnp.any(leads, 0), jnp.argmax(leads, 0), len(margins))


def trial(s: Search, key: PRNGKeyArray) -> jd.Observables:
    """Thoughts beside the sets of breadth-first search and those by weights, and margins after every number of thoughts."""
    k_one, k_walk = jax.random.split(key)
    one = instance(s, k_one)
    vectors, logits = think(s, one, k_walk)
    graphs, size = one.graphs, sizes(s)
    found = jax.vmap(lambda e, r: digraphs.within(e, r, s.names, s.thoughts), out_axes=1)(graphs.edges, graphs.root)
    counted = jax.vmap(lambda e, r, c, t: sets.by_weights(e, r, c, s.names, s.thoughts, t), out_axes=1)(
        graphs.edges, graphs.root, one.candidates, one.threshold
    )
    both = jnp.stack([found, counted])  # [form, c, g, N]
    expected = jax.vmap(lambda held, t: sets.margins(held, t, s.dtype), (2, 0), 2)(both, graphs.target)
    gained = margin(logits, graphs.target)
    away = jnp.sum(~jnp.take_along_axis(found, graphs.target[None, :, None], 2)[..., 0], 0)  # [g]
    size_then = jnp.sum(found, -1)  # [c, g]
    visited = jnp.take_along_axis(size_then, jnp.minimum(away, s.thoughts)[None], 0)[0] - 1
    return jd.observables(
        predicted={
            "thought": jd.named(sets.thoughts(both[:, 1:], size.tokens, s.dtype), "form thought graph token"),
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
            "reached": jd.named(jnp.sum(found[-1], -1), "graph"),
        },
        coords={"form": FORMS, "thought": range(1, s.thoughts + 1), "thoughts": range(s.thoughts + 1)},
    )
