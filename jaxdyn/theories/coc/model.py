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
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from jaxdyn.linalg import dense
from jaxdyn.nn import Transformer, thoughts
from jaxdyn.nn.transformer import read

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
    return Method(np.int32(FEEDS.index(FED.get(name, "hidden"))), shift.astype(np.int32), node, answer)


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
