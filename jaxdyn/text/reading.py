r"""One training run of a language model on a text, as in the text experiments of JoMA and of Scan & Snap: setting, pieces, records.

Post-norm encoder with a causal mask and one head, columns of text read in windows, gradient norms clipped. JoMA: Adam, made anew
each epoch. Scan & Snap: plain gradient descent, at twice the rate in the lowest layer's MLP.
Source: released code of arXiv:2310.00535 (section 5, figures 6 to 8) and of arXiv:2305.16380 (figure 7).
Letters: L layers, V words, d width.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

import jaxdyn as jd
from jaxdyn import metrics, nn, text, train
from jaxdyn.engine.progress import Progress
from jaxdyn.errors import UsageError, given
from jaxdyn.optim.restart import restarting
from jaxdyn.text import language, longrun

__all__ = [
    "EVALUATED",
    "Built",
    "Reading",
    "Record",
    "build",
    "build_many",
    "long_run",
    "long_runs",
    "recorded",
    "uniform_entropy",
]

EVALUATED = 10  # columns of the validation part, as in the released code
OPTIMIZERS = {"adam": optax.scale_by_adam, "sgd": optax.identity}
FREQUENT = 4096  # words whose embeddings are compared: the cost grows with the square


@jd.setting
class Reading:
    """One training run on a text; the defaults take half a minute on one core.

    Args:
        lr: the rate.
        clip: norm above which a gradient is cut.
        lowest_mlp: factor on the rate of the lowest layer's MLP.
        query_key: factor on the rate of queries and keys; 0 leaves them as they start.
        optimizer: "adam" or "sgd".
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
        restart: make the optimizer anew before each epoch.
        shuffled: read the training words in random order.
        steps: of training.
        every: steps between two records.
        windows: validation windows of a record; 0 for all.
        dtype: of the network.
    """

    lr: jd.Swept = 1e-3
    clip: jd.Swept = 0.5
    lowest_mlp: jd.Swept = 1.0
    query_key: jd.Swept = 1.0
    optimizer: Literal["adam", "sgd"] = "adam"
    text: str = "topics"
    digest: str = ""
    level: Literal["words", "bytes"] = "words"
    most: int = 2000
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
        """Refuse counts that are not positive and records that end before the run; note what a file's contents are."""
        if min(self.columns, self.length, self.steps, self.every) < 1 or self.steps % self.every:
            given_ = given(self, "columns", "length", "steps", "every")
            raise UsageError("columns and length are positive, and steps a positive multiple of every, " + given_)
        if min(self.most, self.windows) < 0 or self.clip <= 0:
            raise UsageError("most and windows are 0 or more and clip is positive, " + given(self, "most", "windows", "clip"))
        if self.optimizer not in OPTIMIZERS:
            raise UsageError(f"optimizer is one of {', '.join(OPTIMIZERS)}, " + given(self, "optimizer"))
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
    """A run in pieces: the network, ``step(state, columns, key)``, its start and data, and what is observed of a state."""

    net: nn.Network
    step: Callable[..., train.State]
    start: train.State
    data: tuple[Int[np.ndarray, "columns total"], PRNGKeyArray]
    observe: Callable[[train.State], Record]


def _rates(s: Reading, updates: PyTree) -> PyTree:
    """Updates times minus the rate, with the factors of the lowest MLP and of queries and keys."""
    updates = jax.tree.map(lambda u: -s.lr * u, updates)
    blocks = dict(updates["blocks"])
    lowest = jnp.where(jnp.arange(s.layers) == 0, s.lowest_mlp, 1).astype(s.dtype)
    asked = jnp.where(jnp.arange(3 * s.width) < 2 * s.width, s.query_key, 1).astype(s.dtype)
    for name in ("inner", "inner_bias", "outer", "outer_bias"):
        blocks[name] = blocks[name] * lowest.reshape(-1, *(1,) * (blocks[name].ndim - 1))
    blocks["qkv"], blocks["qkv_bias"] = blocks["qkv"] * asked, blocks["qkv_bias"] * asked
    return updates | {"blocks": blocks}


def build(s: Reading, key: PRNGKeyArray, shape: nn.Shape | None = None) -> Built:
    """The pieces of a run. Where an epoch ends with a record, that record is of the whole validation part.

    Args:
        s: the run.
        key: of its start, its dropout and its order of words.
        shape: another network of the setting's sizes; by default the setting's own.
    """
    corpus = s.corpus()
    k_init, k_drop, k_order = jax.random.split(key, 3)
    net = nn.network(shape or s.shape(len(corpus.vocabulary)))
    columns, held = text.columns(corpus.train, s.columns), text.columns(corpus.valid, EVALUATED)
    if s.shuffled:
        columns = jax.random.permutation(k_order, columns.reshape(-1)).reshape(columns.shape)
    epoch, most = s.epoch, text.windows_in(held, s.length)
    rates = optax.stateless(lambda updates, _: _rates(s, updates))
    tx = optax.chain(optax.clip_by_global_norm(s.clip), restarting(OPTIMIZERS[s.optimizer](), epoch if s.restart else 0), rates)

    def observe(state: train.State) -> Record:
        windows = jnp.where(state.step % epoch == 0, most, s.windows or most)
        found = language.evaluate(net, state.params, jnp.asarray(held), s.length, windows)
        blocks = state.params["blocks"]
        written = jax.lax.map(nn.mean_cosine, blocks["outer"])
        cosine = jnp.concatenate([nn.mean_cosine(state.params["embed"][:FREQUENT])[None], written])
        return Record(found.loss, found.entropy, metrics.stable_rank(blocks["inner"]), cosine)

    return Built(net, language.make_step(net, tx, s.length), train.init(tx, net.init(k_init)), (columns, k_drop), observe)


def recorded(s: Reading, built: Built, observe: Callable[[train.State], PyTree] | None = None) -> tuple[train.State, PyTree]:
    """Train inside a trial: the last state, and what is observed before the first step and after each ``every`` (leading axis).

    Args:
        s: the run.
        built: its pieces.
        observe: ``observe(state)``, a pytree of arrays; by default the :class:`Record`.
    """
    data = jax.tree.map(jnp.asarray, built.data)
    samples = s.steps // s.every
    return train.record(lambda x: built.step(x, *data), built.start, observe or built.observe, samples=samples, every=s.every)


def build_many(s: Reading, seeds: Sequence[int]) -> Built:
    """The same for several seeds in one program: every leaf but the count of steps has an axis of seeds in front.

    On CPUs that is no faster than one after another, and needs their memory at once; accelerators are filled only so.
    """
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds))
    one = build(s, keys[0])
    text_axis = 0 if s.shuffled else None
    seed_of = train.State(params=0, opt=0, step=None)

    def pieces(key: PRNGKeyArray) -> tuple:
        built = build(s, key)
        return built.start, built.data[1], built.data[0] if s.shuffled else ()

    start, dropout, shuffled = jax.jit(jax.vmap(pieces))(keys)
    step = jax.vmap(one.step, in_axes=(seed_of, text_axis, 0), out_axes=seed_of)
    observe = jax.vmap(one.observe, in_axes=(seed_of,))
    data = (shuffled if s.shuffled else one.data[0], dropout)
    return Built(one.net, step, start._replace(step=start.step[0]), data, observe)


def long_run(s: Reading, seed: int, path: Path, observe: Callable[[Built, PyTree], dict[str, Array]] | None = None) -> longrun.Run:
    """One run from the host, with progress, in a file of its own: it goes on where it was stopped, and may be extended.

    Args:
        s: the run; neither its length nor where the text lies are part of what the file is about.
        seed: its seed.
        path: the file.
        observe: ``observe(built, params)``, a dict of arrays to record; by default the :class:`Record`.
    """
    built = build(s, jax.random.key(seed))
    record = (lambda state: observe(built, state.params)) if observe else (lambda state: built.observe(state)._asdict())
    return _run(s, built, seed, path, record)


def long_runs(s: Reading, seeds: Sequence[int], folder: Path, name: str) -> list[longrun.Run]:
    """A run of every seed: one after another on CPUs, all at once in one file where there is an accelerator."""
    if jax.default_backend() == "cpu" or len(seeds) == 1:
        return [long_run(s, seed, folder / f"{name}_seed{seed}.run") for seed in seeds]
    built = build_many(s, seeds)
    path = folder / f"{name}_seeds{'_'.join(map(str, seeds))}.run"
    both = _run(s, built, list(seeds), path, lambda state: built.observe(state)._asdict())
    return [
        longrun.Run(both.steps, {name: x[:, i] for name, x in both.records.items()}, _one_seed(both.state, i))
        for i in range(len(seeds))
    ]


def _one_seed(state: train.State, i: int) -> train.State:
    params, opt = jax.tree.map(lambda x: x[i], (state.params, state.opt))
    return train.State(params, opt, state.step)


def _run(s: Reading, built: Built, seed: int | list[int], path: Path, record: Callable[[train.State], dict]) -> longrun.Run:
    about = dataclasses.asdict(s) | {"seed": seed, "digest": s.corpus().digest}
    about = {name: value for name, value in about.items() if name not in ("steps", "text")}
    observe, data = jax.jit(record), jax.device_put(built.data)
    with Progress(path.stem, unit="steps") as bar:
        return longrun.run(
            path, about, built.step, lambda: built.start, observe, until=s.steps, every=s.every, data=data, progress=bar
        )


def uniform_entropy(length: int) -> float:
    r"""Mean entropy of a causal attention that is blind, :math:`\frac1n \sum_{i=1}^n \ln i = \ln(n!)/n`; 2.6325 for 35."""
    return float(np.mean(np.log(np.arange(1, length + 1))))
