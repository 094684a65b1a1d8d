r"""A word-level language model on real text, as in JoMA's experiments: what one run is, and how it is trained and observed.

Source: arXiv:2310.00535, section 5, figures 6 to 8, and the released code: post-norm encoder with a causal mask, one head, Adam
made anew each epoch, gradient norms clipped at 0.5, 20 columns of text read in windows of 35.
Letters: L layers, V words.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import language, metrics, nn, train
from jaxdyn.data import text
from jaxdyn.errors import UsageError, given
from jaxdyn.optim.restart import restarting

__all__ = ["EVALUATED", "Built", "Reading", "Record", "build", "uniform_entropy"]

EVALUATED = 10  # columns of the validation part, as in the released code
FREQUENT = 4096  # words whose embeddings are compared: the cost grows with the square


@jd.setting
class Reading:
    """One training run on a text; the defaults take half a minute on one core.

    Args:
        lr: Adam's rate.
        clip: norm above which a gradient is cut.
        text: "topics" (the interpreter's manual), "markov", or the path of a file or a WikiText folder.
        digest: contents of the file or folder, filled in.
        level: "words" or "bytes".
        most: most words of the vocabulary, the others are unknown words; 0 for all of them.
        layers: L.
        width: of the residual stream.
        hidden: units of an MLP.
        activation: of the MLP.
        dropout: share that is dropped.
        columns: texts read side by side.
        length: words of a window.
        restart: make Adam anew before each epoch.
        steps: of training.
        every: steps between two records.
        windows: validation windows of a record; 0 for all.
        dtype: of the network.
    """

    lr: jd.Swept = 1e-3
    clip: jd.Swept = 0.5
    text: str = "topics"
    digest: str = ""
    level: str = "words"
    most: int = 2000
    layers: int = 1
    width: int = 64
    hidden: int = 64
    activation: str = "relu"
    dropout: float = 0.2
    columns: int = 20
    length: int = 35
    restart: bool = True
    steps: int = 1500
    every: int = 50
    windows: int = 10
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse counts that are not positive and records that end before the run; note what a file's contents are."""
        if min(self.columns, self.length, self.steps, self.every) < 1 or self.steps % self.every:
            given_ = given(self, "columns", "length", "steps", "every")
            raise UsageError("columns and length are positive, and steps a positive multiple of every, " + given_)
        if min(self.most, self.windows) < 0 or self.clip <= 0:
            raise UsageError("most and windows are 0 or more and clip is positive, " + given(self, "most", "windows", "clip"))
        self.shape(2)
        path = self.text not in ("topics", "markov")
        object.__setattr__(self, "digest", self.corpus().digest if path else "")

    def shape(self, words: int) -> nn.Shape:
        """The network for so many words."""
        sizes = {"width": self.width, "hidden": self.hidden, "layers": self.layers}
        return nn.encoder_lm(words, dropout=self.dropout, activation=self.activation, dtype=self.dtype, **sizes)

    def corpus(self) -> text.Corpus:
        """The text; a path that starts with ~ is one of the user's home."""
        name = self.text if self.text in ("topics", "markov") else str(Path(self.text).expanduser())
        return text.load(name, self.level, self.most or None)

    @property
    def epoch(self) -> int:
        """Steps of one pass over the text."""
        return text.windows_in(text.columns(self.corpus().train, self.columns), self.length)


class Record(NamedTuple):
    """What is observed at one step."""

    loss: Float[Array, ""]  # validation cross-entropy, nats a word
    entropy: Float[Array, " L"]  # of a query's attention, nats, mean over validation windows and positions
    stable_rank: Float[Array, " L"]  # of the lower matrix of each MLP
    cosine: Float[Array, " L+1"]  # mean |cos| of the most frequent words' embeddings, then of what each MLP writes


class Built(NamedTuple):
    """A run in pieces: ``step(state, columns, key)``, its start and data, and what is observed of a state."""

    step: Callable[..., train.State]
    start: train.State
    data: tuple[Int[np.ndarray, "columns total"], PRNGKeyArray]
    observe: Callable[[train.State], Record]


def build(s: Reading, key: PRNGKeyArray) -> Built:
    """The pieces of a run. Where an epoch ends with a record, that record is of the whole validation part."""
    corpus = s.corpus()
    k_init, k_drop = jax.random.split(key)
    net = nn.network(s.shape(len(corpus.vocabulary)))
    columns, held = text.columns(corpus.train, s.columns), text.columns(corpus.valid, EVALUATED)
    epoch, most = s.epoch, text.windows_in(held, s.length)
    tx = optax.chain(optax.clip_by_global_norm(s.clip), restarting(optax.adam(s.lr), epoch if s.restart else 0))

    def observe(state: train.State) -> Record:
        windows = jnp.where(state.step % epoch == 0, most, s.windows or most)
        found = language.evaluate(net, state.params, jnp.asarray(held), s.length, windows)
        blocks = state.params["blocks"]
        written = jax.lax.map(nn.mean_cosine, blocks["outer"])
        cosine = jnp.concatenate([nn.mean_cosine(state.params["embed"][:FREQUENT])[None], written])
        return Record(found.loss, found.entropy, metrics.stable_rank(blocks["inner"]), cosine)

    return Built(language.make_step(net, tx, s.length), train.init(tx, net.init(k_init)), (columns, k_drop), observe)


def uniform_entropy(length: int) -> float:
    r"""Mean entropy of a causal attention that is blind, :math:`\frac1n \sum_{i=1}^n \ln i = \ln(n!)/n`; 2.6325 for 35."""
    return float(np.mean(np.log(np.arange(1, length + 1))))
