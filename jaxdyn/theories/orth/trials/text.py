"""Train a language model on a text and record how orthogonal its vectors are. Groups of vectors as in ``model.py``."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, nn, train
from jaxdyn.text import reading
from jaxdyn.theories.orth import model
from jaxdyn.theories.orth.dynamics import directions

__all__ = ["FORMS", "SHARES", "WEIGHTS", "Watched", "trial"]

SHARES = (1 / 16, 1 / 2)
WEIGHTS = ("embedding", "written")  # groups of vectors that are weights, by the start of their names
FORMS = ("weights", "all")  # which groups are predicted to be like random directions; of the others nothing: |cos| up to 1
NETWORKS = ("encoder", "rotary")


@jd.setting
class Watched:
    """One training run on a text whose vectors are recorded; what :class:`jaxdyn.text.reading.Reading` has is the same here.

    Args:
        lr: Adam's rate.
        network: "encoder", JoMA's own (post-norm, sinusoidal positions, ReLU, dropout, all layers start alike), or "rotary", one
            like Pythia's (pre-norm, rotary positions, GELU, weights of standard deviation .02, no dropout).
        text: "topics" (the interpreter's manual), "markov", or the path of a file or a WikiText folder.
        digest: contents of the file or folder, filled in.
        max_words: words of the vocabulary beside the unknown; 0 for all.
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
    max_words: int = 1000
    width: int = 256
    layers: int = 2
    columns: int = 8
    length: int = 32
    vectors: int = 256
    steps: int = 150
    every: int = 50
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse unknown networks and more vectors than there are; note a file's contents."""
        jd.require(self, self.network in NETWORKS, f"network is one of {', '.join(NETWORKS)}", "network")
        jd.require(self, self.width >= 32, "width is at least 32", "width")
        few = 2 <= self.vectors <= self.width
        jd.require(self, few, "vectors is from 2 to the width (rows of an MLP)", "vectors", "width")
        run = self.reading()
        self.shape(2)
        object.__setattr__(self, "digest", run.digest)
        model.probe(run.corpus().valid, self.length, self.vectors)

    def reading(self) -> reading.Reading:
        """The run on the text: Adam that is never made anew, on JoMA's encoder."""
        return reading.Reading(
            lr=self.lr,
            text=self.text,
            max_words=self.max_words,
            layers=self.layers,
            width=self.width,
            hidden=self.width,
            columns=self.columns,
            length=self.length,
            restart=False,
            steps=self.steps,
            every=self.every,
            dtype=self.dtype,
        )

    def shape(self, words: int) -> nn.Shape:
        """The network for so many words."""
        if self.network == "encoder":
            return self.reading().shape(words)
        return nn.gpt2(
            words,
            width=self.width,
            hidden=self.width,
            layers=self.layers,
            heads=max(1, self.width // 64),
            position="rotary",
            tied=False,
            dropout=0.0,
            dtype=self.dtype,
        )


class Record(NamedTuple):
    """What is recorded of one state."""

    loss: Float[Array, ""]  # of the windows that are probed, nats a word
    groups: model.Spread  # of each group of vectors, fields [g]
    narrow: Float[Array, " share"]  # mean |cos| of the embeddings projected on a share SHARES of all directions, at random


def recorded(s: Watched, key: PRNGKeyArray) -> Record:
    """Train one network; the records at steps 0, every, ..., steps (leading axis)."""
    run = s.reading()
    corpus = run.corpus()
    built = reading.build(run, key, s.shape(len(corpus.vocabulary)))
    probed = model.probe(corpus.valid, s.length, s.vectors)
    k_narrow = jax.random.split(key, 3)[2]
    frame, _ = linalg.qr(jax.random.normal(k_narrow, (s.width, s.width // 2), s.dtype))

    def observe(state: train.State) -> Record:
        vectors, loss = model.groups(built.net, state.params, probed)
        narrow = [nn.mean_cosine(vectors[0] @ frame[:, : round(share * s.width)]) for share in SHARES]
        return Record(loss, jax.lax.map(model.spread, vectors), jnp.stack(narrow))

    return reading.recorded(run, built, observe)[1]


def trial(s: Watched, key: PRNGKeyArray) -> jd.Observables:
    """Train a language model; the mean |cos| of each group of vectors at every record beside that of random directions."""
    record = recorded(s, key)
    d, n, axes = float(s.width), s.vectors, "step group"
    mean = record.groups.mean
    random = jnp.broadcast_to(directions.mean_absolute_cosine(jnp.asarray(d, s.dtype)), mean.shape)
    weights = np.asarray([name.startswith(WEIGHTS) for name in model.names(s.layers)])
    return jd.observables(
        predicted={
            "cosine": jd.named(jnp.stack([jnp.where(weights, random, 1), random]), f"form {axes}"),
            "gram": jd.named(jnp.full(mean.shape, directions.gram_error(n, d), s.dtype), axes),
        },
        measured={"cosine": jd.named(mean, axes), "gram": jd.named(record.groups.gram, axes)},
        recorded={
            "rms": jd.named(record.groups.rms, axes),
            "high": jd.named(record.groups.high, axes),
            "top": jd.named(record.groups.top, axes),
            "narrow": jd.named(record.narrow, "step share"),
            "loss": jd.named(record.loss, "step"),
        },
        coords={"form": FORMS, "step": range(0, s.steps + 1, s.every), "group": model.names(s.layers), "share": SHARES},
    )
