r"""Training a small decoder on a text, and what judges of trained networks share: each at its own rate, and the gate.

Source: arXiv:2402.14905, section 2, at a size for CPUs. Departure: the optimizer is ours (Adam on gradients of norm 1 at most, a
linear warm-up of a tenth of the steps and a cosine to a tenth), and a network is judged by its cross-entropy, not by tasks.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import text, train
from jaxdyn.text import pretraining

RATES = [4e-3, 8e-3]


@jd.setting
class Training(pretraining.TextTraining):
    """A training on a text, to the fields of which these are added.

    Args:
        lr: peak of the rate.
        vocabulary: tokens; bytes are 256.
        windows: batches of sequences on which the loss of a part is the mean.
        std: of all weights at the start.
        dtype: of the network.
    """

    lr: jd.Swept = jd.field(6e-3, above=0)
    vocabulary: int = 256
    batch: int = jd.field(4, at_least=1)
    steps: int = jd.field(120, at_least=10)
    records: int = jd.field(1, at_least=1)
    windows: int = jd.field(16, at_least=1)
    std: float = jd.field(0.1, above=0)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """As for every training on a text."""
        pretraining.TextTraining.__post_init__(self)

    def corpus(self) -> text.Corpus:
        """The text; it may have fewer tokens than the vocabulary, and not more."""
        words = self.vocabulary - (self.level == "words")  # the mark of all other words is one of the tokens
        with jax.ensure_compile_time_eval():  # as for every training on a text
            corpus = text.load(self.text, self.level, None if self.level == "bytes" else words)
        count = len(corpus.vocabulary)
        jd.require(self, count <= self.vocabulary, f"the text has {count} different tokens", "vocabulary")
        return corpus


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
    corpus = s.corpus()
    stream = jnp.asarray(corpus.train)
    held = pretraining.held_out((corpus.valid, corpus.test), s.windows, s.batch, s.length)
    shape = pretraining.schedule(s.steps)
    tx = optax.chain(optax.scale_by_adam(b2=0.99), optax.scale_by_learning_rate(lambda count: s.lr * shape(count).astype(s.dtype)))

    def batch(i: Int[Array, ""]) -> Int[Array, "b n1"]:
        return pretraining.sample(jax.random.fold_in(key, i), stream, s.batch, s.length)

    def losses(state: train.State) -> Float[Array, " part"]:
        return pretraining.mean_losses(lambda tokens: loss(state.params, tokens), held)

    step = train.make_step(loss, tx, batch)
    return train.record(step, train.init(tx, params), losses, samples=s.records, every=s.interval)


def tuned(ds: xr.Dataset) -> xr.Dataset:
    """Every network at the rate with the lowest validation loss at the end, mean over seeds."""
    if "lr" not in ds.dims:
        return ds
    valid = ds.curve.isel(step=-1, drop=True).sel(part="valid", drop=True)
    return ds.isel(lr=valid.mean("seed").fillna(np.inf).argmin("lr"))


def learned(ds: xr.Dataset) -> jd.Check:
    """Gate: every network, at its own rate, lowers its loss by a nat."""
    best = tuned(ds)
    start = best.curve.isel(step=0, drop=True).sel(part="test", drop=True)
    return jd.gate("loss at the start minus that at the end", start - best.measured_loss, at_least=1.0)
