"""What the laboratory trains on: sequences with known structure, by name, for the same training and the same instruments.

A source says how many tokens there are and how long a sequence is. ``world(key)`` draws what is the same in a whole run, such as
a chain's law or which facts there are; ``batch(world, key, count)`` draws sequences with what comes next, how much it counts, and
what is known of them. Where only one token of a sequence is to be said, it comes after the last place.

Also known are the law of a class's tokens, those that are common and those of each class; which answers there are to classes,
trees and groups; and all questions of facts with their answers and whether they are held out, by direction and pair.

========  ==============================================================================  ======================================
name      sequences                                                                       known
========  ==============================================================================  ======================================
classes   tokens of a class, common and its own, then a query; next: the class's token    class
trees     leaves of a latent tree, present or absent, then a query; next: the root        class, leaves
groups    two elements of Z23 and a query; next: their sum; some pairs are held out       left, right, held
facts     a name and a direction; next: its partner; of some names one direction is held  pair, direction, held
markov    a Markov chain, all next tokens                                                 state
copies    Bigram-Backcopy: after a trigger the token before it comes again                due
recall    facts stated once in a chain and asked for later                                asked
paths     search logs on random trees (reasoning traces), all next tokens                 trace
text      characters of the interpreter's manual, all next tokens                         nothing
========  ==============================================================================  ======================================

Source: arXiv:2305.16380, section 7 (classes); arXiv:2310.00535, section 5 (trees); arXiv:2405.04669, section 2 (facts);
arXiv:2410.13835, section 2 (copies). Letters: b sequences of n tokens, V tokens.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn.data import backcopy, classes, recall, traces, trees
from jaxdyn.instruments.moment import Batch
from jaxdyn.text import sources

__all__ = ["TASKS", "Task"]


class Task(NamedTuple):
    """One source of sequences."""

    vocabulary: int
    length: int  # tokens that the network reads
    world: Callable[[PRNGKeyArray], PyTree]
    batch: Callable[[PyTree, PRNGKeyArray, int], Batch]


def last_only(tokens: Int[Array, "b n"], target: Int[Array, " b"], known: dict[str, Array], counted: Any = 1.0) -> Batch:
    """Sequences of which only the token after the last place is to be said; ``counted`` are weights of sequences."""
    each = jnp.broadcast_to(jnp.asarray(counted, jnp.float32), target.shape)
    weights = jnp.zeros(tokens.shape, jnp.float32).at[:, -1].set(each / jnp.maximum(jnp.sum(each), 1))
    return Batch(tokens, jnp.zeros_like(tokens).at[:, -1].set(target), weights, known)


def every_next(sequences: Int[Array, "b n1"], known: dict[str, Array], first: int = 0) -> Batch:
    """Sequences of which every next token counts, from a place on."""
    tokens, targets = sequences[:, :-1], sequences[:, 1:]
    counted = jnp.arange(tokens.shape[1]) >= first
    weights = jnp.broadcast_to(counted / (jnp.sum(counted) * tokens.shape[0]), tokens.shape).astype(jnp.float32)
    return Batch(tokens, targets, weights, known)


# sequences of which one token is to be said

CLASSES = classes.Vocabulary(num_last=1, num_next_per_last=4, common=4, distinct=4)
CONTEXT = 15


def _classes(world: Float[Array, " S"], key: PRNGKeyArray, count: int) -> Batch:
    """Tokens are drawn independently from the class's law; the world is that law on a class's support."""
    k_class, k_token = jax.random.split(key)
    chosen = jax.random.randint(k_class, (count,), 0, CLASSES.classes, jnp.int32)
    u = jax.random.uniform(k_token, (count, CONTEXT), jnp.float32)
    place = jnp.sum(u[..., None] >= jnp.cumsum(world)[:-1].astype(jnp.float32), -1)
    query = CLASSES.contextual + jnp.asarray(CLASSES.query, jnp.int32)[chosen]
    label, support = jnp.asarray(CLASSES.label, jnp.int32), jnp.asarray(CLASSES.support, jnp.int32)
    known = {"class": chosen, "law": world, "answers": label}
    tokens = support[chosen[:, None], place]
    known |= {"common": support[0, : CLASSES.common], "own": support[:, CLASSES.common :]}
    return last_only(jnp.concatenate([tokens, query[:, None]], 1), label[chosen], known)


ROOTS, EDGES, TOPS, POLARITY = 4, 2, 2, 0.9


def _tree(key: PRNGKeyArray) -> trees.Tree:
    """Top latents that tell the classes apart, each by a random sign, and symmetric channels below them."""
    signs = jax.random.permutation(key, jnp.asarray([[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0]], jnp.float32), axis=1)
    return trees.Tree(jnp.full(ROOTS, 1 / ROOTS, jnp.float32), POLARITY * signs, trees.symmetric(POLARITY, EDGES, "float32"))


def _trees(world: trees.Tree, key: PRNGKeyArray, count: int) -> Batch:
    """A place for every leaf: token 2 l says that leaf l is present, 2 l + 1 that it is absent."""
    label, leaves = trees.sample(world, key, count)
    present = leaves.reshape(count, -1)
    places = TOPS * 2**EDGES
    tokens = 2 * jnp.arange(places, dtype=jnp.int32) + ~present
    query = jnp.full((count, 1), 2 * places, jnp.int32)
    answers = 2 * places + 1 + jnp.arange(ROOTS, dtype=jnp.int32)
    return last_only(jnp.concatenate([tokens, query], 1), answers[label], {"class": label, "leaves": present, "answers": answers})


ORDER, HELD = 23, 0.2


def _pairs(key: PRNGKeyArray) -> Array:
    """Which pairs are held out."""
    return jax.random.uniform(key, (ORDER, ORDER), jnp.float32) < HELD


def _groups(world: Array, key: PRNGKeyArray, count: int) -> Batch:
    """Pairs of residues with their sum. Held-out pairs are among the sequences and do not count; at 529 there is each pair once."""
    several = count != ORDER**2
    number = jax.random.randint(key, (count,), 0, ORDER**2, jnp.int32) if several else jnp.arange(count, dtype=jnp.int32)
    left, right = number // ORDER, number % ORDER
    held = world[left, right]
    tokens = jnp.stack([left, right, jnp.full_like(left, ORDER)], 1)
    known = {"left": left, "right": right, "held": held, "answers": jnp.arange(ORDER, dtype=jnp.int32)}
    return last_only(tokens, (left + right) % ORDER, known, ~held)


NAMES = 24  # pairs; of the last third one direction is held out


def _partners(key: PRNGKeyArray) -> dict[str, Array]:
    """Names of both sides of every pair, and which direction of the last third is trained."""
    k_name, k_side = jax.random.split(key)
    names = jax.random.permutation(k_name, 2 * NAMES).astype(jnp.int32).reshape(2, NAMES)
    return {"names": names, "trained": jax.random.bernoulli(k_side, 0.5, (NAMES,)).astype(jnp.int32)}


def _facts(world: dict[str, Array], key: PRNGKeyArray, count: int) -> Batch:
    """All facts in both directions, again and again; a direction that is held out is among them and does not count."""
    del key
    direction, pair = jnp.indices((2, NAMES), jnp.int32)
    questions = jnp.stack([world["names"], 2 * NAMES + direction], -1)
    answers, unseen = world["names"][::-1], (pair >= NAMES * 2 // 3) & (world["trained"] != direction)
    number = np.arange(count) % (2 * NAMES)
    tokens, target, held = questions.reshape(-1, 2)[number], answers.ravel()[number], unseen.ravel()[number]
    known = {"pair": pair.ravel()[number], "direction": direction.ravel()[number], "held": held}
    return last_only(tokens, target, known | {"questions": questions, "answers": answers, "unseen": unseen}, ~held)


# sequences of which every next token is to be said

STATES, TEXT = 16, 32


def _chain(key: PRNGKeyArray) -> Float[Array, "V V"]:
    return jax.random.dirichlet(key, jnp.full((STATES,), 0.3, jnp.float32), (STATES,), jnp.float32)


def _markov(world: Float[Array, "V V"], key: PRNGKeyArray, count: int) -> Batch:
    k_first, k_next = jax.random.split(key)
    limits = jnp.cumsum(world, 1)[:, :-1]

    def step(now: Int[Array, " b"], u: Float[Array, " b"]) -> tuple[Array, Array]:
        following = jnp.sum(u[:, None] >= limits[now], -1, dtype=jnp.int32)
        return following, following

    first = jax.random.randint(k_first, (count,), 0, STATES, jnp.int32)
    _, rest = jax.lax.scan(step, first, jax.random.uniform(k_next, (TEXT, count), jnp.float32))
    sequences = jnp.concatenate([first[None], rest]).T
    return every_next(sequences, {"state": sequences[:, :-1]})


COPIES = 24  # tokens


def _copies(world: backcopy.Law, key: PRNGKeyArray, count: int) -> Batch:
    sequences = jax.vmap(lambda k: backcopy.draw(k, world, TEXT + 1))(jax.random.split(key, count))
    return every_next(sequences, {"due": backcopy.due(world, sequences[:, :-1])}, first=2)


SIZES = recall.Sizes(fillers=8, keys=3, values=3)


def _recall(world: Float[Array, "F1 F"], key: PRNGKeyArray, count: int) -> Batch:
    sequences = jax.vmap(lambda k: recall.draw(k, SIZES, world, TEXT + 1))(jax.random.split(key, count))
    tokens = sequences[:, :-1]
    return every_next(sequences, {"asked": (tokens >= SIZES.questions) & (tokens < SIZES.answers)})


FOREST = traces.Forest(children=2, height=2)


def _paths(world: Array, key: PRNGKeyArray, count: int) -> Batch:
    del world
    drawn = jax.vmap(lambda k: traces.draw(k, FOREST))(jax.random.split(key, count))
    sequences = jnp.concatenate([drawn.prompt, drawn.trace, drawn.target[:, None]], 1)
    place = jnp.broadcast_to(jnp.arange(sequences.shape[1] - 1) >= FOREST.prompt - 1, (count, sequences.shape[1] - 1))
    return every_next(sequences, {"trace": place}, first=FOREST.prompt - 1)


LETTERS, PRINTED = 2**16, 128  # characters of the manual, and how many there are in ASCII


@functools.cache
def manual() -> Int[np.ndarray, " n"]:
    """The beginning of the interpreter's manual as numbers of characters; bytes beyond ASCII are 0."""
    stream = sources.load("topics", "bytes").train[:LETTERS]
    return np.where(stream < PRINTED, stream, 0).astype(np.uint8)


def _text(world: Array, key: PRNGKeyArray, count: int) -> Batch:
    del world
    stream = jnp.asarray(manual())
    first = jax.random.randint(key, (count, 1), 0, stream.size - TEXT, jnp.int32)
    return every_next(stream[first + jnp.arange(TEXT + 1, dtype=jnp.int32)].astype(jnp.int32), {})


TASKS: dict[str, Task] = {
    "classes": Task(CLASSES.size, CONTEXT + 1, lambda key: classes.law(CLASSES, dtype="float32"), _classes),
    "trees": Task(2 * TOPS * 2**EDGES + 1 + ROOTS, TOPS * 2**EDGES + 1, _tree, _trees),
    "groups": Task(ORDER + 1, 3, _pairs, _groups),
    "facts": Task(2 * NAMES + 2, 2, _partners, _facts),
    "markov": Task(STATES, TEXT, _chain, _markov),
    "copies": Task(COPIES, TEXT, lambda key: backcopy.law(key, COPIES), _copies),
    "recall": Task(SIZES.vocabulary, TEXT, lambda key: recall.chain(key, SIZES), _recall),
    "paths": Task(FOREST.text, FOREST.prompt + FOREST.trace, lambda key: jnp.zeros(()), _paths),
    "text": Task(PRINTED, TEXT, lambda key: jnp.zeros(()), _text),
}
