r"""The network of CoGO: two operands of a finite Abelian group, one hidden layer with quadratic activation, no biases.

.. math:: h_j(g_1, g_2) = \bigl(w_a[g_1, j] + w_b[g_2, j]\bigr)^2, \qquad o(g_1, g_2) = \sum_j h_j\, w_c[:, j]

and the squared distance of the centred output from its target,

.. math:: L = \text{mean} \bigl\| P\,( s\,o - e_{g_1 + g_2} ) \bigr\|^2, \qquad P = I - \mathbf 1 \mathbf 1^\top / d,

in two scales: "paper" has :math:`s = 1/(2d)`, "code" (all training runs) has s = 1. The minimum is 0; zero weights give
:math:`1 - 1/d`. A one-hot input only picks a row of weights: nothing is ever multiplied by one.
Source: arXiv:2410.01779, section 3. Letters: d elements, q hidden nodes; weights are one array (3, d, q) with layers a, b, c,
rows of c are the output's classes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn.data.abelian import Abelian

Scale = Literal["paper", "code"]
Activation = Literal["quadratic", "relu"]


def factor(group: Abelian, scale: Scale) -> float:
    """s, the factor of the output in the loss."""
    return 1.0 if scale == "code" else 1.0 / (2 * group.order)


def to_scale(w: Float[Array, "3 d q"], group: Abelian, scale: Scale) -> Float[Array, "3 d q"]:
    r"""The other scale's weights in this scale: :math:`w_\text{code} = (2d)^{-1/3} w_\text{paper}` in every layer."""
    ratio = (2 * group.order) ** (1 / 3)
    return w / ratio if scale == "code" else w * ratio


def init(
    key: PRNGKeyArray, group: Abelian, hidden: int, dtype: str = "float32", width: float | Float[Array, ""] | None = None
) -> Float[Array, "3 d q"]:
    r"""The start of the training runs: uniform within :math:`\pm 1/\sqrt d` (a, b) and :math:`\pm 1/\sqrt q` (c).

    With a width, which may be traced, the first ``width`` of the hidden places hold the start of a network with as many nodes,
    number by number; the others are zero, and stay so under training.
    """
    d = group.order
    unit = jax.random.uniform(key, (3 * d * hidden,), dtype, -1.0, 1.0)
    q = jnp.asarray(hidden if width is None else width)
    row, place = jnp.arange(3 * d, dtype=jnp.int32)[:, None], jnp.arange(hidden, dtype=jnp.int32)
    unit = jnp.where(place < q, unit[(row * q.astype(jnp.int32) + place) % unit.size], 0).reshape(3, d, hidden)
    return unit / jnp.sqrt(jnp.stack([jnp.full_like(q, d), jnp.full_like(q, d), q]).astype(dtype))[:, None, None]


def activate(x: Float[Array, "*n"], activation: Activation | jd.Code = "quadratic") -> Float[Array, "*n"]:
    """The square, or ReLU; a traced switch computes both and selects one."""
    if isinstance(activation, str):
        return jnp.square(x) if activation == "quadratic" else jax.nn.relu(x)
    return jnp.where(activation == "quadratic", jnp.square(x), jax.nn.relu(x))


def output(w: Float[Array, "3 d q"], activation: Activation | jd.Code = "quadratic") -> Float[Array, "d d d"]:
    """Outputs o of all pairs: first operand, second operand, class."""
    return activate(w[0][:, None] + w[1][None], activation) @ w[2].T


def loss_per_pair(
    w: Float[Array, "3 d q"], group: Abelian, scale: Scale, activation: Activation | jd.Code = "quadratic"
) -> Float[Array, "d d"]:
    """Squared distance of each pair's centred output from its target."""
    return distance(factor(group, scale) * output(centred(w), activation), group)


def centred(w: Float[Array, "3 d q"]) -> Float[Array, "3 d q"]:
    """The weights with the mean over classes taken from c, which centres the output."""
    return w.at[2].add(-jnp.mean(w[2], 0))


def distance(o: Float[Array, "d d d"], group: Abelian) -> Float[Array, "d d"]:
    """Squared distance of centred outputs of all pairs from their targets."""
    hit = jnp.asarray(group.add)[..., None] == jnp.arange(group.order)
    return jnp.sum(jnp.square(o) - 2 * jnp.where(hit, o, 0), -1) + (1 - 1 / group.order)


def loss(
    w: Float[Array, "3 d q"],
    group: Abelian,
    scale: Scale,
    only: Bool[Array, "d d"] | None = None,
    activation: Activation | jd.Code = "quadratic",
) -> Float[Array, ""]:
    """L over all pairs, or over those marked in ``only``."""
    each = loss_per_pair(w, group, scale, activation)
    return jnp.mean(each) if only is None else jnp.sum(jnp.where(only, each, 0)) / jnp.sum(only).astype(each.dtype)


def loss_at(
    w: Float[Array, "3 d q"], group: Abelian, scale: Scale, pairs: Int[Array, "n 2"], activation: Activation | jd.Code = "quadratic"
) -> Float[Array, ""]:
    """L over the pairs listed, each by its numbers of g1 and g2."""
    g1, g2 = pairs[:, 0], pairs[:, 1]
    hidden = activate(w[0][g1] + w[1][g2], activation)
    o = factor(group, scale) * hidden @ (w[2] - jnp.mean(w[2], 0)).T
    hit = o[jnp.arange(len(pairs)), jnp.asarray(group.add)[g1, g2]]
    return jnp.mean(jnp.sum(jnp.square(o), -1) - 2 * hit) + (1 - 1 / group.order)


def correct(w: Float[Array, "3 d q"], group: Abelian, activation: Activation | jd.Code = "quadratic") -> Bool[Array, "d d"]:
    """Whether the largest output is the sum's, for all pairs."""
    return jnp.argmax(output(w, activation), -1) == jnp.asarray(group.add)


class Fit(NamedTuple):
    """How well a network adds."""

    loss: Float[Array, ""]
    wrong: Int[Array, ""]


def fit(w: Float[Array, "3 d q"], group: Abelian) -> Fit:
    """L over all pairs, paper scale, and the number of pairs whose largest output is not the sum's.

    The squared residuals are added, so that a loss of zero comes out as the square of rounding; :func:`loss` takes a difference
    and stops at rounding itself.
    """
    o = output(w) * factor(group, "paper")
    hit = jax.nn.one_hot(jnp.asarray(group.add), group.order, dtype=o.dtype)
    rest = o - jnp.mean(o, -1, keepdims=True) - (hit - 1 / group.order)
    wrong = jnp.argmax(o, -1) != jnp.asarray(group.add)
    return Fit(jnp.mean(jnp.sum(jnp.square(rest), -1)), jnp.sum(wrong, dtype=jnp.int32))
