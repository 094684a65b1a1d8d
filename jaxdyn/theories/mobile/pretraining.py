r"""Training a small decoder on a text, and its cross-entropy on parts that are not trained on.

Source: arXiv:2402.14905, section 2, at a size for CPUs. Departure: the optimizer is ours (Adam on gradients of norm 1 at most, a
linear warm-up of a tenth of the steps and a cosine to a tenth), and a network is judged by its cross-entropy, not by tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import text, train

__all__ = ["PARTS", "Training", "batch", "corpus", "held_out", "steps_of", "trained"]

PARTS = ("valid", "test")


@jd.setting
class Training:
    """A training on a text.

    Args:
        lr: peak of the rate.
        text: "topics" (the interpreter's manual), "markov", or the path of a file or a WikiText folder.
        digest: digest of the contents of the file or folder; filled in.
        level: "bytes", "bpe" or "words".
        vocabulary: tokens; bytes are 256.
        batch: sequences of a step.
        length: tokens of a sequence.
        steps: of training.
        records: how often the losses are recorded after the start.
        windows: batches of sequences on which the loss of a part is the mean.
        std: of all weights at the start.
        dtype: of the network.
    """

    lr: jd.Swept = 6e-3
    text: str = "topics"
    digest: str = ""
    level: str = "bytes"
    vocabulary: int = 256
    batch: int = 4
    length: int = 32
    steps: int = 120
    records: int = 1
    windows: int = 16
    std: float = 0.1
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse counts that are not positive, and records that end before the run; note the text."""
        for name in ("batch", "length", "records", "windows"):
            jd.require(self, getattr(self, name) >= 1, f"{name} is at least 1", name)
        whole = self.steps >= 10 and self.steps % self.records == 0
        jd.require(self, whole, "steps is at least 10 and a multiple of records", "steps", "records")
        jd.require(self, self.lr > 0 and self.std > 0, "both are positive", "lr", "std")
        path = self.text not in ("topics", "markov")
        object.__setattr__(self, "digest", corpus(self).digest if path else "")


def corpus(s: Training) -> text.Corpus:
    """The text; a path that starts with ~ is in the user's home folder."""
    name = s.text if s.text in ("topics", "markov") else str(Path(s.text).expanduser())
    found = text.load(name, s.level, None if s.level == "bytes" else s.vocabulary)
    jd.require(s, len(found.vocabulary) <= s.vocabulary, f"the text has {len(found.vocabulary)} different tokens", "vocabulary")
    return found


def batch(stream: Int[Array, " n"], s: Training, key: PRNGKeyArray) -> Int[Array, "batch length+1"]:
    """Sequences at random places."""
    start = jax.random.randint(key, (s.batch, 1), 0, stream.size - s.length)
    return stream[start + jnp.arange(s.length + 1)]


def held_out(c: text.Corpus, s: Training) -> Int[Array, "part windows batch length+1"]:
    """Sequences at equal distances over the parts that are not trained on."""

    def part(stream: np.ndarray) -> np.ndarray:
        start = np.linspace(0, len(stream) - s.length - 1, s.windows * s.batch).astype(int)
        return stream[start[:, None] + np.arange(s.length + 1)].reshape(s.windows, s.batch, -1)

    return jnp.asarray(np.stack([part(getattr(c, name)) for name in PARTS]))


def steps_of(s: Training) -> range:
    """Steps of the records."""
    return range(0, s.steps + 1, s.steps // s.records)


def trained(
    s: Training, loss: Callable[[PyTree, Int[Array, "b n1"]], Float[Array, ""]], params: PyTree, key: PRNGKeyArray
) -> tuple[train.State, Float[Array, "step part"]]:
    """The last state, and the losses of both parts along training.

    Args:
        s: the training.
        loss: of weights on sequences.
        params: weights at the start.
        key: of the sequences; networks with the same key read the same ones.
    """
    c = corpus(s)
    stream, held = jnp.asarray(c.train), held_out(c, s)
    shape = optax.schedules.warmup_cosine_decay_schedule(0.0, 1.0, s.steps // 10, s.steps, 0.1)
    tx = optax.chain(optax.scale_by_adam(b2=0.99), optax.scale_by_learning_rate(lambda count: s.lr * shape(count).astype(s.dtype)))

    def losses(state: train.State) -> Float[Array, " part"]:
        every = jax.lax.map(lambda tokens: loss(state.params, tokens), held.reshape(-1, *held.shape[2:]))
        return jnp.mean(every.reshape(len(PARTS), -1), 1)

    step = train.make_step(loss, tx, lambda i: batch(stream, s, jax.random.fold_in(key, i)))
    return train.record(step, train.init(tx, params), losses, samples=s.records, every=s.steps // s.records)
