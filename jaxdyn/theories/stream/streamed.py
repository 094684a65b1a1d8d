"""Networks that read longer texts than they were trained on: training, texts, and perplexity over the position.

Networks that read longer texts than they were trained on: their training on the Bigram-Backcopy task, and its texts.

Letters: T tokens of a text, V of the vocabulary.

Perplexity over the position in a text: ratios of policies, slopes, and their figure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jax.scipy.special import xlogy
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.data import backcopy
from jaxdyn.nn import Transformer
from jaxdyn.nn.transformer import apply, init
from jaxdyn.theories.sink.language import EDGES

SPARE = 3  # tokens beyond the length that are sampled
FIRST = 2  # position from which the loss of training counts
HELD_OUT = 32  # sequences on which attention is observed


@jd.setting
class Streamed:
    """A network, its training, and the texts that it reads.

    Args:
        lr: peak of the rate of Adam, after a linear warm-up of a twentieth of the steps; a cosine then leads to a tenth of it.
        decay: of the weights, decoupled from Adam.
        cut: tokens that are left out at the front of every sequence and text, token 0 first; at most :data:`SPARE`.
        attention: form of the attention.
        triggers: tokens after which the token before them is copied.
        vocabulary: V, tokens of the task.
        length: tokens of a sequence of training.
        keys: L, of the caches.
        layers, width, hidden: of the decoder, which has one head in a layer.
        batch: sequences of a step.
        steps: of training.
        streams: texts that are read.
        dtype: of the network.
    """

    lr: jd.Swept = jd.field(2e-2, above=0)
    decay: jd.Swept = jd.field(0.0, at_least=0)
    cut: jd.Swept = jd.field(0, at_least=0, at_most=SPARE, whole=True)
    attention: str = "softmax"
    triggers: int = jd.field(6, at_least=0)
    vocabulary: int = 33
    length: int = 16
    keys: int = jd.field(12, above=1)
    layers: int = jd.field(1, at_least=1)
    width: int = jd.field(32, at_least=1)
    hidden: int = jd.field(1, at_least=1)
    batch: int = jd.field(16, at_least=1)
    steps: int = jd.field(2500, at_least=20)
    streams: int = jd.field(4, at_least=1)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        jd.require(self, self.triggers < self.vocabulary - 1, "triggers is below vocabulary - 1", "triggers")
        jd.require(self, self.keys <= self.length, "keys is at most length", "keys", "length")

    @property
    def shape(self) -> Transformer:
        """The decoder; embeddings have the size of the stream that the norms give."""
        sizes = {name: getattr(self, name) for name in ("vocabulary", "layers", "width", "hidden", "attention", "dtype")}
        return Transformer(heads=1, std=0.2, **sizes)


def sample_texts(
    law: backcopy.Law, cut: jd.Swept | Int[Array, ""], key: PRNGKeyArray, count: int, length: int
) -> Int[Array, "b n"]:
    """Sequences of the task, without their first tokens."""

    def one(key: PRNGKeyArray) -> Int[Array, " n"]:
        return jax.lax.dynamic_slice_in_dim(backcopy.draw(key, law, length + SPARE), jnp.asarray(cut, jnp.int32), length)

    return jax.vmap(one)(jax.random.split(key, count))


def lacking(law: backcopy.Law, tokens: Int[Array, "*b n"], logits: Float[Array, "*b n V"]) -> Float[Array, "*b n"]:
    """KL divergence of the network's next token from the law's, in nats, at every position but the first, which gets 0."""
    before, now = tokens[..., :-1], tokens[..., 1:]
    copied = jax.nn.one_hot(before, law.chain.shape[0], dtype=law.chain.dtype)
    pi = jnp.where(law.triggers[now][..., None], copied, law.chain[now])
    value = jnp.sum(xlogy(pi, pi) - pi * jax.nn.log_softmax(logits[..., 1:, :]), -1)
    return jnp.concatenate([jnp.zeros_like(value[..., :1]), value], -1)


def started(s: Streamed, key: PRNGKeyArray) -> PyTree:
    """Weights at the start: embeddings have entries of size 1."""
    params = init(s.shape, key)
    return params | {"embed": 5 * params["embed"]}


def fitted(s: Streamed, params: PyTree, logits: Callable[..., Array], data: Int[Array, "steps b n1"]) -> PyTree:
    """Weights after training on these sequences, one batch for each step."""
    rate = optax.schedules.warmup_cosine_decay_schedule(0.0, 1.0, s.steps // 20, s.steps, 0.1)
    tx = optax.chain(
        optax.scale_by_adam(),
        optax.add_decayed_weights(s.decay),
        optax.scale_by_learning_rate(lambda count: (s.lr * rate(count)).astype(s.dtype)),
    )

    def loss(params: PyTree, tokens: Int[Array, "b n1"]) -> Float[Array, ""]:
        shares = jax.nn.log_softmax(logits(params, tokens[:, :-1]))
        return -jnp.mean(jnp.take_along_axis(shares, tokens[:, 1:, None], -1)[:, FIRST:])

    step = train.make_step(loss, tx, lambda i: data[i])
    return jax.lax.fori_loop(0, s.steps, lambda _, state: step(state), train.init(tx, params)).params


def trained(s: Streamed, law: backcopy.Law, k_init: PRNGKeyArray, k_data: PRNGKeyArray) -> PyTree:
    """Weights after training; all sequences are sampled ahead."""
    data = jax.vmap(lambda i: sample_texts(law, s.cut, jax.random.fold_in(k_data, i), s.batch, s.length + 1))(jnp.arange(s.steps))
    return fitted(s, started(s, k_init), functools.partial(apply, s.shape), data)


SHOWN = {"dense": "control", "window": "theory", "replaced": "third", "1 sink": "measured"}
LATE = slice(2, None)  # stretches: the first two lengths of training are left out
SHARES = xr.DataArray(np.diff(EDGES)[LATE] / (EDGES[-1] - EDGES[2]), dims="stretch")


def ratio(ds: xr.Dataset, policy: str, against: str) -> stats.Labelled:
    """Perplexity with one policy over that with another, on the same texts from two lengths of training on."""
    whole = (ds.measured_lacks.isel(stretch=LATE) * SHARES).sum("stretch", skipna=False)
    return np.exp(whole.sel(policy=policy, drop=True) - whole.sel(policy=against, drop=True))


def slope(ds: xr.Dataset, policy: str) -> xr.DataArray:
    """Slope of the logarithm of the perplexity in the logarithm of the position, a decade, by least squares."""
    y = ds.measured_lacks.sel(policy=policy, drop=True).isel(stretch=LATE)
    x = np.log10(ds.place.isel(stretch=LATE))
    x = x - x.mean("stretch")
    return (x * y).sum("stretch", skipna=False) / (x**2).sum("stretch")


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Perplexity over the position in the text, by policy; and the ratio of window and one sink over the weight of the sink."""
    left, right = fig.subplots(1, 2)
    runs = ds.isel({name: 0 for name in ("decay", "cut") if name in ds.dims}, drop=True)
    x = runs.place.values.reshape(-1, ds.sizes["stretch"])[0]
    for policy, color in SHOWN.items():
        y = np.exp(runs.measured_lacks.sel(policy=policy) + runs.entropy).transpose(..., "stretch")
        plotting.band(left, x, y, policy, plotting.COLORS[color])
    left.set(xscale="log", yscale="log", xlabel="position in the text", ylabel="perplexity")
    plotting.scatter(right, ds.idle, ratio(ds, "window", "1 sink"), label="runs", color="measured", log=False)
    right.set(xlabel="weight on token 0, idle", ylabel="perplexity, 0 + L over 1 + (L - 1)")
