r"""A ReLU decoder trained on a text, then run in parts: by what each token needs, by averages, by what was foreseen.

Losses are those of the whole network and, on the same held-out text, of every mode of
:data:`jaxdyn.theories.dejavu.model.MODES` with half, a quarter and a tenth of the units of every MLP (all heads), or with half and
a quarter of the heads (all units). Averages and predictors are made from the training text after training; a predictor of rank
d/4 is fitted to which units are a token's largest, by Adam on the binary cross-entropy, for each layer, share and source.
Source: arXiv:2310.17157, sections 3 and 4; sizes ours.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import text, train
from jaxdyn.text import pretraining
from jaxdyn.theories.dejavu import model

SHARES = (0.5, 0.25, 0.1)  # of the units that run
HEAD_SHARES = (0.5, 0.25)  # of the heads
HEAD_MODES = ("own", "other", "mean", "random")


@jd.setting
class Parts:
    """A decoder, its training on the interpreter's manual, and that of the predictors."""

    lr: jd.Swept = jd.field(1e-2, above=0)  # initial rate of Adam for the decoder; decays to a tenth
    predictor_lr: jd.Swept = jd.field(2e-2, above=0)  # initial rate of Adam for the predictors; decays to a tenth
    layers: int = jd.field(2, at_least=1)  # layers of the decoder
    width: int = jd.field(32, at_least=4)  # d, entries of the residual stream
    hidden: int = jd.field(128, at_least=10)  # units in the MLP of each layer
    heads: int = jd.field(4, at_least=4)  # attention heads in each layer
    length: int = jd.field(32, at_least=4)  # tokens that the decoder reads of a text
    batch: int = jd.field(8, at_least=1)  # texts per training step
    steps: int = jd.field(240, at_least=1)  # training steps of the decoder
    fitted: int = jd.field(64, at_least=8)  # texts from which averages and predictors are made
    fits: int = jd.field(150, at_least=1, role="time")  # steps of a predictor
    texts: int = jd.field(16, at_least=1)  # of the evaluation
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.width % self.heads == 0, "width is a multiple of heads", "width", "heads")


class Fit(NamedTuple):
    """Weights of predictors for every share of the units, [share, L, source, …]."""

    low: Float[Array, "share L source d r"]
    high: Float[Array, "share L source r f"]
    bias: Float[Array, "share L source f"]


def nats(logits: Float[Array, "*b T V"], tokens: Int[Array, "*b T1"]) -> Float[Array, "*b T"]:
    """Cross-entropy of every next token."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., 1:, None], -1)[..., 0]


def counts(s: Parts) -> Int[Array, " share"]:
    """Units that run at each share."""
    return jnp.asarray([max(1, round(share * s.hidden)) for share in SHARES], jnp.int32)


def largest(s: Parts, units: Float[Array, "*b f"]) -> Bool[Array, "share *b f"]:
    """Which units are a token's largest, at each share; units that are off are not."""
    return (model.places(units) < counts(s).reshape(-1, *[1] * units.ndim)) & (units > 0)


def sloped(logits: Float[Array, "*b f"], labels: Float[Array, "*#b f"]) -> Float[Array, "*b f"]:
    r"""A number with the gradient of the binary cross-entropy, :math:`\sigma(z) - y`; its value means nothing, and costs less."""
    return jax.lax.stop_gradient(jax.nn.sigmoid(logits) - labels) * logits


def fit(s: Parts, key: PRNGKeyArray, seen: model.Activity) -> Fit:
    """Predictors of the largest units, from the text behind ``seen`` [b, L, T, …]."""
    rank, (k_low, k_high) = s.width // 4, jax.random.split(key)
    flat = jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0).reshape(s.layers, -1, x.shape[-1]), (seen.inputs, seen.before, seen.units))
    sources, units = jnp.stack(flat[:2], 1), flat[2]
    size = (len(SHARES), s.layers, len(model.SOURCES))
    start = Fit(
        jax.random.normal(k_low, (*size, s.width, rank), s.dtype) * s.width**-0.5,
        jax.random.normal(k_high, (*size, rank, s.hidden), s.dtype) * rank**-0.5,
        jnp.zeros((*size, s.hidden), s.dtype),
    )
    labels, chunk = largest(s, units).astype(s.dtype), units.shape[1] // 8

    def loss(p: Fit, i: Array) -> Array:
        x, label = (jax.lax.dynamic_slice_in_dim(a, (i % 8) * chunk, chunk, -2) for a in (sources, labels))
        logits = jnp.einsum("lsnd,klsdr,klsrf->klsnf", x, p.low, p.high) + p.bias[..., None, :]
        return jnp.sum(jnp.mean(sloped(logits, label[:, :, None]), (-2, -1)))

    tx = optax.adam(optax.schedules.cosine_decay_schedule(s.predictor_lr, s.fits, 0.1))
    step = train.make_step(loss, tx, lambda i: i)
    return jax.lax.fori_loop(0, s.fits, lambda _, state: step(state), train.init(tx, start)).params


def signs(s: Parts, seen: model.Activity, fitted: Fit) -> model.Signs:
    """Averages over the text behind ``seen`` [b, L, T, …], and predictors, for every share."""
    frequency = jnp.mean(largest(s, seen.units).astype(s.dtype), (1, 3))
    each = (len(SHARES), s.layers)
    mean, norm = (jnp.broadcast_to(jnp.mean(x, (0, 2)), (*each, x.shape[-1])) for x in (seen.units, seen.norms))
    return model.Signs(mean, frequency, norm, *fitted)


def parts(s: Parts) -> tuple[model.Part, Int[Array, " p"]]:
    """All parts that are run, those of units [mode, share] and then those of heads [mode, share] in one axis; and their shares."""
    units = [(mode, counts(s)[i], s.heads, i) for mode in range(len(model.MODES)) for i in range(len(SHARES))]
    heads = [(model.MODES.index(m), s.hidden, round(share * s.heads), 0) for m in HEAD_MODES for share in HEAD_SHARES]
    mode, unit, head, share = (jnp.asarray(column, jnp.int32) for column in zip(*units, *heads, strict=True))
    return model.Part(mode, unit, head), share


def recall(s: Parts, seen: model.Activity, one: model.Signs) -> Float[Array, "source_and_more share"]:
    """Share of each token's largest units that a prediction names: predictors by source, a shuffled one, the most frequent."""
    true = largest(s, seen.units)  # [share, b, L, T, f]

    def each(signs: model.Signs, true: Array, count: Array) -> Array:
        def layer(signs: model.Signs, z: Array, before: Array) -> Array:
            same, previous = (model.top(model.foreseen(signs, i, x), count) for i, x in enumerate((z, before)))
            often = jnp.broadcast_to(model.top(signs.frequency, count), same.shape)
            return jnp.stack([same, previous, jnp.roll(same, s.length // 2, 0), often])

        named = jax.vmap(jax.vmap(layer), (None, 0, 0))(signs, seen.inputs, seen.before)  # [b, L, 4, T, f]
        hits = jnp.sum(named & true[:, :, None], (0, 1, 3, 4))
        return hits.astype(s.dtype) / jnp.sum(true).astype(s.dtype)

    return jax.vmap(each, (0, 0, 0), 1)(one, true, counts(s))


def streams(seen: model.Activity) -> dict[str, Array]:
    r"""Cosines between streams and the next ones, and their bound :math:`\sqrt{1 - \rho^2}` where there is one.

    All [L, half], means over tokens; the half 0 is attention, 1 is the MLP.
    """
    x, change = seen.streams, seen.changes
    size = jnp.linalg.norm(x, axis=-1)
    after = x + change
    cosine = jnp.sum(x * after, -1) / (size * jnp.linalg.norm(after, axis=-1))
    ratio = jnp.linalg.norm(change, axis=-1) / size
    inside = ratio < 1
    bound = jnp.sqrt(jnp.maximum(1 - ratio**2, 0))
    axes = (0, 3)

    def mean(values: Array) -> Array:
        return jnp.sum(jnp.where(inside, values, 0), axes) / jnp.maximum(jnp.sum(inside, axes), 1)

    least = jnp.min(jnp.where(inside, cosine - bound, 1), axes)
    void = jnp.mean((~inside).astype(size.dtype), axes)
    return {"cosine": jnp.mean(cosine, axes), "inside": mean(cosine), "bound": mean(bound), "room": least, "void": void}


def losses_in_parts(
    s: Parts, params: model.Params, held: Int[Array, "b T1"], one: model.Signs, key: PRNGKeyArray
) -> Float[Array, " part"]:
    """Mean cross-entropy of held-out texts with each part of the network, in the order of :func:`parts`."""

    def run(choice: tuple[model.Part, Array]) -> Array:
        kind, share = choice
        own = jax.tree.map(lambda x: x[share], one)
        keys = jax.random.split(key, s.texts)
        rows = jax.vmap(lambda row, k: model.forward(params, row[:-1], s.heads, (kind, own, k))[0])(held, keys)
        return jnp.mean(nats(rows, held))

    return jax.lax.map(run, parts(s))


def trial(s: Parts, key: PRNGKeyArray) -> jd.Observables:
    """Training from scratch, averages and predictors, and losses of all parts."""
    # text and network
    k_init, k_data, k_fit, k_luck = jax.random.split(key, 4)
    corpus = text.load("topics", "bytes", None)
    stream = jnp.asarray(corpus.train)
    held = jnp.asarray(pretraining.spaced(corpus.valid, s.texts, s.length))

    def batch(key: PRNGKeyArray, count: int) -> Int[Array, "b T1"]:
        return pretraining.sample(key, stream, count, s.length)

    def apply(params: model.Params, tokens: Int[Array, "b T1"]) -> tuple[Array, model.Activity]:
        return jax.vmap(lambda row: model.forward(params, row[:-1], s.heads))(tokens)

    def loss(params: model.Params, tokens: Int[Array, "b T1"]) -> Array:
        return jnp.mean(nats(apply(params, tokens)[0], tokens))

    # training
    tx = optax.adam(optax.schedules.cosine_decay_schedule(s.lr, s.steps, 0.1))
    step = train.make_step(loss, tx, lambda i: batch(jax.random.fold_in(k_data, i), s.batch))
    initial = model.init(k_init, len(corpus.vocabulary), s.length, s.layers, s.width, s.hidden, s.dtype)
    params = jax.lax.fori_loop(0, s.steps, lambda _, state: step(state), train.init(tx, initial)).params
    # averages and predictors, from the training text
    _, seen = apply(params, batch(jax.random.fold_in(k_data, s.steps), s.fitted))
    one = signs(s, seen, fit(s, k_fit, seen))
    # the network in parts, on held-out text
    logits, seen = apply(params, held)
    losses = losses_in_parts(s, params, held, one, k_luck)
    many = len(model.MODES) * len(SHARES)
    used = largest(s, seen.units)
    union = jnp.sum(jnp.any(used, 3), -1) / jnp.mean(jnp.sum(used, -1), 3)
    ends = streams(seen)
    return jd.observables(
        predicted={},
        measured={
            "units": jd.named(losses[:many].reshape(-1, len(SHARES)), "mode share"),
            "heads": jd.named(losses[many:].reshape(-1, len(HEAD_SHARES)), "head_mode head_share"),
            "recall": jd.named(recall(s, seen, one), "predictor share"),
            "union": jd.named(jnp.mean(union, (1, 2)), "share"),
        }
        | {name: jd.named(x, "layer half") for name, x in ends.items()},
        recorded={
            "whole": jnp.mean(nats(logits, held)),
            "start": loss(initial, held),
            "active": jnp.mean((seen.units > 0).astype(s.dtype)),
            "start_cosine": jd.named(streams(apply(initial, held)[1])["cosine"], "layer half"),
        },
        status=train.finite_status(params),
        coords={
            "mode": model.MODES,
            "share": SHARES,
            "head_mode": HEAD_MODES,
            "head_share": HEAD_SHARES,
            "predictor": (*model.SOURCES, "shuffled", "frequency"),
            "half": ("attention", "mlp"),
        },
    )
