r"""What a transformer in training knows of facts: in the direction in which it is asked, and in the other one.

A row of the decoder learns from its own questions alone: one-way pairs are learned in their trained direction as pairs trained in
both directions are, and in the other the right answer stays like any other. A name that is no answer in training is an unlikely
one, whatever is asked: right answers are compared with those of other one-way pairs, asked in the same direction
(``mlt/logits.py``).

Source: arXiv:2405.04669, theorem 3 and section 5. Letters: m pairs.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxdyn.instruments.law import Law
from jaxdyn.instruments.moment import Moment
from jaxdyn.nn.transformer import apply
from jaxdyn.theories.rev.mlt import logits

__all__ = ["INSTRUMENTS", "REVERSAL"]

Curves = Mapping[str, Float[Array, "time ..."]]


def read_reversal(moment: Moment) -> dict[str, Array]:
    """The share of other answers that the right one beats: of one-way pairs in either direction, and of the other pairs in both."""
    known = moment.batch.known
    answers, unseen = known["answers"], known["unseen"]  # direction, pair
    asked = apply(moment.shape, moment.params, known["questions"].reshape(-1, known["questions"].shape[-1]))[:, -1]
    asked = asked.reshape(*answers.shape, -1).astype(jnp.float32)
    scores = jax.vmap(lambda rows, names: rows[:, names])(asked, answers)  # direction, pair that is asked for, pair of the answer
    one_way, other = jnp.any(unseen, 0), jnp.argmax(unseen, 0)
    pairs = one_way[:, None] & one_way & (other[:, None] == other)  # of one kind

    def wins(direction: Array) -> Array:
        return logits.among(jnp.take_along_axis(scores, direction[None, :, None], 0)[0], pairs)[0]

    both = logits.among(scores, ~one_way[:, None] & ~one_way)[0]
    return {"unseen": wins(other), "learned": wins(1 - other), "both": jnp.mean(both)}


def stays(others: Curves) -> Float[Array, "time direction"]:
    """Chance in the unseen direction; in the learned one, what the other pairs have."""
    return jnp.stack([jnp.full_like(others["both"], 0.5), others["both"]], -1)


def reversed_too(
    predicted: Float[Array, "*time direction"], measured: Float[Array, "*time direction"]
) -> Float[Array, "*time direction"]:
    """The unseen direction is learned as the trained one is."""
    return jnp.broadcast_to(predicted[..., 1:], measured.shape)


REVERSAL = Law(
    name="reversal",
    title="Facts are learned in the direction that is asked, and in no other",
    theory=(
        "Of pairs that are asked in one direction only, the right answer in the other direction stays like any other answer "
        "of its kind: it beats 1/2 of them. In the trained direction it beats as many as in pairs that are trained in both "
        "directions: all, in the end."
    ),
    source="arXiv:2405.04669, theorem 3 and section 5",
    read=read_reversal,
    own=("unseen", "learned"),
    measure=lambda own: jnp.stack([own["unseen"], own["learned"]], -1),
    predict=stays,
    dims="direction",
    off=reversed_too,
    bound=0.125,  # half of what a reversed direction that is known would have, or nothing learned
    absolute=True,
    data=("facts",),
    cost=0.3,
)

INSTRUMENTS = (REVERSAL,)
