r"""A ReLU decoder of which parts may run for every token: the network, and its training on a text.

A ReLU decoder of which, for every token, a part alone may run: some heads, some units of the MLPs.

.. math:: x \leftarrow x + \textstyle\sum_h m_h\, O_h A_h v_h, \qquad
   x \leftarrow x + W_{out}^\top (n \circ \mathrm{relu}(z W_{in} + c)), \qquad z = N x

with learned positions, N the root-mean-square norm, and the masks m (heads) and n (units) of the largest scores of every token. The
scores are any function of what the token shows in the layer, by a traced switch; with masks of ones it is a plain decoder.
Source: arXiv:2310.17157, section 3.1 (which parts: heads by the norm of their output, units by their activation), section 4.1
(predictors of low rank); the sizes are ours.
Letters: b texts of T tokens of V, L layers, d width, h heads, f units, r rank of a predictor.

A ReLU decoder trained on a text, then run in parts: by what each token needs, by averages, by what was foreseen.

Losses are those of the whole network and, on the same held-out text, of every mode of :data:`MODES` with half, a
quarter and a tenth of the units of every MLP (all heads), or with half and a quarter of the heads (all units). Averages
and predictors are made from the training text after training; a predictor of rank d/4 is fitted to which units are a token's
largest, by Adam on the binary cross-entropy, for each layer, share and source.
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
from jaxdyn.nn import attention
from jaxdyn.nn.transformer import rms_norm
from jaxdyn.text import pretraining

EPSILON = 1e-6
SOURCES = ("same", "previous")  # whose stream a predictor sees: the MLP's own input, or the input of the MLP before
MODES = ("own", "other", "mean", "frequency", "random", *SOURCES, "shuffled")


class Layer(NamedTuple):
    """Weights of all layers, stacked."""

    qkv: Float[Array, "*L three d d"]
    out: Float[Array, "*L d d"]
    inner: Float[Array, "*L d f"]
    shift: Float[Array, "*L f"]
    outer: Float[Array, "*L f d"]
    gains: Float[Array, "*L two d"]


class Params(NamedTuple):
    """All weights."""

    embed: Float[Array, "V d"]
    position: Float[Array, "T d"]
    layers: Layer
    gain: Float[Array, " d"]
    head: Float[Array, "V d"]


class Signs(NamedTuple):
    """What scores may rest on besides the token's own layer: averages over a text, noise, predictors (by source)."""

    mean: Float[Array, "*L f"]
    frequency: Float[Array, "*L f"]
    head_mean: Float[Array, "*L h"]
    low: Float[Array, "*L source d r"]
    high: Float[Array, "*L source r f"]
    bias: Float[Array, "*L source f"]


class Part(NamedTuple):
    """Which part runs: places in :data:`MODES` and how many heads and units of every token."""

    mode: Int[Array, "*p"]
    units: Int[Array, "*p"]
    heads: Int[Array, "*p"]


class Activity(NamedTuple):
    """What every token shows in every layer: streams before both halves, their changes, units, norms of heads' outputs, z."""

    streams: Float[Array, "L two T d"]
    changes: Float[Array, "L two T d"]
    units: Float[Array, "L T f"]
    norms: Float[Array, "L T h"]
    inputs: Float[Array, "L T d"]
    before: Float[Array, "L T d"]


def init(key: PRNGKeyArray, vocabulary: int, length: int, layers: int, width: int, hidden: int, dtype: str = "float32") -> Params:
    """Gaussian weights of variance 1 over the number of inputs; what writes into the stream is divided by the root of 2 L."""
    keys = jax.random.split(key, 7)

    def normal(i: int, scale: float, *size: int) -> Array:
        return jax.random.normal(keys[i], size, dtype) * jnp.asarray(scale, dtype)

    write = (2 * layers) ** -0.5
    return Params(
        embed=normal(0, 1.0, vocabulary, width),
        position=normal(1, 0.3, length, width),
        layers=Layer(
            qkv=normal(2, width**-0.5, layers, 3, width, width),
            out=normal(3, write * width**-0.5, layers, width, width),
            inner=normal(4, width**-0.5, layers, width, hidden),
            shift=jnp.zeros((layers, hidden), dtype),
            outer=normal(5, write * hidden**-0.5, layers, hidden, width),
            gains=jnp.ones((layers, 2, width), dtype),
        ),
        gain=jnp.ones((width,), dtype),
        head=normal(6, width**-0.5, vocabulary, width),
    )


def top(scores: Float[Array, "*b n"], count: int | Int[Array, ""]) -> Bool[Array, "*b n"]:
    """Where the largest scores are, of equal ones the first. The count may be traced; if it is all of them, none are compared."""
    return jax.lax.cond(count < scores.shape[-1], lambda: places(scores) < count, lambda: jnp.ones(scores.shape, bool))


def places(scores: Float[Array, "*b n"]) -> Int[Array, "*b n"]:
    """How many scores are larger, or as large and earlier; by comparing all pairs, which is faster than sorting short rows."""
    one, other = scores[..., :, None], scores[..., None, :]
    earlier = jnp.tri(scores.shape[-1], k=-1, dtype=bool)
    return jnp.sum((other > one) | ((other == one) & earlier), -1, dtype=jnp.int32)


def foreseen(signs: Signs, source: int, x: Float[Array, "T d"]) -> Float[Array, "T f"]:
    """Logits of a layer's predictor that a unit is among the largest."""
    return x @ signs.low[source] @ signs.high[source] + signs.bias[source]


def _units(part: Part, signs: Signs, noise: Array, driven: Array, z: Array, before: Array) -> Float[Array, "T f"]:
    """Scores of all units, by the mode; what drives a unit also ranks those that are off, which activations do not."""
    half = driven.shape[0] // 2
    same, previous = foreseen(signs, 0, z), foreseen(signs, 1, before)
    still = [jnp.broadcast_to(x, driven.shape) for x in (signs.mean, signs.frequency)]
    return jax.lax.select_n(part.mode, driven, jnp.roll(driven, half, 0), *still, noise, same, previous, jnp.roll(same, half, 0))


def _heads(part: Part, signs: Signs, noise: Array, norms: Float[Array, "T h"]) -> Float[Array, "T h"]:
    """Scores of all heads; the modes of units that heads do not have stand for the heads' own norms."""
    other = jnp.roll(norms, norms.shape[0] // 2, 0)
    still, luck = jnp.broadcast_to(signs.head_mean, norms.shape), noise[:, : norms.shape[1]]
    return jax.lax.select_n(jnp.minimum(part.mode, 5), norms, other, still, still, luck, norms)


def forward(
    params: Params,
    tokens: Int[Array, " T"],
    heads: int,
    chosen: tuple[Part, Signs, PRNGKeyArray] | None = None,
) -> tuple[Float[Array, "T V"], Activity]:
    """Logits after each token of one text, and what the layers show; ``chosen`` runs a part of the network."""
    x = params.embed[tokens] + params.position[: tokens.size]
    layers, hidden = params.layers.shift.shape
    mask = attention.causal_mask(tokens.size)
    noise = None if chosen is None else jax.random.uniform(chosen[2], (layers, tokens.size, hidden), x.dtype)

    def one(state: tuple[Array, Array], layer: tuple) -> tuple[tuple[Array, Array], Activity]:
        x, before = state
        w, signs, luck = layer
        # heads
        q, k, v = jnp.einsum("td,cde->cte", rms_norm(x, w.gains[0], EPSILON), w.qkv).reshape(3, tokens.size, heads, -1)
        mixed = attention.attend(q, k, v, mask=mask)[0]
        written = jnp.einsum("the,hed->thd", mixed, w.out.reshape(heads, -1, x.shape[-1]))
        norms = jnp.linalg.norm(jax.lax.stop_gradient(written), axis=-1)
        if chosen is not None:
            written = jnp.where(top(_heads(chosen[0], signs, luck, norms), chosen[0].heads)[..., None], written, 0)
        change = jnp.sum(written, 1)
        middle = x + change
        # units of the MLP
        z = rms_norm(middle, w.gains[1], EPSILON)
        driven = z @ w.inner + w.shift
        units = used = jax.nn.relu(driven)
        if chosen is not None:
            used = jnp.where(top(_units(chosen[0], signs, luck, driven, z, before), chosen[0].units), units, 0)
        second = used @ w.outer
        seen = Activity(jnp.stack([x, middle]), jnp.stack([change, second]), units, norms, z, before)
        return (middle + second, z), seen

    (x, _), seen = jax.lax.scan(
        one, (x, rms_norm(x, params.layers.gains[0, 0], EPSILON)), (params.layers, None if chosen is None else chosen[1], noise)
    )
    return rms_norm(x, params.gain, EPSILON) @ params.head.T, seen


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
    return (places(units) < counts(s).reshape(-1, *[1] * units.ndim)) & (units > 0)


def sloped(logits: Float[Array, "*b f"], labels: Float[Array, "*#b f"]) -> Float[Array, "*b f"]:
    r"""A number with the gradient of the binary cross-entropy, :math:`\sigma(z) - y`; its value means nothing, and costs less."""
    return jax.lax.stop_gradient(jax.nn.sigmoid(logits) - labels) * logits


def fit(s: Parts, key: PRNGKeyArray, seen: Activity) -> Fit:
    """Predictors of the largest units, from the text behind ``seen`` [b, L, T, …]."""
    rank, (k_low, k_high) = s.width // 4, jax.random.split(key)
    flat = jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0).reshape(s.layers, -1, x.shape[-1]), (seen.inputs, seen.before, seen.units))
    sources, units = jnp.stack(flat[:2], 1), flat[2]
    size = (len(SHARES), s.layers, len(SOURCES))
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


def signs(s: Parts, seen: Activity, fitted: Fit) -> Signs:
    """Averages over the text behind ``seen`` [b, L, T, …], and predictors, for every share."""
    frequency = jnp.mean(largest(s, seen.units).astype(s.dtype), (1, 3))
    each = (len(SHARES), s.layers)
    mean, norm = (jnp.broadcast_to(jnp.mean(x, (0, 2)), (*each, x.shape[-1])) for x in (seen.units, seen.norms))
    return Signs(mean, frequency, norm, *fitted)


def parts(s: Parts) -> tuple[Part, Int[Array, " p"]]:
    """All parts that are run, those of units [mode, share] and then those of heads [mode, share] in one axis; and their shares."""
    units = [(mode, counts(s)[i], s.heads, i) for mode in range(len(MODES)) for i in range(len(SHARES))]
    heads = [(MODES.index(m), s.hidden, round(share * s.heads), 0) for m in HEAD_MODES for share in HEAD_SHARES]
    mode, unit, head, share = (jnp.asarray(column, jnp.int32) for column in zip(*units, *heads, strict=True))
    return Part(mode, unit, head), share


def recall(s: Parts, seen: Activity, one: Signs) -> Float[Array, "source_and_more share"]:
    """Share of each token's largest units that a prediction names: predictors by source, a shuffled one, the most frequent."""
    true = largest(s, seen.units)  # [share, b, L, T, f]

    def each(signs: Signs, true: Array, count: Array) -> Array:
        def layer(signs: Signs, z: Array, before: Array) -> Array:
            same, previous = (top(foreseen(signs, i, x), count) for i, x in enumerate((z, before)))
            often = jnp.broadcast_to(top(signs.frequency, count), same.shape)
            return jnp.stack([same, previous, jnp.roll(same, s.length // 2, 0), often])

        named = jax.vmap(jax.vmap(layer), (None, 0, 0))(signs, seen.inputs, seen.before)  # [b, L, 4, T, f]
        hits = jnp.sum(named & true[:, :, None], (0, 1, 3, 4))
        return hits.astype(s.dtype) / jnp.sum(true).astype(s.dtype)

    return jax.vmap(each, (0, 0, 0), 1)(one, true, counts(s))


def streams(seen: Activity) -> dict[str, Array]:
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


def losses_in_parts(s: Parts, params: Params, held: Int[Array, "b T1"], one: Signs, key: PRNGKeyArray) -> Float[Array, " part"]:
    """Mean cross-entropy of held-out texts with each part of the network, in the order of :func:`parts`."""

    def run(choice: tuple[Part, Array]) -> Array:
        kind, share = choice
        own = jax.tree.map(lambda x: x[share], one)
        keys = jax.random.split(key, s.texts)
        rows = jax.vmap(lambda row, k: forward(params, row[:-1], s.heads, (kind, own, k))[0])(held, keys)
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

    def apply(params: Params, tokens: Int[Array, "b T1"]) -> tuple[Array, Activity]:
        return jax.vmap(lambda row: forward(params, row[:-1], s.heads))(tokens)

    def loss(params: Params, tokens: Int[Array, "b T1"]) -> Array:
        return jnp.mean(nats(apply(params, tokens)[0], tokens))

    # training
    tx = optax.adam(optax.schedules.cosine_decay_schedule(s.lr, s.steps, 0.1))
    step = train.make_step(loss, tx, lambda i: batch(jax.random.fold_in(k_data, i), s.batch))
    initial = init(k_init, len(corpus.vocabulary), s.length, s.layers, s.width, s.hidden, s.dtype)
    params = jax.lax.fori_loop(0, s.steps, lambda _, state: step(state), train.init(tx, initial)).params
    # averages and predictors, from the training text
    _, seen = apply(params, batch(jax.random.fold_in(k_data, s.steps), s.fitted))
    one = signs(s, seen, fit(s, k_fit, seen))
    # the network in parts, on held-out text
    logits, seen = apply(params, held)
    losses = losses_in_parts(s, params, held, one, k_luck)
    many = len(MODES) * len(SHARES)
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
            "mode": MODES,
            "share": SHARES,
            "head_mode": HEAD_MODES,
            "head_share": HEAD_SHARES,
            "predictor": (*SOURCES, "shuffled", "frequency"),
            "half": ("attention", "mlp"),
        },
    )
