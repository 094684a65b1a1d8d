r"""The network of CoGO: two operands of a finite Abelian group, one hidden layer with quadratic activation, no biases.

.. math:: h_j(g_1, g_2) = \bigl(w_a[g_1, j] + w_b[g_2, j]\bigr)^2, \qquad o(g_1, g_2) = \sum_j h_j\, w_c[:, j]

and the squared distance of the centred output from its target,

.. math:: L = \text{mean} \bigl\| P\,( s\,o - e_{g_1 + g_2} ) \bigr\|^2, \qquad P = I - \mathbf 1 \mathbf 1^\top / d,

in two scales: "paper" has :math:`s = 1/(2d)`, "code" (all training runs) has s = 1. The minimum is 0; zero weights give
:math:`1 - 1/d`. A one-hot input only picks a row of weights: nothing is ever multiplied by one.
Source: arXiv:2410.01779, section 3. Letters: d elements, q hidden nodes; weights are one array (3, d, q) with layers a, b, c,
rows of c are the output's classes.

The loss from Gram matrices of the weights: O(q^2 d) in place of the O(q d^3) of all pairs, and equal to it.

With a, b and c centred over the group (:math:`\tilde a_j(g) = a_j(g) - \bar a_j`, the centred c scaled by s), the squared output
splits into four parts that are orthogonal over all pairs, as in an analysis of variance:

.. math:: \|\textstyle\sum_j c_j m_j\|^2 + \tfrac1d \|f_a c^\top\|^2 + \tfrac1d \|f_b c^\top\|^2
    + \tfrac4{d^2} \sum_{jl} (\tilde a^\top\tilde a)_{jl} (\tilde b^\top\tilde b)_{jl} (c^\top c)_{jl}

with the means :math:`m = \overline{a^2} + \overline{b^2} + 2\bar a\bar b`, the parts of one operand
:math:`f_a = a^2 - \overline{a^2} + 2\tilde a\bar b` and :math:`f_b` likewise; the target's part is
:math:`-4 \sum_{k\ne0} \sum_j \mathrm{Re}\, z_{akj} z_{bkj} z_{ckj}`. A subset of pairs is all pairs minus the others, which are
summed directly. Source: derived; in spectra the parts are those of :func:`spectrum.terms`.

The loss over some of the pairs for quadratic activation in the code's scale, with its gradient written out.

With :math:`s = w_a[g_1] + w_b[g_2]`, the centred :math:`\tilde c` and, on the n pairs that count,
:math:`R = \frac2n (s^2 \tilde c^\top - e_{g_1 + g_2} + \frac1d)`, 0 on the others,

.. math:: \nabla_c = P R^\top s^2, \qquad \nabla_a = \sum_{g_2} 2 s \circ (R \tilde c), \qquad
    \nabla_b = \sum_{g_1} 2 s \circ (R \tilde c).

Three products in all; an automatic gradient compiles twice as long. Source: derived; equal to that of :func:`model.loss`.
Letters: d elements, q nodes.
"""

from __future__ import annotations

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
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


@jax.custom_vjp
def overlap(a: Float[Array, "d q"], b: Float[Array, "d q"], c: Float[Array, "d q"]) -> Float[Array, ""]:
    r"""Sum over j, l of :math:`(a^\top a)_{jl} (b^\top b)_{jl} (c^\top c)_{jl}`.

    Its derivative is written out, :math:`\partial/\partial a = 2 a\,(b^\top b \circ c^\top c)`: an automatic one does not know that
    the matrices are symmetric, makes each product twice and is three times slower.
    """
    return _overlap_forward(a, b, c)[0]


def _overlap_forward(*layers: Float[Array, "d q"]) -> tuple[Float[Array, ""], tuple]:
    grams = tuple(x.T @ x for x in layers)
    return jnp.sum(grams[0] * grams[1] * grams[2]), (layers, grams)


def _overlap_backward(saved: tuple, change: Float[Array, ""]) -> tuple[Float[Array, "d q"], ...]:
    (a, b, c), (aa, bb, cc) = saved
    return tuple(2 * change * (x @ others) for x, others in ((a, bb * cc), (b, aa * cc), (c, aa * bb)))


overlap.defvjp(_overlap_forward, _overlap_backward)


def _real_characters(group: Abelian, dtype: jnp.dtype) -> tuple[Float[np.ndarray, "2 p d"], Float[np.ndarray, "s d"]]:
    """Real and imaginary parts of one character of each conjugate pair, and the real characters."""
    chi = group.characters[group.pairs]
    return np.stack([chi.real, chi.imag]).astype(dtype), group.characters[group.real].real.astype(dtype)


def target(a: Float[Array, "d q"], b: Float[Array, "d q"], c: Float[Array, "d q"], group: Abelian) -> Float[Array, ""]:
    r"""Mean over pairs of :math:`\sum_j a_j(g_1) b_j(g_2) c_j(g_1 + g_2)` for centred a, b, c: a product for each frequency."""
    pairs, real = _real_characters(group, a.dtype)
    (ax, ay), (bx, by), (cx, cy) = ((pairs @ x) / group.order for x in (a, b, c))
    both = jnp.sum((ax * bx - ay * by) * cx + (ax * by + ay * bx) * cy)  # Re(conj(A) conj(B) C), of a pair once
    own = jnp.sum((real @ a) * (real @ b) * (real @ c)) / group.order**3
    return 2 * both + own


def loss_by_gram(w: Float[Array, "3 d q"], group: Abelian, scale: Scale) -> Float[Array, ""]:
    """L over all pairs for quadratic activation, equal to :func:`model.loss`."""
    d = group.order
    a, b, c = w[0], w[1], factor(group, scale) * (w[2] - jnp.mean(w[2], 0))
    a0, b0, a2, b2 = jnp.mean(a, 0), jnp.mean(b, 0), jnp.square(a), jnp.square(b)
    at, bt = a - a0, b - b0
    mean = jnp.sum(jnp.square(c @ (jnp.mean(a2, 0) + jnp.mean(b2, 0) + 2 * a0 * b0)))
    one = jnp.concatenate([a2 - jnp.mean(a2, 0) + 2 * at * b0, b2 - jnp.mean(b2, 0) + 2 * bt * a0]) @ c.T
    both = overlap(at, bt, c)
    return mean + jnp.sum(jnp.square(one)) / d + 4 * both / d**2 - 4 * target(at, bt, c, group) + 1 - 1 / d


def loss_without(
    w: Float[Array, "3 d q"], group: Abelian, scale: Scale, out: Int[Array, "n 2"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """L over all pairs except those of ``out``, and L over these."""
    rest = loss_at(w, group, scale, out)
    every, count = group.order**2, len(out)
    return (every * loss_by_gram(w, group, scale) - count * rest) / (every - count), rest


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def loss_of_pairs(w: Float[Array, "3 d q"], group: Abelian, used: Bool[Array, "d d"]) -> Float[Array, ""]:
    """L over the pairs marked in ``used``, equal to :func:`model.loss`."""
    return loss(w, group, "code", used)


def gradient(w: Float[Array, "3 d q"], group: Abelian, used: Bool[Array, "d d"]) -> Float[Array, "3 d q"]:
    """The derivative of :func:`loss_of_pairs`."""
    d, q = w.shape[1:]
    a, b, c = centred(w)
    s = a[:, None] + b
    square = jnp.square(s).reshape(d * d, q)
    aim = jnp.asarray(np.eye(d)[group.add] - 1 / d, w.dtype)
    weight = jnp.where(used, 2 / jnp.sum(used).astype(w.dtype), 0)
    r = (((square @ c.T).reshape(d, d, d) - aim) * weight[..., None]).reshape(d * d, d)
    hidden = 2 * s * (r @ c).reshape(d, d, q)
    top = r.T @ square
    return jnp.stack([jnp.sum(hidden, 1), jnp.sum(hidden, 0), top - jnp.mean(top, 0)])


def _forward(w: Float[Array, "3 d q"], group: Abelian, used: Bool[Array, "d d"]) -> tuple[Array, Array]:
    return loss_of_pairs(w, group, used), gradient(w, group, used)


def _backward(group: Abelian, saved: Float[Array, "3 d q"], change: Float[Array, ""]) -> tuple[Array, None]:
    return change * saved, None


loss_of_pairs.defvjp(_forward, _backward)
