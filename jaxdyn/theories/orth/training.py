r"""Language models trained on a text, and how orthogonal their vectors are along training.

Watched are directions that belong to different words: the embeddings of the first n different words of the validation text; the
residual stream before each block and after the last, at the places where these words first stand, raw and without its mean over
the n vectors; and the rows that each MLP writes into the stream (columns of its output projection).

Source: arXiv:2310.00535, the assumption of orthogonal embeddings and its figure on Pythia's checkpoints. Which vectors that
figure shows in hidden layers is not recorded. Letters: n vectors, d width, L layers.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import linalg, nn, text, train
from jaxdyn.errors import UsageError, given
from jaxdyn.nn.observe import unit
from jaxdyn.text import language

__all__ = ["LEVEL", "SHARES", "Probe", "Reading", "Spread", "Trained", "groups", "names", "probe", "spread", "trained"]

LEVEL = 0.99  # quantile of |cos|
SHARES = (1 / 16, 1 / 2)
NETWORKS = ("encoder", "rotary")


@jd.setting
class Reading:
    """One training run on a text.

    Args:
        lr: Adam's rate.
        network: "encoder", JoMA's own (post-norm, sinusoidal positions, ReLU, dropout, all layers start alike), or "rotary", one
            like Pythia's (pre-norm, rotary positions, GELU, weights of standard deviation .02, no dropout).
        text: "topics" (the interpreter's manual), "markov", or the path of a file or a WikiText folder.
        digest: contents of the file or folder, filled in.
        most: words of the vocabulary beside the unknown; 0 for all.
        width: d, also the units of an MLP.
        layers: L.
        columns: texts read side by side.
        length: words of a window.
        vectors: n.
        steps: of training.
        every: steps between two records.
        dtype: of the network.
    """

    lr: jd.Swept = 1e-3
    network: str = "encoder"
    text: str = "topics"
    digest: str = ""
    most: int = 1000
    width: int = 256
    layers: int = 2
    columns: int = 8
    length: int = 32
    vectors: int = 256
    steps: int = 150
    every: int = 50
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse unknown networks, records that end before the run, and more vectors than there are; note a file's contents."""
        if self.network not in NETWORKS:
            raise UsageError(f"network is one of {', '.join(NETWORKS)}, " + given(self, "network"))
        if min(self.columns, self.length, self.steps, self.every) < 1 or self.steps % self.every:
            counts = given(self, "columns", "length", "steps", "every")
            raise UsageError("columns and length are positive, and steps a positive multiple of every, " + counts)
        if self.most < 0 or self.width < 32 or not 2 <= self.vectors <= self.width:
            words = given(self, "most", "vectors", "width")
            raise UsageError("most is 0 or more, the width at least 32, and vectors from 2 to the width (rows of an MLP), " + words)
        self.shape(2)
        path = self.text not in ("topics", "markov")
        object.__setattr__(self, "digest", self.corpus().digest if path else "")
        probe(self.corpus().valid, self.length, self.vectors)

    def shape(self, words: int) -> nn.Shape:
        """The network for so many words."""
        sizes = {"width": self.width, "hidden": self.width, "layers": self.layers, "dtype": self.dtype}
        if self.network == "encoder":
            return nn.encoder_lm(words, **sizes)
        return nn.gpt2(words, heads=max(1, self.width // 64), position="rotary", tied=False, dropout=0.0, **sizes)

    def corpus(self) -> text.Corpus:
        """The text."""
        return text.load(self.text, max_words=self.most or None)


class Probe(NamedTuple):
    """Windows of a text, and where in them (as one stream) words stand for the first time."""

    tokens: Int[np.ndarray, "b length"]
    places: Int[np.ndarray, " n"]

    @property
    def words(self) -> Int[np.ndarray, " n"]:
        """The different words."""
        return self.tokens.reshape(-1)[self.places]


def probe(stream: Int[np.ndarray, " t"], length: int, vectors: int) -> Probe:
    """The first windows of a stream that hold so many different words.

    Raises:
        UsageError: if the stream has fewer.
    """
    whole = stream[: len(stream) // length * length]
    _, first = np.unique(whole, return_index=True)
    places = np.sort(first)[:vectors]
    if len(places) < vectors:
        raise UsageError(f"the validation text has {len(places)} different words, and vectors={vectors} were asked for")
    return Probe(whole.reshape(-1, length)[: places[-1] // length + 1], places)


class Spread(NamedTuple):
    """How far from orthogonal n vectors are."""

    mean: Float[Array, ""]  # of |cos| over pairs
    rms: Float[Array, ""]
    high: Float[Array, ""]  # quantile LEVEL of |cos|
    top: Float[Array, ""]  # largest eigenvalue of the Gram matrix of the unit vectors, as a share of its trace
    gram: Float[Array, ""]  # Frobenius norm of that matrix minus the identity


def spread(vectors: Float[Array, "n d"]) -> Spread:
    """Statistics of the cosines over pairs of different rows; of the quantile the nearest rank."""
    u = unit(vectors)
    n, d = u.shape
    pairs = n * (n - 1)
    cosines = jnp.where(jnp.eye(n, dtype=bool), -1, jnp.abs(u @ u.T))  # the diagonal sorts first
    ranked = jnp.sort(cosines.reshape(-1))[n:]
    values = linalg.eigvalsh(u @ u.T if n <= d else u.T @ u)
    return Spread(
        mean=nn.mean_cosine(vectors),
        rms=jnp.sqrt(jnp.sum(jnp.square(ranked)) / pairs),
        high=ranked[round(LEVEL * (pairs - 1))],
        top=values[-1] / jnp.sum(values),
        gram=nn.unit_gram_error(vectors),
    )


def names(layers: int) -> tuple[str, ...]:
    """What :func:`groups` returns, in its order."""
    streams = range(layers + 1)
    return (
        "embedding",
        *(f"input {i}" for i in streams),
        *(f"centred {i}" for i in streams),
        *(f"written {i}" for i in range(layers)),
    )


def groups(net: nn.Network, params: PyTree, probed: Probe) -> Float[Array, "g n d"]:
    """The groups of vectors that are watched, in the order of :func:`names`."""
    embedding = params["embed"][probed.words]
    _, seen = net.trunk(params, jnp.asarray(probed.tokens), observe=("inputs",))
    inputs = seen["inputs"].reshape(net.shape.layers + 1, -1, net.shape.width)[:, probed.places]
    centred = inputs - jnp.mean(inputs, 1, keepdims=True)
    written = params["blocks"]["outer"][:, : len(probed.places)]
    return jnp.concatenate([embedding[None], inputs, centred, written])


class Trained(NamedTuple):
    """What was recorded at steps 0, every, ..., steps (leading axis)."""

    loss: Float[Array, " t"]  # of the windows that are probed, nats a word
    groups: Spread  # fields [t, g]
    narrow: Float[Array, "t 2"]  # mean |cos| of the embeddings seen in a share SHARES of all directions, at random


def trained(s: Reading, key: PRNGKeyArray) -> tuple[train.State, Trained]:
    """Train one network; its last state and the record."""
    k_init, k_drop, k_narrow = jax.random.split(key, 3)
    corpus = s.corpus()
    net, probed = nn.network(s.shape(len(corpus.vocabulary))), probe(corpus.valid, s.length, s.vectors)
    columns = text.columns(corpus.train, s.columns)
    tx = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(s.lr))
    step = language.make_step(net, tx, s.length)
    frame, _ = linalg.qr(jax.random.normal(k_narrow, (s.width, s.width // 2), s.dtype))

    def observe(state: train.State) -> Trained:
        vectors = groups(net, state.params, probed)
        tokens = jnp.asarray(probed.tokens)
        loss = language.loss(net, state.params, tokens[:, :-1], tokens[:, 1:])
        narrow = [nn.mean_cosine(vectors[0] @ frame[:, : round(share * s.width)]) for share in SHARES]
        return Trained(loss, jax.lax.map(spread, vectors), jnp.stack(narrow))

    start = train.init(tx, net.init(k_init))
    return train.record(lambda x: step(x, columns, k_drop), start, observe, samples=s.steps // s.every, every=s.every)
