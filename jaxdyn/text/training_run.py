r"""Training runs of a language model on a text, as in the experiments of JoMA and of Scan & Snap: setting, parts, records.

Post-norm encoder with a causal mask and one head, columns of text read in windows, gradient norms clipped. JoMA: Adam, reset
before each epoch. Scan & Snap: plain gradient descent, at twice the rate in the lowest layer's MLP.
Source: released code of arXiv:2310.00535 (section 5, figures 6 to 8) and of arXiv:2305.16380 (figure 7).
Letters: L layers, V words, d width.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxdyn import metrics, nn, optim, text, train
from jaxdyn.engine.base.progress import Progress
from jaxdyn.engine.claims.fields import Swept
from jaxdyn.engine.claims.setting import setting
from jaxdyn.errors import UsageError, flag, require, whole
from jaxdyn.optim.restart import restarting
from jaxdyn.text import language, longrun, pretraining
from jaxdyn.text.corpus import Corpus

__all__ = [
    "EVALUATED",
    "Built",
    "Record",
    "TrainingRun",
    "build",
    "build_many",
    "long_run",
    "long_runs",
    "train_and_observe",
    "uniform_entropy",
]

EVALUATED = 10  # columns of the validation part, as in the released code
OPTIMIZERS = ("adam", "sgd")
SEEDS = 2**31 - 1  # JAX makes int32 of a seed
FREQUENT = 4096  # words whose embeddings are compared: the cost grows with the square


@setting
class TrainingRun:
    """One training run on a text; the defaults take half a minute on one core.

    Args:
        lr: the rate.
        clip: norm above which a gradient is clipped.
        lowest_mlp: factor on the rate of the lowest layer's MLP.
        query_key: factor on the rate of queries and keys; 0 keeps them at their start.
        optimizer: "adam" or "sgd".
        text: "topics" (the interpreter's manual), "markov", or the path of a file or a WikiText folder.
        digest: digest of the contents of the file or folder; filled in.
        level: "words" or "bytes".
        max_words: how many of the most frequent words are in the vocabulary; the others become the unknown word; 0 for all.
        layers: L.
        width: of the residual stream.
        hidden: units of an MLP.
        activation: of the MLP.
        dropout: share of entries that is dropped.
        columns: pieces of the text that are read in parallel.
        length: words of a window.
        restart: reset the optimizer before each epoch.
        shuffled: read the training words in random order.
        steps: of training.
        every: steps between two records.
        windows: validation windows of a record; 0 for all.
        dtype: of the network.
    """

    lr: Swept = 1e-3
    clip: Swept = 0.5
    lowest_mlp: Swept = 1.0
    query_key: Swept = 1.0
    optimizer: Literal["adam", "sgd"] = "adam"
    text: str = "topics"
    digest: str = ""
    level: Literal["words", "bytes"] = "words"
    max_words: int = 2000
    layers: int = 1
    width: int = 64
    hidden: int = 64
    activation: str = "relu"
    dropout: float = 0.2
    columns: int = 20
    length: int = 35
    restart: bool = True
    shuffled: bool = False
    steps: int = 1500
    every: int = 50
    windows: int = 10
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse counts that are not positive and records that end before the run; fill in the digest of a file."""
        for name in ("columns", "length", "steps", "every"):
            whole(name, getattr(self, name), least=1)
        require(self, self.steps % self.every == 0, "steps is a positive multiple of every", "steps", "every")
        for name in ("max_words", "windows"):
            whole(name, getattr(self, name), least=0)
        for name in ("restart", "shuffled"):
            flag(name, getattr(self, name))
        require(self, bool(self.clip > 0), "clip is positive", "clip")
        require(self, self.optimizer in OPTIMIZERS, f"optimizer is one of {', '.join(OPTIMIZERS)}", "optimizer")
        self.shape(2)
        pretraining.note_digest(self)

    def shape(self, words: int) -> nn.Transformer:
        """The network for a vocabulary of this many words."""
        sizes = {"width": self.width, "hidden": self.hidden, "layers": self.layers}
        return nn.encoder_lm(words, dropout=self.dropout, activation=self.activation, dtype=self.dtype, **sizes)

    def corpus(self) -> Corpus:
        """The text."""
        return text.load(self.text, self.level, self.max_words or None)

    @property
    def epoch(self) -> int:
        """Steps of one pass over the text."""
        return text.windows_in(text.columns(self.corpus().train, self.columns), self.length)


class Record(NamedTuple):
    """What is observed at one step, in float32 at least."""

    loss: Float[Array, ""]  # validation cross-entropy, nats per word
    entropy: Float[Array, " L"]  # of a query's attention, nats, mean over validation windows and positions
    stable_rank: Float[Array, " L"]  # of the lower matrix of each MLP
    cosine: Float[Array, " L+1"]  # mean |cos| of the most frequent words' embeddings, then of what each MLP writes


class Built(NamedTuple):
    """The parts of a run: the network, ``step(state, columns, key)``, its start and data, and ``observe(state)``."""

    net: nn.Network
    step: Callable[..., train.State]
    start: train.State
    data: tuple[Int[np.ndarray | Array, "columns total"], PRNGKeyArray]
    observe: Callable[[train.State], Record]


def _rates(s: TrainingRun, updates: PyTree) -> PyTree:
    """Updates times minus the rate, with the factors of the lowest MLP and of queries and keys."""
    updates = jax.tree.map(lambda u: -s.lr * u, updates)
    blocks = dict(updates["blocks"])
    lowest = jnp.where(jnp.arange(s.layers) == 0, jnp.asarray(s.lowest_mlp, s.dtype), 1)
    for name in ("up", "up_bias", "down", "down_bias"):
        blocks[name] = blocks[name] * lowest.reshape(-1, *(1,) * (blocks[name].ndim - 1))
    for name in ("q", "q_bias", "k", "k_bias"):
        blocks[name] = blocks[name] * jnp.asarray(s.query_key, s.dtype)
    return updates | {"blocks": blocks}


def build(s: TrainingRun, key: PRNGKeyArray, shape: nn.Transformer | None = None) -> Built:
    """The parts of a run. A record at the end of an epoch is of the whole validation part.

    Args:
        s: the run.
        key: of its start, its dropout and its order of words.
        shape: another network of the setting's sizes; by default the setting's own.
    """
    corpus = s.corpus()
    k_init, k_drop, k_order = jax.random.split(key, 3)
    net = nn.network(shape or s.shape(len(corpus.vocabulary)))
    columns: Array | np.ndarray = text.columns(corpus.train, s.columns)
    validation = text.columns(corpus.valid, EVALUATED)
    if s.shuffled:
        columns = jax.random.permutation(k_order, columns.reshape(-1)).reshape(columns.shape)
    epoch, available = s.epoch, text.windows_in(validation, s.length)
    rates = optax.stateless(lambda updates, _: _rates(s, updates))
    direction = restarting(optim.method(s.optimizer, None).tx, epoch if s.restart else 0)
    tx = optax.chain(optax.clip_by_global_norm(s.clip), direction, rates)

    def observe(state: train.State) -> Record:
        windows = jnp.where(state.step % epoch == 0, available, s.windows or available)
        measured = language.evaluate(net, state.params, jnp.asarray(validation), s.length, windows)
        blocks = state.params["blocks"]
        up = blocks["up"].astype(jnp.promote_types(s.dtype, jnp.float32))
        written = jax.lax.map(nn.mean_cosine, blocks["down"])
        cosine = jnp.concatenate([nn.mean_cosine(state.params["embed"][:FREQUENT])[None], written])
        return Record(measured.loss, measured.entropy, metrics.stable_rank(up), cosine)

    start = jax.jit(lambda k: train.init(tx, net.init(k)))(k_init)  # one program, not one per operation
    return Built(net, language.make_step(net, tx, s.length), start, (columns, k_drop), observe)


def train_and_observe(
    s: TrainingRun, built: Built, observe: Callable[[train.State], PyTree] | None = None
) -> tuple[train.State, PyTree]:
    """Train inside a trial: the last state, and what is observed before the first step and after each ``every`` (leading axis).

    Args:
        s: the run.
        built: its parts.
        observe: ``observe(state)``, a pytree of arrays; by default the :class:`Record`.
    """
    data = jax.tree.map(jnp.asarray, built.data)
    samples = s.steps // s.every
    return train.record(lambda x: built.step(x, *data), built.start, observe or built.observe, samples=samples, every=s.every)


def build_many(s: TrainingRun, seeds: Sequence[int]) -> Built:
    """The parts of runs with several seeds in one program: every leaf but the count of steps has a leading axis of seeds.

    On CPUs this is no faster than one run after another and needs the memory of all; an accelerator is only filled this way.

    Raises:
        UsageError: if there is no seed, or one is out of its range.
    """
    seeds = [_seed(seed) for seed in seeds]
    if not seeds:
        raise UsageError("seeds=[] is not allowed: there is at least one run")
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds))
    one = build(s, keys[0])
    text_axis = 0 if s.shuffled else None
    axes: tuple[int, int, Any] = (0, 0, None)  # all runs have made the same steps
    seed_of = train.State(*axes)

    def parts(key: PRNGKeyArray) -> tuple[Any, ...]:
        built = build(s, key)
        return built.start, built.data[1], built.data[0] if s.shuffled else ()

    start, dropout, shuffled = jax.jit(jax.vmap(parts))(keys)
    step = jax.vmap(one.step, in_axes=(seed_of, text_axis, 0), out_axes=seed_of)
    observe = jax.vmap(one.observe, in_axes=(seed_of,))
    data = (shuffled if s.shuffled else one.data[0], dropout)
    return Built(one.net, step, start._replace(step=start.step[0]), data, observe)


def _seed(seed: int) -> int:
    return whole("seed", seed, least=-SEEDS - 1, most=SEEDS)


def long_run(
    s: TrainingRun, seed: int, path: Path, observe: Callable[[Built, PyTree], dict[str, Array]] | None = None
) -> longrun.Run:
    """One run from the host, with a progress bar, in a file of its own: an existing file is resumed, and may be extended.

    Args:
        s: the run; neither its length nor the path of the text identifies it.
        seed: its seed.
        path: the file.
        observe: ``observe(built, params)``, a dict of arrays to record; by default the :class:`Record`.

    Raises:
        UsageError: if the seed is out of its range.
        StoreError: as :func:`jaxdyn.text.longrun.run`.
    """
    seed = _seed(seed)
    built = build(s, jax.random.key(seed))
    record = (lambda state: observe(built, state.params)) if observe else (lambda state: built.observe(state)._asdict())
    return _run(s, built, seed, path, record)


def long_runs(s: TrainingRun, seeds: Sequence[int], folder: Path, name: str) -> list[longrun.Run]:
    """A run for each seed: one after another on CPUs, all at once and in one file on an accelerator.

    Raises:
        UsageError: if a seed is out of its range.
        StoreError: as :func:`jaxdyn.text.longrun.run`.
    """
    seeds = [_seed(seed) for seed in seeds]
    if jax.default_backend() == "cpu" or len(seeds) == 1:
        return [long_run(s, seed, folder / f"{name}_seed{seed}.run") for seed in seeds]
    built = build_many(s, seeds)
    path = folder / f"{name}_seeds{'_'.join(map(str, seeds))}.run"
    both = _run(s, built, seeds, path, lambda state: built.observe(state)._asdict())
    return [
        longrun.Run(both.steps, {name: x[:, i] for name, x in both.records.items()}, _one_seed(both.state, i))
        for i in range(len(seeds))
    ]


def _one_seed(state: train.State | None, i: int) -> train.State | None:
    if state is None:
        return None
    params, opt = jax.tree.map(lambda x: x[i], (state.params, state.opt))
    return train.State(params, opt, state.step)


def _run(
    s: TrainingRun, built: Built, seed: int | list[int], path: Path, record: Callable[[train.State], dict[str, Any]]
) -> longrun.Run:
    about = dataclasses.asdict(s) | {"seed": seed, "digest": s.corpus().digest}
    about = {name: value for name, value in about.items() if name not in ("steps", "text")}
    observe, data = jax.jit(record), jax.device_put(built.data)
    with Progress(path.stem, unit="steps") as bar:
        return longrun.run(
            path, about, built.step, lambda: built.start, observe, until=s.steps, every=s.every, data=data, progress=bar
        )


def uniform_entropy(length: int) -> float:
    r"""Mean entropy of uniform causal attention, :math:`\frac1n \sum_{i=1}^n \ln i = \ln(n!)/n`; 2.6325 for 35."""
    return float(np.mean(np.log(np.arange(1, whole("length", length, least=1) + 1))))
