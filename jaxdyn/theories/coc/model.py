r"""One decoder, and the methods that train it to reach a target: what is fed between question and answer, and where the loss is.

After a question the network takes up to l further inputs, one per step of the path of length l; after each number j of them two
things can be read: the next token (logits of the last hidden state), and the answer (logits after a token [A] that is put there and
forgotten). A method is a table: in stage s of its curriculum the loss is

.. math:: \sum_{jk} w_{sjk}\,\mathrm{CE}(\text{logits}_j, v_{k+1}) + \sum_j u_{sj}\,\mathrm{CE}(\text{answer}_j, c^*)

with :math:`v_1 \dots v_l = c^*` the path, and the inputs are the hidden state itself (a thought), a trained pause token, or the
path as text from node s + 1 on. So all methods and stages are one program.

=================  =======  ====================================================================================
method             input    loss in stage s < l; in stage l
=================  =======  ====================================================================================
coconut            hidden   next node after s thoughts; the answer after l
no_curriculum      hidden   the answer after l thoughts in all stages
pause_as_thought   pause    as coconut
pause              pause    the answer after l pauses in all stages
no_thoughts        none     node s + 1 right after the question; the answer there
icot               text     nodes s + 1 to l and the answer, after the question; the answer there
cot                text     all nodes and the answer, in all stages
no_cot             none     the answer right after the question, in all stages
=================  =======  ====================================================================================

Source: arXiv:2412.06769, sections 3 and 4 (methods, curriculum); arXiv:2505.12514, section 5 (one target token per stage, no marks
around thoughts). Departure: where stages are mixed, each example has the expected loss instead of one drawn stage.
Letters: b problems, n tokens of a prompt, l hops, j inputs after it, k nodes, d width, V tokens.

Quantities of a trained network: groups of nodes in its thoughts, edges it looks at, walks, and how open the next node is.

Groups are nested, as published. Of nodes, by thought i: the optimal one (node i of the path), the frontier (nodes at distance i
from the root), reachable nodes (within i steps), unreachable ones (all others). Of edges, by step i, when i - 1 thoughts were read:
the optimal one (from node i - 1 of the path to node i); those whose source is on the frontier, at distance i - 1; those whose
source is within i - 1 steps; and all others. At step 1 only the root is reachable, and frontier and reachable edges are the same.

The published frontier is that of walks: the ends of walks of length i, which may have been passed before. In the trees of
:mod:`jaxdyn.data.reachability` every walk of length i ends at distance i, and the two frontiers are one. A :func:`shortcut` tells
them apart: an edge from the root to a node two steps away, which is then one step away, and still the end of a walk of length two.
Source: arXiv:2505.12514, section 5 and tables 1 and 5 (groups, attention summed over the three tokens of an edge); walks as in its
released analysis; the shortcut is ours.
Letters: g graphs, h heads, i thoughts or steps, l hops, m edges, n tokens, x nodes or edges, d width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn import metrics
from jaxdyn.data import reachability
from jaxdyn.linalg import dense
from jaxdyn.nn import Transformer, attention, thoughts
from jaxdyn.nn.transformer import heads, merged, read, rms_norm, turned

METHODS = ("coconut", "no_curriculum", "pause_as_thought", "pause", "no_thoughts", "icot", "cot", "no_cot")
FEEDS = ("hidden", "pause", "text")
FED = {"cot": "text", "icot": "text", "pause": "pause", "pause_as_thought": "pause"}


class Method(NamedTuple):
    """What is fed (number of a feed), from which node of the path the text starts, and weights of losses, by stage s."""

    feed: Int[Array, ""]
    shift: Int[Array, " s"]
    node: Float[Array, "s j k"]
    answer: Float[Array, "s j"]


class Outputs(NamedTuple):
    """Hidden states and logits after each number of inputs."""

    hidden: Float[Array, "j b d"]
    logits: Float[Array, "j b V"]
    answer: Float[Array, "j b V"]


def method(name: str, hops: int, mixing: float = 0.0) -> Method:
    """The tables of a method; with ``mixing`` that share of the loss is spread over the stages so far (not for icot)."""
    node, answer = np.zeros((hops + 1, hops + 1, hops)), np.zeros((hops + 1, hops + 1))
    shift = np.arange(hops + 1) if name == "icot" else np.zeros(hops + 1, int)
    last = hops if FED.get(name, "hidden") != "text" and name not in ("no_cot", "no_thoughts") else 0
    for s in range(hops + 1):
        if name in ("coconut", "pause_as_thought", "no_thoughts") and s < hops:
            node[s, 0 if name == "no_thoughts" else s, s] = 1
        elif name in ("icot", "cot"):
            left = hops - shift[s]
            node[s, np.arange(left), shift[s] + np.arange(left)] = 1 / (left + 1)
            answer[s, left] = 1 / (left + 1)
        else:
            answer[s, last] = 1
    if name != "icot":
        below = np.tril(np.ones((hops + 1, hops + 1))) / np.arange(1, hops + 2)[:, None]
        spread = (1 - mixing) * np.eye(hops + 1) + mixing * below
        node, answer = np.einsum("st,tjk->sjk", spread, node), spread @ answer
    return Method._make((np.int32(FEEDS.index(FED.get(name, "hidden"))), shift.astype(np.int32), node, answer))


def outputs(
    shape: Transformer,
    params: PyTree,
    tokens: Int[Array, "b n"],
    feed: Callable[[Float[Array, "b d"], Int[Array, ""]], Float[Array, "b d"]],
    count: int,
    ask: int,
) -> Outputs:
    """Next tokens and answers after 0 to ``count`` inputs; ``ask`` is the number of [A]."""
    asked = dense(jax.nn.one_hot(tokens, shape.vocabulary, dtype=shape.dtype), params["embed"])  # a gather's gradient is slow here
    past = thoughts.remember(shape, params, asked[:, :-1])

    def one(carry: tuple[Array, list], j: Int[Array, ""]) -> tuple[tuple[Array, list], Array]:
        x, recent = carry
        out, recent = thoughts.step(shape, params, past, recent, x[:, None], j)
        return (feed(out[:, 0], j), recent), out[:, 0]

    first = asked[:, -1], thoughts.room(past, count + 1)
    (_, recent), hidden = jax.lax.scan(one, first, jnp.arange(count + 1, dtype=jnp.int32))
    marked = jnp.broadcast_to(params["embed"][ask], (len(tokens), count + 1, shape.width))
    answers = jnp.moveaxis(thoughts.aside(shape, params, past, recent, marked), 0, 1)
    return Outputs(hidden, read(shape, params, hidden), read(shape, params, answers))


def fed(params: PyTree, how: Method, stage: Int[Array, ""], path: Int[Array, "b l1"], pause: int) -> Callable[..., Array]:
    """What is fed in training: thoughts, pauses, or the path."""

    def feed(hidden: Float[Array, "b d"], c: Int[Array, ""]) -> Float[Array, "b d"]:
        text = params["embed"][path[:, jnp.minimum(1 + c + how.shift[stage], path.shape[1] - 1)]]
        rest = jnp.broadcast_to(params["embed"][pause], hidden.shape)
        return jax.lax.select_n(how.feed, hidden, rest, text)

    return feed


def objective(
    shape: Transformer,
    params: PyTree,
    how: Method,
    stage: Int[Array, ""],
    tokens: Int[Array, "b n"],
    path: Int[Array, "b l1"],
    marks: tuple[int, int],
) -> Float[Array, ""]:
    """The mean loss of a stage; ``marks`` are the numbers of [A] and of the pause token. As many inputs as the table has rows."""
    out = outputs(shape, params, tokens, fed(params, how, stage, path, marks[1]), how.node.shape[1] - 1, marks[0])
    nats = -jax.nn.log_softmax(out.logits)  # [j, b, V]
    nodes = jnp.take_along_axis(nats, path[None, :, 1:], -1)
    right = -jnp.take_along_axis(jax.nn.log_softmax(out.answer), path[None, :, -1:], -1)[..., 0]
    node, answer = how.node[stage].astype(nats.dtype), how.answer[stage].astype(nats.dtype)
    return (jnp.einsum("jk,jbk->", node, nodes) + jnp.einsum("j,jb->", answer, right)) / len(tokens)


ORDERS = ("optimal - frontier", "frontier - reachable", "reachable - unreachable")


class Posed(NamedTuple):
    """Problems, their prompts, and steps from the root to every node."""

    problem: reachability.Problem
    tokens: Int[Array, "g n"]
    away: Int[Array, "g names"]


def pose(problem: reachability.Problem, sizes: reachability.Sizes) -> Posed:
    """Problems with their prompts and distances."""
    tokens = jax.vmap(lambda p: reachability.render(p, sizes))(problem)
    return Posed(problem, tokens, jax.vmap(lambda p: reachability.levels(p, sizes))(problem))


def passed(
    shape: Transformer, params: PyTree, x: Float[Array, "g n d"]
) -> tuple[Float[Array, "g n d"], list[Float[Array, "g h n n"]]]:
    """Hidden states after the last norm for whole sequences of inputs in one causal pass, and every layer's attention weights."""
    maps = []
    for layer in shape.walk:
        w = jax.tree.map(lambda a, i=layer: a[i], params["blocks"])
        q, k, v = heads(shape, x, w)
        k, v = (jnp.repeat(part, shape.heads // shape.key_heads, axis=-2) for part in (turned(shape, k), v))
        mask = attention.causal_mask(x.shape[-2])
        out, b = attention.attend(turned(shape, q), k, v, kind=shape.attention, mask=mask)
        x = merged(shape, x, out, w)
        maps.append(b)
    return rms_norm(x, params["norm"], shape.epsilon), maps


def edges_seen(maps: Float[Array, "g h n n"], edges: int, steps: int) -> Float[Array, "i g m"]:
    """Attention to every edge at steps 1 to ``steps``: of the last token of the prompt and of each thought, mean over heads.

    Summed over the three tokens of the edge: source, target, and the mark after it (for the last edge this is [Q]).
    """
    first = 3 * edges + 4  # the last token of the prompt
    seen = maps[:, :, first : first + steps, 1 : 1 + 3 * edges]
    each = seen.reshape(*seen.shape[:-1], edges, 3).sum(-1)
    return jnp.moveaxis(each.mean(1), 1, 0)


def student(values: Float[Array, "*rest g"]) -> Float[Array, "*rest"]:
    """Student's t of the mean over graphs."""
    t: Array = jnp.mean(values, -1) / jnp.maximum(jnp.std(values, -1, ddof=1), 1e-9) * values.shape[-1] ** 0.5
    return t


def between(values: Float[Array, "i g x"], groups: tuple[Bool[Array, "i g x"], ...]) -> Float[Array, "i order g"]:
    """Mean over a group minus that over the next one, for every graph."""

    def mean(group: Bool[Array, "i g x"]) -> Float[Array, "i g"]:
        return jnp.sum(jnp.where(group, values, 0), -1) / jnp.sum(group, -1).astype(values.dtype)

    means = jnp.stack([mean(group) for group in groups], 1)
    return means[:, :-1] - means[:, 1:]


def gaps(products: Float[Array, "i g names"], of: Posed) -> Float[Array, "kind i order g"]:
    """Mean inner product of a group of nodes minus that of the next one, for every graph: nested groups, then disjoint ones."""
    count = len(products)
    i = jnp.arange(1, count + 1, dtype=jnp.int32)[:, None, None]
    optimal = jnp.moveaxis(of.problem.path[:, 1 : count + 1], 1, 0)[..., None] == jnp.arange(products.shape[-1])
    front, near, far = of.away == i, of.away < i, of.away > i
    kinds = (optimal, front, front | near, far), (optimal, front & ~optimal, near, far)
    return jnp.stack([between(products, groups) for groups in kinds])


def edge_groups(of: Posed, steps: int) -> tuple[Bool[Array, "i g m"], ...]:
    """Optimal, frontier, reachable and unreachable edges at steps 1 to ``steps``."""
    i = jnp.arange(steps, dtype=jnp.int32)[:, None, None]
    source = jnp.take_along_axis(of.away, of.problem.edges[..., 0], -1)[None]
    path = jnp.moveaxis(of.problem.path, 1, 0)[..., None]
    optimal = (of.problem.edges[None, ..., 0] == path[:steps]) & (of.problem.edges[None, ..., 1] == path[1 : steps + 1])
    return optimal, source == i, source <= i, source > i


def walks(problem: reachability.Problem, sizes: reachability.Sizes, steps: int) -> Bool[Array, "i1 names"]:
    """The ends of walks of 0 to ``steps`` edges from the root."""
    at = [jnp.arange(sizes.nodes) == problem.roots[0]]
    for _ in range(steps):
        from_here = at[-1][problem.edges[:, 0]]
        at.append(jnp.zeros(sizes.nodes, bool).at[problem.edges[:, 1]].max(from_here))
    return jnp.stack(at)


def shortcut(of: Posed) -> tuple[reachability.Problem, Int[Array, " g"]]:
    """An edge from the root to a node at distance two off the path, and that node; of every graph.

    It replaces an edge of the other family into a node from which no edge starts and which is no candidate.
    """

    def one(problem: reachability.Problem, away: Int[Array, " names"]) -> tuple[reachability.Problem, Array]:
        names = jnp.arange(away.size, dtype=jnp.int32)
        node = jnp.argmax((away == 2) & (names != problem.path[2])).astype(jnp.int32)
        inner = jnp.zeros(away.size, bool).at[problem.edges[:, 0]].set(True)
        idle = ~inner & (away == jnp.max(away)) & (names != problem.candidates[1])
        gone = problem.edges[:, 1] == jnp.argmax(idle)
        new = jnp.stack([problem.roots[0], node])
        return problem._replace(edges=jnp.where(gone[:, None], new, problem.edges)), node

    return jax.vmap(one)(of.problem, of.away)


def open_children(products: Float[Array, "i g names"], of: Posed) -> Float[Array, "i g"]:
    """Entropy of the values of the nodes at distance i, by thought i: probabilities of the next node, among these nodes alone."""
    i = jnp.arange(1, len(products) + 1, dtype=jnp.int32)[:, None, None]
    return metrics.entropy(jax.nn.softmax(jnp.where(of.away == i, products, -jnp.inf), -1))
