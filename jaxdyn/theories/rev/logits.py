r"""Logits between entities in a trained transformer: heat maps, how far their diagonals stand out; cosines of embeddings.

.. math:: z_i = \frac{G_{ii} - \mathrm{mean}_{j \ne i}\, G_{ij}}{\mathrm{std}_{j \ne i}\, G_{ij}}, \qquad
   G_{ij} = \text{logit of } B_j \text{ after } A_i

Source: arXiv:2405.04669, section 5 and its figures of logits: the input is the entity alone, without a relation ("alone"). Here
also with the relation that asks for the answer ("asked"). Letters: m pairs or triples; of a word its first token is read.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from jaxdyn import nn
from jaxdyn.theories.rev.words import Facts

__all__ = ["MAPS", "READS", "cosines", "diagonal_z", "heat_maps"]

READS = ("alone", "asked")
MAPS = {  # task -> name: member that is given, relation, member that is read
    "reversal": {"A to B": (0, 0, 1), "B to A": (1, 1, 0)},
    "cot": {"A to B": (0, 0, 1), "B to C": (1, 0, 2), "A to C": (0, 1, 2)},
}


def heat_maps(net: nn.Network, params: PyTree, facts: Facts, task: str, vocabulary: int) -> Float[Array, "read map m m"]:
    """Logits of all answers (columns) after every entity (rows), alone and asked, for the directions in ``MAPS``.

    The attention is causal: after "entity relation" the last position but one reads the entity alone.
    """
    asked, relation, wanted = (list(column) for column in zip(*MAPS[task].values(), strict=True))
    words, answers = facts.words[jnp.array(asked)], facts.words[jnp.array(wanted), :, 0]
    maps, m, k = words.shape
    asks = jnp.broadcast_to(jnp.asarray(relation, words.dtype)[:, None, None] + vocabulary, (maps, m, 1))
    logits = net.apply(params, jnp.concatenate([words, asks], -1).reshape(maps * m, k + 1))[:, -2:]
    logits = logits.reshape(maps, m, 2, -1).transpose(2, 0, 1, 3)
    return jnp.take_along_axis(logits, jnp.broadcast_to(answers[None, :, None, :], (2, maps, m, m)), -1)


def diagonal_z(maps: Float[Array, "*batch m m"]) -> Float[Array, "*batch m"]:
    """How many standard deviations each diagonal entry lies above the other entries of its row."""
    m = maps.shape[-1]
    own = np.eye(m, dtype=bool)
    others = jnp.where(own, 0, maps)
    mean = jnp.sum(others, -1) / (m - 1)
    spread = jnp.sqrt(jnp.sum(jnp.where(own, 0, jnp.square(maps - mean[..., None])), -1) / (m - 1))
    return (jnp.diagonal(maps, axis1=-2, axis2=-1) - mean) / spread


def cosines(params: PyTree, facts: Facts) -> Float[Array, "m m"]:
    """Cosines between the embeddings of all A (rows) and all B (columns); a word's is the mean of its tokens'."""
    a, b = (jnp.mean(params["embed"][facts.words[i]], 1) for i in (0, 1))
    return a @ b.T / (jnp.linalg.norm(a, axis=1)[:, None] * jnp.linalg.norm(b, axis=1))
