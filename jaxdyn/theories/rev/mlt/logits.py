r"""Facts as sentences for transformers of several layers, the logits between their entities, and how asymmetric attention is.

Sequences of words and relations for a multi-layer transformer; a word is an entity's name of k tokens.

``reversal``: pairs, :math:`A_i \to B_i` and :math:`B_i \leftarrow A_i`; training holds both of a training pair and one, at random,
of a validation pair; the other one is for validation. ``cot``: triples, :math:`A_i \to B_i`, :math:`B_i \to C_i` (direct) and
:math:`A_i \leadsto C_i` (indirect); training holds all three of a training triple and the direct two of a validation triple.
``relevant``: the same with :math:`A_i = (a, i)`, :math:`B_i = (b, i)`, :math:`C_i = (c, i)`: three letters, and index tokens that
the members of a triple share. ``context``: :math:`x \to y \Leftrightarrow y \leftarrow x`, the forward fact before the backward
one; of the ten y of every x, seven are in training.

Source: arXiv:2405.04669, section 5, and the defaults of its released code. Letters: V tokens for entities (relations have the
numbers V, V + 1, V + 2), m pairs or triples of which P are for training and T for validation, k tokens per word, n tokens per
sequence, S sequences, those of validation last.

Logits between entities in a trained transformer: heat maps, how far their diagonals stand out; cosines of embeddings.

.. math:: z_i = \frac{G_{ii} - \mathrm{mean}_{j \ne i}\, G_{ij}}{\mathrm{std}_{j \ne i}\, G_{ij}}, \qquad
   G_{ij} = \text{logit of } B_j \text{ after } A_i

Source: arXiv:2405.04669, section 5 and its figures of logits: the input is the entity alone, without a relation ("alone"). Here
also with the relation that asks for the answer ("asked"). Letters: m pairs or triples, the last T of which are held out in one
direction; of a word its first token is read.

A word that is never an answer in training is an unlikely one, whatever is asked. Whether a network knows a fact that it has never
been asked is therefore read among the held-out answers of one kind alone (:func:`among`), which differ in nothing but the
questions to which they belong.

Attention logits between entities in a transformer: how asymmetric they are on pairs, and whether they tell a fact's direction.

.. math:: Z_{xy} = \frac{(W_Q x + b_Q) \cdot (W_K y + b_K)}{\sqrt e} - \text{mean over all entities as } y

with x and y what a layer's attention reads after one entity alone, at the first position, where questions have their entity: its
embedding with the position, through all blocks before and the layer's norm. A query's mean is subtracted since softmax does not
depend on it. In training no entity is the key of another one's query: the context is one entity and a relation, and the entity,
which comes first, has only itself as key. What Z is between entities is a by-product of weights and embeddings that are trained
for other ends.

If :math:`W_Q` and :math:`W_K` are independent Gaussian matrices, entries of Z and its transpose have over their draws the
correlation :math:`\rho = \langle (x \cdot y)(\bar x \cdot \bar y) \rangle / \langle |x|^2 |\bar y|^2 \rangle`, with
:math:`\bar x` the input minus the mean over entities, and Z has the asymmetry

.. math:: \frac{\|Z - Z^\top\|_F}{\|Z + Z^\top\|_F} \approx \sqrt{\frac{1 - \rho}{1 + \rho}},

near 1: a Z in which nothing was learned is as asymmetric as one that holds A to B alone.

Source: arXiv:2405.04669, in whose one-layer model the matrix is learned; derived. Letters: m pairs, the last T of which are trained
in one direction, n = 2m entities, those of A first, h heads of e numbers, l layers.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import nn
from jaxdyn.errors import UsageError
from jaxdyn.nn import transformer

TASKS = ("reversal", "cot", "relevant", "context")
ANSWERS, HELD_OUT = 10, 3  # in-context: y tokens, and how many of them are held out for every x


class Sizes(NamedTuple):
    """How many pairs or triples are for training and validation, what they make, and of what shape."""

    train_facts: int
    validation_facts: int
    train: int  # sequences
    validation: int
    word: int
    length: int  # tokens of a sequence
    tokens: int  # relations included


class Facts(NamedTuple):
    """All sequences, training ones first; the words of A, B (and C); which validation pairs are known as A -> B."""

    sequences: Int[Array, "S n"]
    words: Int[Array, "r m k"]
    forward: Bool[Array, " T"]


def sizes(task: str, vocabulary: int, word: int = 1) -> Sizes:
    """Numbers of a task; at V = 800: 140 and 60 pairs (340 and 60 sequences), 140 and 60 triples (540 and 60).

    Words of three tokens are fewer: 100 and 50 pairs. Relevant tokens: 500 and 50 triples. In context (V = 400): 100 x, ten y.

    Raises:
        UsageError: unknown task, a word size that is not 1, 2 or 3, or too few tokens.
    """
    if task not in TASKS:
        raise UsageError(f"task={task!r} is not allowed: it is one of {', '.join(TASKS)}")
    if word not in (1, 2, 3) or (word > 1 and task in ("relevant", "context")):
        raise UsageError(f"word={word} is not allowed: words have 1 to 3 tokens, those of relevant and context a size of their own")
    least = {"reversal": 16, "cot": 16, "relevant": 32, "context": 20}[task]
    if vocabulary < least or vocabulary**word >= 2**31:
        raise UsageError(
            f"vocabulary={vocabulary} is not allowed: task {task} has at least {least} tokens and fewer than 2**31 words"
        )
    # in context: x, each with its answers
    if task == "context":
        x = vocabulary // 4
        return Sizes(x * (ANSWERS - HELD_OUT), x * HELD_OUT, x * (ANSWERS - HELD_OUT), x * HELD_OUT, 1, 7, vocabulary + 3)
    m = vocabulary // 4
    # pairs and triples
    train, validation = (vocabulary // 8, vocabulary // 16) if word == 3 else (7 * m // 10, m - 7 * m // 10)
    if task == "relevant":
        train, validation, word = 5 * vocabulary // 8, vocabulary // 16, 2
    each, known = (2, 1) if task == "reversal" else (3, 2)
    return Sizes(train, validation, each * train + known * validation, validation, word, 2 * word + 1, vocabulary + 2)


def owners(task: str, vocabulary: int, word: int = 1) -> Int[np.ndarray, " S"]:
    """The training fact that each sequence states; -1 for those of validation facts, whichever set they are in."""
    size = sizes(task, vocabulary, word)
    of_training = np.tile(np.arange(size.train_facts), {"reversal": 2, "context": 1}.get(task, 3))
    return np.concatenate([of_training, np.full(size.train + size.validation - len(of_training), -1)])


def same_kind(task: str, size: Sizes) -> slice:
    """Where the training sequences are that ask what the validation sequences ask, of facts that training states in full."""
    p = size.train_facts
    return {"reversal": slice(0, 2 * p), "context": slice(0, p)}.get(task, slice(2 * p, 3 * p))


def subset(key: PRNGKeyArray, total: int, m: int) -> Int[Array, " m"]:
    """Distinct numbers below ``total`` in random order, uniform over sets, in O(m^2) and without a list of them all (Floyd)."""
    k_new, k_order = jax.random.split(key)

    def add(i: Int[Array, ""], chosen: Int[Array, " m"]) -> Int[Array, " m"]:
        last = total - m + i
        new = jax.random.randint(jax.random.fold_in(k_new, i), (), 0, last + 1, jnp.int32)
        return chosen.at[i].set(jnp.where(jnp.any(chosen == new), last, new).astype(jnp.int32))

    return jax.random.permutation(k_order, jax.lax.fori_loop(0, m, add, jnp.full(m, -1, jnp.int32)))


def sample(key: PRNGKeyArray, task: str, vocabulary: int, word: int = 1) -> Facts:
    """The sequences of one run, in the order P x (each kind), T x (each known kind), T x (the held-out kind).

    Raises:
        UsageError: as :func:`sizes`.
    """
    size = sizes(task, vocabulary, word)
    k_words, k_side = jax.random.split(key)
    if task == "context":
        return _in_context(k_words, k_side, vocabulary)
    p, t = size.train_facts, size.validation_facts
    a, b, *c = words = _words(k_words, task, vocabulary, size)
    if task == "reversal":
        there, back = _sequences(a, vocabulary, b), _sequences(b, vocabulary + 1, a)
        forward = jax.random.bernoulli(k_side, 0.5, (t,))
        known, unseen = (jnp.where((forward == side)[:, None], there[p:], back[p:]) for side in (True, False))
        return Facts(jnp.concatenate([there[:p], back[:p], known, unseen]), words, forward)
    kinds = _sequences(a, vocabulary, b), _sequences(b, vocabulary, c[0]), _sequences(a, vocabulary + 1, c[0])
    parts = [kind[:p] for kind in kinds] + [kind[p:] for kind in kinds]
    return Facts(jnp.concatenate(parts), words, jnp.ones(t, bool))


def _words(key: PRNGKeyArray, task: str, vocabulary: int, size: Sizes) -> Int[Array, "r m k"]:
    """The names of all members: distinct random words; or a letter and a shared index token."""
    m, r = size.train_facts + size.validation_facts, 2 if task == "reversal" else 3
    if task == "relevant":
        tokens = subset(key, vocabulary, r + m)
        letters, index = jnp.broadcast_to(tokens[:r, None], (r, m)), jnp.broadcast_to(tokens[r:], (r, m))
        return jnp.stack([letters, index], -1)
    number = subset(key, vocabulary**size.word, r * m).reshape(r, m)
    return jnp.stack([number // vocabulary**j % vocabulary for j in range(size.word)], -1)


def _sequences(x: Int[Array, "m k"], relation: int, y: Int[Array, "m k"]) -> Int[Array, "m n"]:
    return jnp.concatenate([x, jnp.full_like(x[:, :1], relation), y], 1)


def _in_context(k_words: PRNGKeyArray, k_side: PRNGKeyArray, vocabulary: int) -> Facts:
    """Every x with each of the ten y, seven of them (its own) for training."""
    n = vocabulary // 4
    tokens = subset(k_words, vocabulary, n + ANSWERS)
    order = jax.random.permutation(k_side, jnp.broadcast_to(tokens[n:], (n, ANSWERS)), 1, independent=True)

    def sequences(y: Int[Array, "n c"]) -> Int[Array, "s 7"]:
        x = jnp.broadcast_to(tokens[:n, None], y.shape).ravel()
        there, equal, back = (jnp.full_like(x, vocabulary + i) for i in range(3))
        return jnp.stack([x, there, y.ravel(), equal, y.ravel(), back, x], 1)

    parts = [sequences(order[:, HELD_OUT:]), sequences(order[:, :HELD_OUT])]
    return Facts(jnp.concatenate(parts), tokens[:n][None, :, None], jnp.ones(n * HELD_OUT, bool))


READS = ("alone", "asked")
MAPS = {  # task -> name: member that is given, relation, member that is read
    "reversal": {"A to B": (0, 0, 1), "B to A": (1, 1, 0)},
    "cot": {"A to B": (0, 0, 1), "B to C": (1, 0, 2), "A to C": (0, 1, 2)},
    "relevant": {"A to B": (0, 0, 1), "B to C": (1, 0, 2), "A to C": (0, 1, 2)},
}


def heat_maps(
    net: nn.Network, params: PyTree, facts: Facts, task: str, vocabulary: int, swapped: bool | Bool[Array, ""] = False
) -> Float[Array, "read map m m"]:
    """Logits of all answers (columns) after every entity (rows), alone and asked, for the directions in ``MAPS``.

    The attention is causal: after "entity relation" the last position but one reads the entity alone. Where the relation comes
    first (``swapped``), no position does, and both readings are the last one's.
    """
    asked, relation, wanted = (list(column) for column in zip(*MAPS[task].values(), strict=True))
    words, answers = facts.words[jnp.array(asked)], facts.words[jnp.array(wanted), :, 0]
    maps, m, k = words.shape
    asks = jnp.broadcast_to(jnp.asarray(relation, words.dtype)[:, None, None] + vocabulary, (maps, m, 1))
    questions = jnp.where(swapped, jnp.concatenate([asks, words], -1), jnp.concatenate([words, asks], -1))
    logits = net.apply(params, questions.reshape(maps * m, k + 1))[:, -2:]
    logits = jnp.where(swapped, logits[:, -1:], logits).reshape(maps, m, 2, -1).transpose(2, 0, 1, 3)
    return jnp.take_along_axis(logits, jnp.broadcast_to(answers[None, :, None, :], (2, maps, m, m)), -1)


def diagonal_z(maps: Float[Array, "*batch m m"]) -> Float[Array, "*batch m"]:
    """How many standard deviations each diagonal entry lies above the other entries of its row."""
    m = maps.shape[-1]
    own = np.eye(m, dtype=bool)
    others = jnp.where(own, 0, maps)
    mean = jnp.sum(others, -1) / (m - 1)
    spread = jnp.sqrt(jnp.sum(jnp.where(own, 0, jnp.square(maps - mean[..., None])), -1) / (m - 1))
    return (jnp.diagonal(maps, axis1=-2, axis2=-1) - mean) / spread


def held_out(
    maps: Float[Array, "read map m m"], forward: Bool[Array, " T"], task: str
) -> tuple[Float[Array, "direction read T T"], Bool[Array, "T T"]]:
    """Logits of the held-out facts' members after one another, in the unseen and a learned direction; which are of one kind.

    Pairs known as A -> B are asked for their A, the others for their B: two kinds. Triples are all of one kind.
    """
    block = maps[:, :, -len(forward) :, -len(forward) :]
    if task == "reversal":
        there, back = block[:, 0], block[:, 1]
        directions = [jnp.where(forward[:, None], *pair) for pair in ((back, there), (there, back))]
        return jnp.stack(directions), forward[:, None] == forward
    return jnp.stack([block[:, 2], block[:, 0]]), jnp.ones((len(forward), len(forward)), bool)


def among(scores: Float[Array, "*batch T T"], same: Bool[Array, "T T"]) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """How the own answers (diagonal) do against the other answers of their kind, in the same row.

    Returns:
        The share of the others that they beat, 1/2 if own answers are like any other; and how far they lie above the others' mean,
        on average over rows, in standard deviations within a row: 0 if they are like any other.
    """
    others = same & ~jnp.eye(len(same), dtype=bool)
    count = jnp.sum(others, -1)
    own = jnp.diagonal(scores, axis1=-2, axis2=-1)[..., None]
    beaten = jnp.where(others, (own > scores) + 0.5 * (own == scores), 0)
    mean = jnp.sum(jnp.where(others, scores, 0), -1, keepdims=True) / jnp.maximum(count, 1)[:, None]
    square = jnp.sum(jnp.where(others, jnp.square(scores - mean), 0), (-2, -1)) / jnp.sum(jnp.maximum(count - 1, 0))
    above = jnp.sum(jnp.where(count > 0, (own - mean)[..., 0], 0), -1) / jnp.sum(count > 0)
    excess = above / jnp.sqrt(jnp.where(square > 0, square, 1))
    return jnp.sum(beaten, (-2, -1)) / jnp.sum(count), excess


def reassigned(same: Bool[Array, "T T"]) -> Int[Array, " T"]:
    """For every held-out fact the next one of its kind, cyclically: whose answer it gets when answers are reassigned."""
    n = len(same)
    step = (jnp.arange(n) - jnp.arange(n)[:, None] - 1) % n
    return jnp.argmin(jnp.where(same, step, n), -1)


def cosines(params: PyTree, facts: Facts) -> Float[Array, "m m"]:
    """Cosines between the embeddings of all A (rows) and all B (columns); a word's is the mean of its tokens'."""
    a, b = (jnp.mean(params["embed"][facts.words[i]], 1) for i in (0, 1))
    return a @ b.T / (jnp.linalg.norm(a, axis=1)[:, None] * jnp.linalg.norm(b, axis=1))


PAIRS = ("two-way", "one-way")
PARTNERS = ("own", "reassigned", "any direction")


def entity_logits(shape: nn.Transformer, params: PyTree, facts: Facts) -> tuple[Float[Array, "l h n n"], Float[Array, "l n d"]]:
    """Z of every layer and head, queries in rows; and what attention reads in every layer. A word is read by its first token."""
    tokens = facts.words[:2, :, :1].reshape(-1, 1)
    enter, block, _ = transformer.parts(shape)
    x, logits_, inputs = enter(params, tokens), [], []
    for layer in range(shape.layers):
        w = jax.tree.map(lambda a, i=layer: a[i], params["blocks"])
        q, k, _ = (part[:, 0] for part in transformer.heads(shape, x, w))
        z = jnp.einsum("xhe,yhe->hxy", q, k) / np.sqrt(shape.entries).astype(shape.dtype)
        logits_.append(z - jnp.mean(z, -1, keepdims=True))
        inputs.append(transformer.entering(shape, w, "attention_norm", x)[:, 0])
        x = block(w, x)
    return jnp.stack(logits_), jnp.stack(inputs)


def partners(m: int, forward: Bool[Array, " T"]) -> Int[Array, "partner m"]:
    """The B with which every A is paired: its own one, that of the next pair of its kind, and that of the next pair of its group.

    Kinds are two-way pairs and one-way pairs of one direction, groups two-way and one-way pairs.
    """
    place, p = np.arange(m), m - len(forward)
    two_way, one_way = np.roll(place[:p], -1), np.roll(place[p:], -1)
    same_kind = p + reassigned(forward[:, None] == forward)
    return jnp.stack([jnp.asarray(place), *(jnp.concatenate([two_way, other]) for other in (same_kind, one_way))])


def asymmetry(z: Float[Array, "l h n n"], forward: Bool[Array, " T"]) -> Float[Array, "partner l group"]:
    r""":math:`\|Z - Z^\top\|_F / \|Z + Z^\top\|_F` of all heads of a layer, on the entries of each group of pairs."""
    m, held = z.shape[-1] // 2, len(forward)

    def shares(b: Int[Array, " m"]) -> Float[Array, "l group"]:
        there, back = z[..., np.arange(m), m + b], z[..., m + b, np.arange(m)]
        minus, plus = jnp.sum(jnp.square(there - back), 1), jnp.sum(jnp.square(there + back), 1)  # over heads
        groups = slice(None, m - held), slice(m - held, None)
        return jnp.stack([jnp.sqrt(jnp.sum(minus[:, g], -1) / jnp.sum(plus[:, g], -1)) for g in groups], -1)

    return jnp.stack([shares(b) for b in partners(m, forward)])


def random_asymmetry(x: Float[Array, "l n d"], held: int) -> Float[Array, "l group"]:
    """The asymmetry that independent Gaussian matrices of queries and keys give for the same inputs, on each group of pairs."""
    m = x.shape[1] // 2
    a, b = x[:, :m], x[:, m:]
    centred = x - jnp.mean(x, 1, keepdims=True)
    ca, cb = centred[:, :m], centred[:, m:]
    both = jnp.sum(a * b, -1) * jnp.sum(ca * cb, -1)
    each = (jnp.sum(a * a, -1) * jnp.sum(cb * cb, -1) + jnp.sum(b * b, -1) * jnp.sum(ca * ca, -1)) / 2
    shares = []
    for group in (slice(None, m - held), slice(m - held, None)):
        rho = jnp.sum(both[:, group], -1) / jnp.sum(each[:, group], -1)
        shares.append(jnp.sqrt((1 - rho) / (1 + rho)))
    return jnp.stack(shares, -1)


def differences(z: Float[Array, "l h n n"], forward: Bool[Array, " T"]) -> tuple[Float[Array, "l p p"], Float[Array, "l T T"]]:
    """Z[x, y] - Z[y, x], mean over heads, for all x and y of a group: A and B of two-way, question and answer of one-way pairs.

    The question of a one-way pair is the entity after which the other one is trained: A if ``forward``.
    """
    z = jnp.mean(z, 1)
    m = z.shape[-1] // 2
    odd = z - jnp.swapaxes(z, 1, 2)
    there, p = odd[:, :m, m:], m - len(forward)
    one_way = jnp.where(forward[:, None], there[:, p:, p:], -jnp.swapaxes(there[:, p:, p:], 1, 2))
    return there[:, :p, :p], one_way


def direction(z: Float[Array, "l h n n"], forward: Bool[Array, " T"]) -> tuple[Float[Array, "l group"], Float[Array, " l"]]:
    """How far the difference of :func:`differences` stands out in own pairs, and how far it is from 0 in unrelated ones.

    Both in standard deviations over unrelated pairs: those of the same group and, of one-way pairs, of the same direction.
    """
    two_way, one_way = differences(z, forward)
    every, same = np.ones(two_way.shape[1:], bool), forward[:, None] == forward
    excess = [among(d, mask)[1] for d, mask in ((two_way, jnp.asarray(every)), (one_way, same))]
    # from the question of one pair to the answer of another
    others = same & ~jnp.eye(len(forward), dtype=bool)
    count = jnp.sum(others)
    mean = jnp.sum(jnp.where(others, one_way, 0), (1, 2)) / count
    square = jnp.sum(jnp.where(others, jnp.square(one_way - mean[:, None, None]), 0), (1, 2)) / count
    return jnp.stack(excess, -1), mean / jnp.sqrt(square)
