r"""The synthetic runs of the paper's figures: the network on sampled sequences, and its training.

The network of ``model.py`` on batches of sampled sequences, restricted to the parameters that such data can move.

Y has rows of contextual tokens only, and a row of Z has the tokens of its query's classes only: all other entries stay at their
initial values, whatever the optimizer. A class's own token occurs with one query only, so that its logit is stored once. Letters
as in ``data/classes.py``; n sequences, :math:`\delta = (e_\text{label} - \alpha)/n`.

The authors' synthetic runs: sequences of independent tokens and a query, in batches, for 100 steps.

Two classes with a query each are Syn-Small (Figures 4 and 5); two classes per query, and a random start, are Syn-Medium (Figure
6). Letters as in ``data/classes.py``; entropies in nats.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import metrics, train
from jaxdyn.data import classes
from jaxdyn.data.classes import Vocabulary
from jaxdyn.theories.snap import model, published
from jaxdyn.theories.snap.dynamics.clock import clock


class Compact(NamedTuple):
    """What can move: decoder rows of contextual tokens, logits of common tokens by query, and of own tokens by class."""

    y: Float[Array, "T M"]
    common: Float[Array, "R C"]
    own: Float[Array, "K D"]


class Batch(NamedTuple):
    """Sequences: class, and counts on the class's support."""

    chosen: Int[Array, " n"]
    counts: Float[Array, "n S"]


def start(key: PRNGKeyArray, vocabulary: Vocabulary, scale: float | Float[Array, ""], dtype: str) -> Compact:
    r"""Uniform on :math:`\pm\,\text{scale}/\sqrt M`: with scale 1 the usual initial values of a linear layer, with 0 zero."""
    v = vocabulary
    shapes = ((v.contextual, v.size), (v.num_last, v.common), (v.classes, v.distinct))
    ends = np.cumsum([np.prod(shape) for shape in shapes])
    u = scale * jax.random.uniform(key, (int(ends[-1]),), dtype, -1.0, 1.0) / v.size**0.5
    return Compact(*(part.reshape(shape) for part, shape in zip(jnp.split(u, ends[:-1]), shapes, strict=True)))


def expand(params: Compact, vocabulary: Vocabulary) -> model.Params:
    """The same network in the parameters of ``model.py``; what cannot move is 0."""
    v = vocabulary
    y = jnp.zeros((v.size, v.size), params.y.dtype).at[: v.contextual].set(params.y)
    z = jnp.zeros((v.num_last, v.size), params.y.dtype).at[:, : v.common].set(params.common)
    return model.Params(y, z.at[v.query[:, None], v.support[:, v.common :]].set(params.own))


def _class_logits(params: Compact, query: Int[np.ndarray, " K"]) -> Float[Array, "K S"]:
    return jnp.concatenate([params.common[query], params.own], 1)


def attention(params: Compact, vocabulary: Vocabulary, on_support: Float[Array, " S"]) -> Float[Array, "K S"]:
    """Attention of every class at infinite length, on its support."""
    return jax.nn.softmax(jnp.log(on_support) + _class_logits(params, vocabulary.query))


def sums(params: Compact, vocabulary: Vocabulary) -> tuple[Float[Array, " T"], Float[Array, " R"]]:
    """Sum of each row of Y, and of each row of Z over the tokens that can move."""
    own = jnp.sum(params.own.reshape(vocabulary.num_last, -1), 1)  # the classes of a query are neighbours
    return jnp.sum(params.y, 1), jnp.sum(params.common, 1) + own


def make_loss(vocabulary: Vocabulary) -> Any:
    r"""Mean cross-entropy of a batch, ``loss(params, batch)``, with a gradient that takes two large matrix products.

    With the features F (n x T) and :math:`s = (FY)\cdot\delta`,

    .. math:: \partial Y = F^\top\delta, \qquad
              \partial z_l = \sum_b f_{bl}\,(Y\delta_b)_l - f_{bl}^2\,s_b

    and for a token l of one class alone :math:`\sum_b f_{bl}(Y\delta_b)_l = \sum_j Y_{lj}\,\partial Y_{lj}`: of the third
    product that backpropagation makes, :math:`\delta Y^\top`, only the columns of common tokens are needed. Source: the
    gradient of arXiv:2305.16380, Lemma 1, summed over a batch; equal to autodiff of ``model.cross_entropy``.
    """
    v, query = vocabulary, vocabulary.query

    # forward: the loss, and what its gradient needs
    def features(params: Compact, batch: Batch) -> tuple[Array, Array]:
        """Normalised attention on the supports, and the same over all contextual tokens."""
        e = model.attend(_class_logits(params, query)[batch.chosen], batch.counts)
        f = model.normalized(e)
        member = jax.nn.one_hot(batch.chosen, v.classes, dtype=f.dtype)
        own = (member[:, :, None] * f[:, None, v.common :]).reshape(len(f), -1)
        return f, jnp.concatenate([f[:, : v.common], own], 1)

    def forward(params: Compact, batch: Batch) -> tuple[Array, tuple]:
        f, wide = features(params, batch)
        logits = wide @ params.y
        log_alpha = jax.nn.log_softmax(logits)
        label = jnp.asarray(v.label)[batch.chosen]
        value = -jnp.mean(jnp.take_along_axis(log_alpha, label[:, None], 1))
        target = jax.nn.one_hot(label, v.size, dtype=f.dtype)
        return value, (params, batch.chosen, f, wide, logits, (target - jnp.exp(log_alpha)) / len(f))

    # backward: two large products
    def backward(saved: tuple, outer: Array) -> tuple[Compact, None]:
        params, chosen, f, wide, logits, delta = saved
        s = jnp.sum(logits * delta, 1, keepdims=True)
        y = wide.T @ delta
        back = delta @ params.y[: v.common].T
        by_class = jax.nn.one_hot(chosen, v.classes, dtype=f.dtype)
        by_query = jax.nn.one_hot(jnp.asarray(query)[chosen], v.num_last, dtype=f.dtype)
        shared, own = f[:, : v.common], f[:, v.common :]
        common = by_query.T @ (shared * (back - shared * s))
        match = jnp.sum(params.y[v.common :] * y[v.common :], 1).reshape(v.classes, v.distinct)
        gradient = Compact(y, common, match - by_class.T @ (own**2 * s))
        return jax.tree.map(lambda g: -outer * g, gradient), None

    @jax.custom_vjp
    def loss(params: Compact, batch: Batch) -> Float[Array, ""]:
        return forward(params, batch)[0]

    loss.defvjp(forward, backward)
    return loss


OPTIMIZERS = ("sgd", "adam")


@jd.setting
class Syn:
    """One run. Learning rates are those of the update: heavy ball ``m <- momentum m + g``, ``parameter <- parameter - lr m``."""

    optimizer: jd.Code = jd.code(*OPTIMIZERS)  # heavy ball or Adam
    lr: jd.Swept = 1.0  # of Z
    ratio: jd.Swept = 1.0  # learning rate of Y over that of Z
    momentum: jd.Swept = 0.9  # of the heavy ball
    init: jd.Swept = 0.0  # the start is uniform on +-init/sqrt(M)
    num_last: int = 2  # R, queries (last tokens)
    num_next_per_last: int = 1  # classes (next tokens) of a query
    common: int = 10  # tokens that all classes share
    distinct: int = 10  # tokens of each class's own
    batch: int = jd.field(128, at_least=1)  # fresh sequences of a step
    length: int = jd.field(127, at_least=1)  # contextual positions
    steps: int = jd.field(100, at_least=1)  # of training
    every: int = jd.field(2, at_least=1)  # steps between records
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse vocabularies without tokens, and a last record before the last step."""
        vocabulary(self)
        jd.require(self, self.steps % self.every == 0, f"every divides steps={self.steps}", "every")


def vocabulary(s: Syn) -> classes.Vocabulary:
    """The run's vocabulary."""
    return classes.Vocabulary(s.num_last, s.num_next_per_last, s.common, s.distinct)


def make_tx(s: Syn) -> optax.GradientTransformation:
    """Heavy ball or Adam with one learning rate for Z and another for Y."""
    rule = train.switched(s.optimizer, {"sgd": optax.trace(s.momentum), "adam": optax.scale_by_adam()})

    def update(gradient: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        move, state = rule.update(gradient, state, params)
        rates = Compact(y=s.lr * s.ratio, common=s.lr, own=s.lr)
        return jax.tree.map(lambda rate, m: -rate * m, rates, move), state

    return optax.GradientTransformation(rule.init, update)


def run(s: Syn, key: PRNGKeyArray) -> tuple[Compact, Compact, dict[str, Array]]:
    """Train: initial and final parameters, and the attention at infinite length at every record.

    Of the attention, ``numbers`` are the quantities of :func:`numbers`, and ``attention`` is that of the first class.
    """
    v = vocabulary(s)
    k_init, k_data = jax.random.split(key)
    p = classes.law(v, dtype=s.dtype)
    initial = start(k_init, v, s.init, s.dtype)

    def batch(step: Array) -> Batch:
        return Batch(*classes.draw(jax.random.fold_in(k_data, step), v, p, s.batch, s.length))

    def observe(state: train.State) -> dict[str, Array]:
        c = attention(state.params, v, p)
        return {"numbers": numbers(c, v.common), "attention": c[0]}

    tx = make_tx(s)
    step = train.make_step(make_loss(v), tx, batch)
    final, records = train.record(step, train.init(tx, initial), observe, samples=s.steps // s.every, every=s.every)
    return initial, final.params, records


def numbers(c: Float[Array, "K S"], common: int) -> Float[Array, " quantity"]:
    """Entropies of the attention on a class's own tokens (renormalised) and on all, mass of common tokens, and one attention.

    Means over classes but for the last, the attention of the first class on its most frequent token (19 in Syn-Small).
    """
    own = c[:, common:]
    mass = jnp.sum(own, 1)
    sharp = metrics.entropy(own / mass[:, None])
    return jnp.stack([jnp.mean(sharp), jnp.mean(metrics.entropy(c)), 1 - jnp.mean(mass), c[0, -1]])


def reference(s: Syn) -> tuple[Float[Array, " quantity"], Float[Array, ""]]:
    """Reference numbers of the nearest run of Figure 5; whether that run has this one's optimizer, momentum, ratio and tokens."""
    rows = published.FIG5
    other = [jnp.abs(s.momentum - r.momentum) + jnp.abs(jnp.log(s.ratio / r.ratio)) for r in rows]
    distance = jnp.stack([jnp.where(s.optimizer == r.optimizer, d, 100) for r, d in zip(rows, other, strict=True)])
    best = jnp.argmin(distance)
    small = (s.num_last, s.num_next_per_last, s.common, s.distinct) == (2, 1, 10, 10)
    return jnp.asarray([r.numbers for r in rows], s.dtype)[best], ((distance[best] < 1e-4) & small).astype(s.dtype)


def sharpened(p: Float[Array, " D"], c: Float[Array, "K D"]) -> Float[Array, "K D"]:
    r"""Attention among a class's own tokens by Theorem 3 (shares), given how far its first and its last token are apart in c.

    From a zero start :math:`(1 - e^{-2z_l})/P_l^2` is the same number :math:`\kappa` for all own tokens, so that
    :math:`c_l \propto P_l\,(1 - \kappa P_l^2)^{-1/2}`; the first and the last token give :math:`\kappa`. Source:
    arXiv:2305.16380, Theorem 3. Departure: an order of these two that the law cannot have counts as no gain of either.
    """
    least, most = p[0], p[-1]
    gain = (c[:, -1:] / most * least / c[:, :1]) ** 2  # e^{2 (z_most - z_least)}
    left = (most**2 - least**2) / (gain * most**2 - least**2)  # 1 - kappa most^2
    left = jnp.where(gain * most**2 > least**2, left, 1.0)
    weight = p / jnp.sqrt(jnp.maximum(1 - (1 - left) * (p / most) ** 2, jnp.finfo(p.dtype).tiny))
    return weight / jnp.sum(weight, 1, keepdims=True)


def small_trial(s: Syn, key: PRNGKeyArray) -> jd.Observables:
    """A run of Syn-Small and the reference; attention among a class's own tokens and that of Theorem 3."""
    v = vocabulary(s)
    _, final, records = run(s, key)
    p = classes.law(v, dtype=s.dtype)
    c = attention(final, v, p)
    own = c[:, v.common :]
    expected, known = reference(s)
    return jd.observables(
        predicted={
            "numbers": jd.named(expected, "quantity"),
            "attention": jd.named(sharpened(p[v.common :], own), "class token"),
        },
        measured={
            "numbers": jd.named(records["numbers"][-1], "quantity"),
            "attention": jd.named(own / jnp.sum(own, 1, keepdims=True), "class token"),
        },
        recorded={
            "known": known,
            "law": jd.named(p[v.common :] / jnp.sum(p[v.common :]), "token"),
            "curve": jd.named(records["numbers"], "record quantity"),
            "first_class": jd.named(records["attention"], "record slot"),
        },
        coords={"quantity": published.QUANTITIES, "record": range(0, s.steps + 1, s.every)},
    )


def table(s: Syn) -> tuple[Float[Array, " 2"], Bool[Array, ""]]:
    """Published mean and standard deviation of the nearest cell, and whether that cell is this run's own."""
    known = s.num_last in published.FIG6 and (s.num_next_per_last, s.common, s.distinct) == (published.NEXT, 10, 10)
    cells = jnp.asarray(published.FIG6[s.num_last if known else 1], jnp.float64)
    axes = ((s.lr, published.LRS), (s.ratio, published.RATIOS))
    distances = [jnp.abs(jnp.log(value / np.array(axis))) for value, axis in axes]
    own = (jnp.min(distances[0]) + jnp.min(distances[1]) < 1e-4) & known
    return cells[jnp.argmin(distances[0]), jnp.argmin(distances[1])], own


def growth(s: Syn) -> Float[Array, ""]:
    r"""The argument of the law of growth but for constants of the data, :math:`(\eta_Z/\eta_Y)\,u^2` after all steps.

    :math:`B = \frac1q\ln(1 + \frac{2K\rho}{C_0}(\frac{M-1}M)^2\frac{\eta_Z}{\eta_Y}u^2)`, at :math:`s = M\eta_Y t/K`; momentum
    :math:`\mu` counts as a rate of :math:`\eta/(1-\mu)`. Source: arXiv:2305.16380, Theorem 4, with the exact clock.
    """
    v = vocabulary(s)
    lr, ratio, momentum = (jnp.asarray(x, jnp.float64) for x in (s.lr, s.ratio, s.momentum))
    return clock(v.size * lr * ratio * s.steps / (1 - momentum) / v.classes, v.size) ** 2 / ratio


def medium_trial(s: Syn, key: PRNGKeyArray) -> jd.Observables:
    """A run and the published entropy of its cell, the law of growth, and the conserved sums of the rows of Y and Z."""
    initial, final, records = run(s, key)
    (mean, sd), known = table(s)
    entropy = records["numbers"][:, 0]
    before, after = (jnp.concatenate(sums(params, vocabulary(s))) for params in (initial, final))
    moved = [jnp.sum(jnp.abs(b - a), 1) for a, b in ((initial.y, final.y), (initial.common, final.common))]
    return jd.observables(
        predicted={"entropy": mean, "growth": growth(s), "sums": jd.named(before, "row")},
        measured={"entropy": entropy[-1], "growth": entropy[0] - entropy[-1], "sums": jd.named(after, "row")},
        recorded={
            "published_sd": sd,
            "known": known.astype(jnp.float64),
            "moved": jd.named(jnp.concatenate(moved), "row"),
            "curve": jd.named(entropy, "record"),
        },
        coords={"record": range(0, s.steps + 1, s.every)},
    )


MEDIUM = jd.grid(
    Syn, num_last=[1, 3], num_next_per_last=published.NEXT, init=1.0, lr=list(published.LRS), ratio=list(published.RATIOS)
)
