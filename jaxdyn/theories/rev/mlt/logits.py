r"""Logits between entities in a trained transformer: heat maps, how far their diagonals stand out; cosines of embeddings.

.. math:: z_i = \frac{G_{ii} - \mathrm{mean}_{j \ne i}\, G_{ij}}{\mathrm{std}_{j \ne i}\, G_{ij}}, \qquad
   G_{ij} = \text{logit of } B_j \text{ after } A_i

Source: arXiv:2405.04669, section 5 and its figures of logits: the input is the entity alone, without a relation ("alone"). Here
also with the relation that asks for the answer ("asked"). Letters: m pairs or triples, the last T of which are held out in one
direction; of a word its first token is read.

A word that is never an answer in training is an unlikely one, whatever is asked. Whether a network knows a fact that it has never
been asked is therefore read among the held-out answers of one kind alone (:func:`among`), which differ in nothing but the
questions to which they belong.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from jaxdyn import nn
from jaxdyn.theories.rev.mlt.sentences import Facts

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
