r"""The last residual stream and the read-out of a transformer in training: class means become what the read-out's rows are.

In the terminal phase, when sequences are answered rightly, neural collapse makes the two dual (NC3): with M the means of the last
stream over the sequences of each answer, and W the read-out's rows of the answers, both centred over the answers,

.. math:: \frac{M}{\|M\|_F} = \frac{W}{\|W\|_F}, \qquad \frac{\langle M, W\rangle}{\|M\|_F \|W\|_F} = 1 .

The cause is in the read-out's gradient, :math:`\dot W = \sum_i (y_i - p_i)\,h_i^\top - \lambda W`: W becomes a sum of features as
far as weight decay takes away what is left of the start, and, where classes are equally frequent and wrong answers equally likely,
that of the centred class means. Source: arXiv:2008.08186, section 2 (NC3). Letters: K answers, d width.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxdyn.instruments.law import Law
from jaxdyn.instruments.moment import Moment
from jaxdyn.nn.transformer import read, read_out, trunk
from jaxdyn.theories.collapse import measures

__all__ = ["COLLAPSE", "INSTRUMENTS", "read_collapse"]

Curves = Mapping[str, Float[Array, "time ..."]]
WRONG = 0.01  # the largest share of wrong answers in the terminal phase: some sequences have no token of their class


def read_collapse(moment: Moment) -> dict[str, Array]:
    """The cosine of class means and the read-out's rows, each centred and as one vector, and the share of wrong answers.

    Sequences that do not count are left out, and so are answers of none of the others.
    """
    shape, batch, answers = moment.shape, moment.batch, moment.batch.known["answers"]
    stream = trunk(shape, moment.params, batch.tokens)[:, -1]
    target, counted = batch.targets[:, -1], batch.weights[:, -1] > 0
    member = (target[:, None] == answers) & counted[:, None]
    used, label = jnp.any(member, 0), jnp.where(counted, jnp.argmax(member, -1), answers.size)
    wrong = counted & (jnp.argmax(read(shape, moment.params, stream), -1) != target)
    means = measures.means(stream.astype(jnp.float32), label, answers.size)
    rows = read_out(moment.params)[0][answers].astype(jnp.float32)
    count = jnp.sum(used).astype(means.dtype)
    m, w = (measures.normalized(measures.centred(x, used, count)) for x in (means, rows))
    return {"cosine": jnp.sum(m * w), "wrong": jnp.sum(wrong) / jnp.sum(counted)}


def terminal(curves: Curves) -> Bool[Array, " time"]:
    """The last reading, of runs that answer rightly at all readings of the second half."""
    n = curves["wrong"].shape[0]
    return jnp.all(curves["wrong"][n // 2 :] <= WRONG) & (jnp.arange(n) == n - 1)


COLLAPSE = Law(
    name="collapse",
    title="Class means of the last stream become the read-out's rows",
    theory=(
        r"At the end of training the means of the last residual stream over the sequences of each answer, $M$, and the read-out's "
        r"rows of these answers, $W$, both centred, are the same up to a factor: $\langle M, W\rangle = \|M\|\,\|W\|$. Of a run in "
        "which more than 1% of the answers are wrong in the second half of training, nothing is said."
    ),
    source="arXiv:2008.08186, section 2 (NC3)",
    read=read_collapse,
    own=("cosine",),
    measure=lambda own: own["cosine"],
    predict=lambda others: jnp.ones_like(others["wrong"]),
    speaks=terminal,
    bound=0.02,  # a distance of .2 of the two, each over its norm
    absolute=True,
    data=("classes", "trees", "groups"),
    cost=0.35,
)

INSTRUMENTS = (COLLAPSE,)
