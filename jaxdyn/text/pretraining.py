r"""Training a decoder on a text: which text, sequences cut out of it, the shape of the rate, and losses on unseen parts.

A step reads sequences that begin anywhere in the training part; losses are means over sequences at equal distances on the
validation and the test part.
Letters: b sequences; n inputs of each; n1 = n + 1 tokens, the inputs and the last target.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import text
from jaxdyn.engine.claims.ranges import field
from jaxdyn.engine.claims.setting import setting
from jaxdyn.errors import UsageError, require, whole
from jaxdyn.nn import Network
from jaxdyn.text import language
from jaxdyn.text.corpus import Corpus

__all__ = ["PARTS", "TextTraining", "held_out", "loss", "mean_losses", "note_digest", "sample", "schedule", "spaced"]

PARTS = ("valid", "test")


@setting
class TextTraining:
    """What trainings on a text have in common; a setting of such a training inherits these fields.

    Args:
        text: "topics" (the interpreter's manual), "markov", or the path of a file or a WikiText folder.
        digest: digest of the contents of the text; filled in.
        level: "bytes", "bpe" or "words".
        vocabulary: of words or BPE pieces.
        batch: sequences of a step.
        length: n, inputs of a sequence.
        steps: of training.
        records: how often something is recorded after the start.
    """

    text: str = "topics"
    digest: str = ""
    level: str = "bytes"
    vocabulary: int = 1024
    batch: int = field(8, at_least=1)
    length: int = field(32, at_least=1)
    steps: int = field(160, at_least=10)
    records: int = field(4, at_least=1)

    def __post_init__(self) -> None:
        """Refuse what is no whole number, and records that end before the run; note the text."""
        for name in ("batch", "length", "steps", "records"):  # their ranges are checked already
            whole(name, getattr(self, name))
        require(self, self.steps % self.records == 0, "steps is a multiple of records", "steps", "records")
        note_digest(self)

    def corpus(self) -> Corpus:
        """The text."""
        with jax.ensure_compile_time_eval():  # the text "markov" is sampled, also while a trial is traced
            return text.load(self.text, self.level, None if self.level == "bytes" else self.vocabulary)

    @property
    def interval(self) -> int:
        """Steps between two records."""
        return self.steps // self.records

    @property
    def recorded_at(self) -> range:
        """The steps of the records, the start first."""
        return range(0, self.steps + 1, self.interval)


def note_digest(s: Any) -> None:
    """Fill in ``digest``, by which results are tied to the contents of a text; "markov", which is generated, has none.

    That of "topics" is the digest of its bytes at every level, and empty where Python came without its manual: words and pieces
    are not made before they are needed.
    """
    object.__setattr__(s, "digest", _digest(s))


def _digest(s: Any) -> str:
    if s.text == "markov":
        return ""
    if s.text != "topics":
        return str(s.corpus().digest)
    try:
        return text.load("topics", "bytes").digest
    except UsageError:
        return ""


def sample(key: PRNGKeyArray, stream: Int[Array, " total"], count: int, length: int) -> Int[Array, "{count} n1"]:
    """Sequences of ``length`` inputs that begin at random places of a stream.

    Raises:
        UsageError: if the stream is too short for one, or a number is out of its range.
    """
    count, length = whole("count", count, least=1), _length(stream, length)
    start = jax.random.randint(key, (count, 1), 0, stream.size - length)
    return stream[start + jnp.arange(length + 1)]


def spaced(stream: Int[np.ndarray, " total"], count: int, length: int) -> Int[np.ndarray, "{count} n1"]:
    """Sequences of ``length`` inputs at equal distances over a stream, the first at its start and the last at its end.

    Raises:
        UsageError: if the stream is too short for one, or a number is out of its range.
    """
    count, length = whole("count", count, least=1), _length(stream, length)
    start = np.linspace(0, len(stream) - length - 1, count).astype(int)
    return stream[start[:, None] + np.arange(length + 1)]


def held_out(parts: tuple[Int[np.ndarray, " total"], ...], windows: int, batch: int, length: int) -> Int[Array, "part w b n1"]:
    """Batches of sequences at equal distances over each part.

    Raises:
        UsageError: as :func:`spaced`.
    """
    windows, batch = whole("windows", windows, least=1), whole("batch", batch, least=1)
    return jnp.asarray(np.stack([spaced(part, windows * batch, length).reshape(windows, batch, -1) for part in parts]))


def _length(stream: Int[np.ndarray | Array, " total"], length: int) -> int:
    """The checked number of inputs of a sequence."""
    length = whole("length", length, least=1)
    if len(stream) <= length:
        raise UsageError(f"a text of {len(stream)} tokens is too short for a sequence of {length} inputs and their targets")
    return length


def loss(net: Network, params: PyTree, tokens: Int[Array, "b n1"]) -> Float[Array, ""]:
    """Mean cross-entropy in nats of every next token of the sequences."""
    return language.loss(net, params, tokens[:, :-1], tokens[:, 1:])


def mean_losses(loss: Callable[[Int[Array, "b n1"]], Float[Array, ""]], held: Int[Array, "part w b n1"]) -> Float[Array, " part"]:
    """Mean loss on the batches of each part, one batch after the other."""
    each = jax.lax.map(loss, held.reshape(-1, *held.shape[2:]))
    return jnp.mean(each.reshape(len(held), -1), 1)


def schedule(steps: int) -> optax.Schedule:
    """Shape of the rate, with peak 1: a linear warm-up of a tenth of the steps, then a cosine to a tenth of the peak.

    The numbers of ``optim.schedule("cosine", 1.0, steps, warmup=steps // 10, end=0.1)``, by optax's operations: results are stored
    under the text of their program, in which these are.

    Raises:
        UsageError: if ``steps`` is no whole number of at least 1.
    """
    steps = whole("steps", steps, least=1)
    return optax.schedules.warmup_cosine_decay_schedule(0.0, 1.0, steps // 10, steps, 0.1)
