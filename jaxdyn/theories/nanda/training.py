r"""How the transformer is trained: full batch on a random share of all pairs, AdamW, cross-entropy.

Source: arXiv:2301.05217, section 3: p = 113, d = 128, 4 heads, 512 units, 30% of the pairs, rate 1e-3, decay 1, betas (.9, .98),
40 000 epochs. Letters as in ``model.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import train as loop
from jaxdyn.theories.nanda import model


@jd.setting
class Training:
    """A training run; the defaults grok in seconds on two cores.

    Args:
        lr: the rate of AdamW.
        decay: its decoupled weight decay.
        p: residues, odd.
        width: d.
        heads: h.
        hidden: units of the MLP.
        share: of all pairs, for training.
        epochs: steps of training.
        every: epochs between two records.
        dtype: of the network.
    """

    lr: jd.Swept = 3e-3
    decay: jd.Swept = 2.0
    p: int = jd.field(53, at_least=5)
    width: int = jd.field(32, at_least=1)
    heads: int = jd.field(4, at_least=1)
    hidden: int = jd.field(128, at_least=1)
    share: float = 0.5
    epochs: int = jd.field(1200, at_least=1)
    every: int = jd.field(15, at_least=1)
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse even p, heads that do not fit the width, no pairs to train or to test on, and records that end before the run."""
        jd.require(self, self.p % 2 == 1, "p is odd", "p")
        jd.require(self, self.width % self.heads == 0, "the width is a multiple of heads", "width", "heads")
        jd.require(self, 0 < count(self) < self.p**2, "share leaves pairs to train and to test on", "share", "p")
        jd.require(self, self.epochs % self.every == 0, "epochs is a multiple of every", "epochs", "every")


class Run(NamedTuple):
    """The weights at every record (leading axis), and the pairs (numbers in :func:`model.all_pairs`) of training and test."""

    weights: model.Params
    train: Int[Array, " n"]
    test: Int[Array, " m"]


def count(s: Training) -> int:
    """Number of training pairs."""
    return round(s.share * s.p**2)


def split(key: PRNGKeyArray, s: Training) -> tuple[Int[Array, " n"], Int[Array, " m"]]:
    """Numbers of the training pairs, and of the test pairs."""
    order = jax.random.permutation(key, jnp.arange(s.p**2, dtype=jnp.int32))
    return order[: count(s)], order[count(s) :]


def train(s: Training, key: PRNGKeyArray) -> Run:
    r"""Train one network by AdamW on the mean cross-entropy of the training pairs; record the weights.

    .. math:: \theta \leftarrow \theta - \eta\,\bigl(\hat m / (\sqrt{\hat v} + \epsilon) + \lambda \theta\bigr)
    """
    k_data, k_init = jax.random.split(key)
    trained, unseen = split(k_data, s)
    pairs = model.all_pairs(s.p)[trained]
    answers = model.answers(pairs, s.p)
    tx = optax.adamw(s.lr, b1=0.9, b2=0.98, weight_decay=s.decay)
    state = loop.init(tx, model.init(k_init, s.p, s.width, s.heads, s.hidden, s.dtype))

    def objective(w: model.Params) -> Float[Array, ""]:
        return jnp.mean(model.loss(model.logits(w, pairs), answers))

    step = loop.make_step(objective, tx)
    _, weights = loop.record(step, state, lambda x: x.params, samples=s.epochs // s.every, every=s.every)
    return Run(weights, trained, unseen)


def training_mask(run: Run, p: int) -> Bool[Array, " {p*p}"]:
    """Which of all pairs the network is trained on."""
    return jnp.zeros(p * p, bool).at[run.train].set(True)
