r"""The transformer for modular addition, and its training.

A one-layer transformer on ``a b =``, read at the last position; no layer norm, no biases but those of the MLP.

.. math:: x_i = W_E[t_i] + W_P[i], \qquad
   y = x_2 + \sum_h W_O^h \sum_{i \le 2} \operatorname{softmax}_i\!\Bigl(\tfrac{(W_Q^h x_2) \cdot (W_K^h x_i)}{\sqrt{d_h}}\Bigr)
   W_V^h x_i, \qquad z = W_U \bigl(y + W_2\, \mathrm{ReLU}(W_1 y + b_1) + b_2\bigr)

Tokens are t = (a, b, =). Only the last position is read, and one layer lies above the embedding: the mask hides nothing, the query
is the same for all pairs, and scores and values are functions of one token. So they are computed for 2p + 1 tokens rather than
for 3n, and gathered.
Source: arXiv:2301.05217, section 3. Letters: p residues, d width, h heads of e numbers, m units of the MLP, n pairs.
Departure: the output has p logits; the token "=" has none.

How the transformer is trained: full batch on a random share of all pairs, AdamW, cross-entropy.

Source: arXiv:2301.05217, section 3: p = 113, d = 128, 4 heads, 512 units, 30% of the pairs, rate 1e-3, decay 1, betas (.9, .98),
40 000 epochs.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train as loop
from jaxdyn.linalg import dense


class Params(NamedTuple):
    """The weights; row p of ``embed`` is the token "="."""

    embed: Float[Array, "p+1 d"]
    position: Float[Array, "3 d"]
    query: Float[Array, "d h e"]
    key: Float[Array, "d h e"]
    value: Float[Array, "d h e"]
    out: Float[Array, "h e d"]
    w_in: Float[Array, "d m"]
    b_in: Float[Array, " m"]
    w_out: Float[Array, "m d"]
    b_out: Float[Array, " d"]
    unembed: Float[Array, "d p"]


def init(key: PRNGKeyArray, p: int, width: int, heads: int, hidden: int, dtype: str = "float32") -> Params:
    r"""Gaussian weights with standard deviation :math:`d^{-1/2}` (unembedding :math:`p^{-1/2}`), biases zero.

    Source: the released code of arXiv:2301.05217. Departure: :math:`p^{-1/2}` where the code has :math:`(p+1)^{-1/2}`.
    """
    each = width // heads
    shapes = {
        "embed": (p + 1, width),
        "position": (3, width),
        "query": (width, heads, each),
        "key": (width, heads, each),
        "value": (width, heads, each),
        "out": (heads, each, width),
        "w_in": (width, hidden),
        "w_out": (hidden, width),
        "unembed": (width, p),
    }
    sizes, keys = [math.prod(shape) for shape in shapes.values()], jax.random.split(key, len(shapes))
    scale = {name: width**-0.5 for name in shapes} | {"unembed": p**-0.5}
    # one draw for all, each cut to its size: as many draws as layers would take three times as long to compile
    normal = jax.vmap(lambda k: jax.random.normal(k, (max(sizes),), dtype))(keys)
    drawn = {name: scale[name] * x[:n].reshape(shapes[name]) for name, x, n in zip(shapes, normal, sizes, strict=True)}
    return Params(b_in=jnp.zeros(hidden, dtype), b_out=jnp.zeros(width, dtype), **drawn)


def all_pairs(p: int) -> Int[Array, "{p*p} 2"]:
    """All pairs (a, b), b running fastest."""
    return jnp.stack(jnp.divmod(jnp.arange(p * p, dtype=jnp.int32), p), -1)


def answers(pairs: Int[Array, "n 2"], p: int) -> Int[Array, " n"]:
    """The sums a + b modulo p."""
    return jnp.sum(pairs, 1, dtype=jnp.int32) % p


def logits(w: Params, pairs: Int[Array, "n 2"]) -> Float[Array, "n p"]:
    """The logits z of each pair."""
    numbers, end = w.embed[:-1], w.embed[-1] + w.position[2]
    tokens = jnp.concatenate([numbers + w.position[0], numbers + w.position[1], end[None]])  # rows: a first, b second, "="
    query = jnp.einsum("d,dhe->he", end, w.query)
    score = jnp.einsum("td,dhe,he->th", tokens, w.key, query) * w.key.shape[-1] ** -0.5
    value = jnp.einsum("td,dhe->the", tokens, w.value)
    rows = (pairs[:, 0], pairs[:, 1] + len(numbers), 2 * len(numbers))  # the last one is the same for all pairs: no gather
    scores = [score[row] for row in rows]
    largest = jax.lax.stop_gradient(functools.reduce(jnp.maximum, scores))
    weights = [jnp.exp(x - largest) for x in scores]
    weighted: Any = sum(a[..., None] * value[row] for a, row in zip(weights, rows, strict=True))
    whole: Any = sum(weights)
    mixed = weighted / whole[..., None]
    y = end + dense(mixed.reshape(len(mixed), -1), w.out.reshape(-1, w.out.shape[-1]))
    y = y + dense(jax.nn.relu(dense(y, w.w_in) + w.b_in), w.w_out) + w.b_out
    return dense(y, w.unembed)


def loss(z: Float[Array, "n p"], answers: Int[Array, " n"]) -> Float[Array, " n"]:
    r"""Cross-entropy of each pair, :math:`\ln\bigl(1 + \sum_{c \ne y} e^{z_c - z_y}\bigr)`; chance is ln p.

    So written a loss and its gradient keep their relative precision however small they are. Departure: the paper's code takes
    the logarithm of the softmax, in float64; in float32 its losses below 1e-7 would be rounding, and training would stop.
    """
    right = answers[:, None] == jnp.arange(z.shape[1], dtype=jnp.int32)
    others = jax.nn.logsumexp(jnp.where(right, -jnp.inf, z), 1)
    return jax.nn.softplus(others - jnp.sum(jnp.where(right, z, 0), 1))


def norm(w: Params) -> Float[Array, ""]:
    """Sum of the squares of all weights."""
    whole: Any = sum(jnp.sum(jnp.square(x)) for x in w)
    return whole


@jd.setting
class Training:
    """A training run; the defaults grok in seconds on two cores.

    Args:
        lr: the rate of AdamW.
        decay: its decoupled weight decay.
        p: residues, odd.
        width: d.
        heads: h.
        hidden: units of the MLP.
        share: of all pairs, for training.
        epochs: steps of training.
        every: epochs between two records.
        dtype: of the network.
    """

    lr: jd.Swept = 3e-3
    decay: jd.Swept = 2.0
    p: int = jd.field(53, at_least=5)
    width: int = jd.field(32, at_least=1)
    heads: int = jd.field(4, at_least=1)
    hidden: int = jd.field(128, at_least=1)
    share: float = 0.5
    epochs: int = jd.field(1200, at_least=1)
    every: int = jd.field(15, at_least=1)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse even p, heads that do not fit the width, no pairs to train or to test on, and records that end before the run."""
        jd.require(self, self.p % 2 == 1, "p is odd", "p")
        jd.require(self, self.width % self.heads == 0, "the width is a multiple of heads", "width", "heads")
        jd.require(self, 0 < count(self) < self.p**2, "share leaves pairs to train and to test on", "share", "p")
        jd.require(self, self.epochs % self.every == 0, "epochs is a multiple of every", "epochs", "every")


class Run(NamedTuple):
    """The weights at every record (leading axis), and the pairs (numbers in :func:`model.all_pairs`) of training and test."""

    weights: Params
    train: Int[Array, " n"]
    test: Int[Array, " m"]


def count(s: Training) -> int:
    """Number of training pairs."""
    return round(s.share * s.p**2)


def split(key: PRNGKeyArray, s: Training) -> tuple[Int[Array, " n"], Int[Array, " m"]]:
    """Numbers of the training pairs, and of the test pairs."""
    order = jax.random.permutation(key, jnp.arange(s.p**2, dtype=jnp.int32))
    return order[: count(s)], order[count(s) :]


def train(s: Training, key: PRNGKeyArray) -> Run:
    r"""Train one network by AdamW on the mean cross-entropy of the training pairs; record the weights.

    .. math:: \theta \leftarrow \theta - \eta\,\bigl(\hat m / (\sqrt{\hat v} + \epsilon) + \lambda \theta\bigr)
    """
    k_data, k_init = jax.random.split(key)
    trained, unseen = split(k_data, s)
    pairs = all_pairs(s.p)[trained]
    labels = answers(pairs, s.p)
    tx = optax.adamw(s.lr, b1=0.9, b2=0.98, weight_decay=s.decay)
    state = loop.init(tx, init(k_init, s.p, s.width, s.heads, s.hidden, s.dtype))

    def objective(w: Params) -> Float[Array, ""]:
        return jnp.mean(loss(logits(w, pairs), labels))

    step = loop.make_step(objective, tx)
    _, weights = loop.record(step, state, lambda x: x.params, samples=s.epochs // s.every, every=s.every)
    return Run(weights, trained, unseen)


def training_mask(run: Run, p: int) -> Bool[Array, " {p*p}"]:
    """Which of all pairs the network is trained on."""
    return jnp.zeros(p * p, bool).at[run.train].set(True)
