r"""Scores of a transformer in training on sequence classes: what common tokens lose is what distinct ones gain.

In the reduced dynamics (``dynamics/reduced.py``) of classes that share a query, and differ in their distinct tokens alone, a
score z that starts at 0 has a rate proportional to the squared attention, :math:`(w e^z)^2`, with one factor for the distinct
tokens of each class, and a negative one for all common tokens. Two tokens that share a factor have therefore

.. math:: \frac{1 - e^{-2z_l}}{w_l^2} = \frac{1 - e^{-2z_{l'}}}{w_{l'}^2},

and the sum of all scores is conserved: the most probable distinct tokens of all classes tell all scores. In a block

* the query sees itself, as a common token that occurs once in a sequence of n others: :math:`w = 1/n` next to their :math:`w = P`;
* scores are products of queries and keys, and count up to a constant: the mean over all keys is taken away. What is asked of one
  token's score moves the others', too, by the products of their embeddings, :math:`\sqrt{\text{tokens}/d}` of it in all. So the
  law is about wide blocks;
* sequences are finite, attention is normalised by its sum, and neither decoder nor scores start at 0.

Source: arXiv:2305.16380, theorems 2 and 3; the relation is derived. Letters: K classes with C common and D distinct tokens each,
S = C + D, L layers of h heads.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.instruments.law import Asked, Law
from jaxdyn.instruments.moment import Moment
from jaxdyn.nn.activations import BlockActivations, reduce_blocks, scores
from jaxdyn.theories.snap.dynamics.growth import partner

__all__ = ["INSTRUMENTS", "SNAP", "lost", "read_snap"]

Curves = Mapping[str, Float[Array, "time ..."]]
ITERATIONS = 12  # the error of each is at most 1 / 9 of the last one's, with four common tokens


def read_snap(moment: Moment) -> dict[str, Array]:
    """Scores of the last query on the tokens of each class, and how often each is expected, over the most probable distinct one.

    A score is a mean over where the token occurs, minus the mean over all keys; that of a token which does not occur is 0.
    """
    shape, tokens, known = moment.shape, moment.batch.tokens, moment.batch.known
    classes, common, n = known["own"].shape[0], known["common"].size, tokens.shape[1] - 1
    support = jnp.concatenate([jnp.broadcast_to(known["common"], (classes, common)), known["own"]], 1)
    member = (known["class"] == jnp.arange(classes)[:, None])[:, None, :, None]
    where = (member & (tokens[:, :-1] == support[:, :, None, None])).astype(jnp.float32)  # class, token, sequence, place
    occurs = jnp.sum(where, (2, 3))
    where, present = where / jnp.maximum(occurs, 1)[..., None, None], (occurs > 0).astype(jnp.float32)
    keys = jnp.concatenate([jnp.max(present[:, :common], 0), present[:, common:].ravel(), jnp.ones(1)])

    def reduce(block: BlockActivations) -> Float[Array, "h K S"]:
        last = scores(shape, block)[:, :, -1, -n - 1 :].astype(jnp.float32)
        each = jnp.einsum("ksbn,bhn->hks", where, last[..., :-1])
        shared = jnp.sum(each[..., :common], 1) / jnp.maximum(jnp.sum(present[:, :common], 0), 1)
        total = jnp.sum(shared, 1) + jnp.sum(each[..., common:], (1, 2)) + jnp.mean(last[..., -1], 0)
        return present * (each - (total / jnp.sum(keys))[:, None, None])

    found, law = reduce_blocks(shape, moment.params, tokens, reduce)[1], known["law"]
    odds = {"common": law[:common] / law[-1], "distinct": law[common:-1] / law[-1], "query": 1 / (n * law[-1])}
    return {"others": found[..., :-1], "dominant": found[..., -1], "present": present[:, :-1]} | odds


def lost(gained: Float[Array, "..."], common: int, odds: Float[Array, ""]) -> Float[Array, "..."]:
    """What each of the common tokens loses if all distinct ones gain so much together; ``odds`` of the query over one of them."""
    x = gained / common
    for _ in range(ITERATIONS):
        x = x - (common * x - jnp.asarray(partner(-x, odds)) - gained) / (common + 0.5)
    return x


def predict(others: Curves) -> Float[Array, "time L h K S1"]:
    """Changes of all scores but those of the dominant tokens."""
    common, distinct, query, present = (others[name][0] for name in ("common", "distinct", "query", "present"))
    gain = (others["dominant"] - others["dominant"][:1])[..., None]
    own = jnp.asarray(partner(gain, distinct))
    gained = jnp.sum(gain, (-2, -1)) + jnp.sum(own, (-2, -1))
    loss = lost(gained, common.size, query / jnp.mean(common))
    shared = jnp.broadcast_to(-loss[..., None, None], (*own.shape[:-1], common.size))
    return present * jnp.concatenate([shared, own], -1)


def refuses(asked: Asked) -> str:
    """Why it cannot be asked of a network."""
    window = asked.shape.window
    partly = window is not None and window < asked.shape.length
    return "The last query of this network sees a part of its sequence only." if partly else ""


SNAP = Law(
    name="snap",
    title="Distinct tokens gain score by squared frequency, common ones lose it",
    theory=(
        r"With one query for all classes, $(1 - e^{-2z_l})/P_l^2$ of the changes $z_l$ of scores is the same for all distinct "
        "tokens of a class; common tokens and the query lose together what distinct ones gain. So all scores follow from those of "
        "the most probable distinct token of each class."
    ),
    source="arXiv:2305.16380, theorems 2 and 3",
    read=read_snap,
    own=("others",),
    measure=lambda own: own["others"] - own["others"][:1],
    predict=predict,
    dims="layer head class token",
    bound=0.3,  # of 21 keys, products of embeddings mix the square root of 21 / width: .29 at the width 256
    data=("classes",),
    refuses=refuses,
    cost=0.35,
)

INSTRUMENTS = (SNAP,)
