"""Trained language models: how orthogonal their embeddings, what their MLPs write, and their residual streams are.

Groups of vectors are recorded along training on a text; they are those of ``model.py``, random directions those of
``dynamics/directions.py``. The weights of a pre-norm network with rotary positions, like Pythia's, do not stay as near to random
ones: ``orth.trained_rotary``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import linalg, nn, plotting, train
from jaxdyn.text import training_run
from jaxdyn.theories.orth import model
from jaxdyn.theories.orth.dynamics import directions

SHARES = (1 / 16, 1 / 2)
WEIGHTS = ("embedding", "written")  # groups of vectors that are weights, by the start of their names
FORMS = ("weights", "all")  # which groups are predicted to be like random directions; of the others only |cos| <= 1
NETWORKS = ("encoder", "rotary")


@jd.setting
class Watched:
    """One training run on a text whose vectors are recorded; fields of :class:`jaxdyn.text.training_run.TrainingRun` mean the same.

    Args:
        lr: Adam's rate.
        network: "encoder", JoMA's own (post-norm, sinusoidal positions, ReLU, dropout, all layers start alike), or "rotary", one
            like Pythia's (pre-norm, rotary positions, GELU, weights of standard deviation .02, no dropout).
        text: "topics" (the interpreter's manual), "markov", or the path of a file or a WikiText folder.
        digest: contents of the file or folder, filled in.
        max_words: words of the vocabulary apart from the unknown; 0 for all.
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
    width: int = jd.field(256, at_least=32)
    layers: int = 2
    columns: int = 8
    length: int = 32
    vectors: int = jd.field(256, at_least=2)
    steps: int = 150
    every: int = 50
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse unknown networks and more vectors than there are; note a file's contents."""
        jd.require(self, self.network in NETWORKS, f"network is one of {', '.join(NETWORKS)}", "network")
        jd.require(self, self.vectors <= self.width, "vectors is at most the width (rows of an MLP)", "vectors", "width")
        run = self.text_run()
        self.shape(2)
        object.__setattr__(self, "digest", run.digest)
        model.probe(run.corpus().valid, self.length, self.vectors)

    def text_run(self) -> training_run.TrainingRun:
        """The run on the text: Adam without restarts, on JoMA's encoder."""
        return training_run.TrainingRun(
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

    def shape(self, words: int) -> nn.Transformer:
        """The network for so many words."""
        if self.network == "encoder":
            return self.text_run().shape(words)
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

    loss: Float[Array, ""]  # of the windows that are probed, nats per word
    groups: model.Spread  # of each group of vectors, fields [g]
    narrow: Float[Array, " share"]  # mean |cos| of the embeddings projected on a share SHARES of all directions, at random


def recorded(s: Watched, key: PRNGKeyArray) -> Record:
    """Train one network; the records at steps 0, every, ..., steps (leading axis)."""
    run = s.text_run()
    corpus = run.corpus()
    built = training_run.build(run, key, s.shape(len(corpus.vocabulary)))
    probed = model.probe(corpus.valid, s.length, s.vectors)
    k_narrow = jax.random.split(key, 3)[2]
    frame, _ = linalg.qr(jax.random.normal(k_narrow, (s.width, s.width // 2), s.dtype))

    def observe(state: train.State) -> Record:
        vectors, loss = model.groups(built.net, state.params, probed)
        narrow = [nn.mean_cosine(vectors[0] @ frame[:, : round(share * s.width)]) for share in SHARES]
        return Record(loss, jax.lax.map(model.spread, vectors), jnp.stack(narrow))

    return training_run.train_and_observe(run, built, observe)[1]


def trial(s: Watched, key: PRNGKeyArray) -> jd.Observables:
    """Train a language model; the mean |cos| of each group of vectors at every record next to that of random directions."""
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


LIMIT = 2.5  # times the mean |cos| of random directions
SHORT_LIMIT = 1.2  # the same for embeddings after a short training
START_COSINE = 0.03  # by how much mean |cos| over that of random directions may differ from 1 at the start, mean over seeds
START_GRAM = 0.06  # the same for the squared distance of the Gram matrix from I
RISE = "mean |cos| of weights, end / start"
MOVED, MOVES = "mean |cos| of embeddings, end / start, minus 1", 0.001
HUES = ("measured", "theory", "third", "fourth", "fifth", "control")  # of groups in figures


def excess(ds: xr.Dataset, *starts: str) -> xr.DataArray:
    """Mean |cos| over that of random directions, of the groups whose names start like this (all of them by default)."""
    ratio = ds.measured_cosine / ds.predicted_cosine
    return ratio.sel(group=[g for g in ratio.group.values if g.startswith(starts)]) if starts else ratio


def judge_weights(ds: xr.Dataset) -> list[jd.Check]:
    """Weights start as random directions and, though training aligns them, every group stays near what is predicted of it."""
    weights = excess(ds, *WEIGHTS)
    rise = weights.isel(step=-1) / weights.isel(step=0)
    rise = rise.mean([d for d in rise.dims if d != "seed"])
    return [
        jd.within("mean |cos| of weights / random, start", weights.isel(step=0), 0.9, 1.1),
        jd.mean_within(RISE, rise, over="seed", low=1.02),
        jd.at_most("mean |cos| / predicted, every group and record", excess(ds), LIMIT),
    ]


def read_every(ds: xr.Dataset) -> list[jd.Reading]:
    """Every group of vectors by itself: the largest value of a run over its records, mean over runs."""
    return [jd.mean_reading(f"largest {_over(g)}, mean over runs", v, over=list(v.dims)) for g, v in along(ds).items()]


def along(ds: xr.Dataset) -> dict[str, xr.DataArray]:
    """The largest value of each group along a run."""
    return {str(g): excess(ds).sel(group=g, drop=True).max("step") for g in ds.group.values}


def _over(group: str) -> str:
    return f"mean |cos| / random, {group}"


def readings(layers: int, value: float | Callable[[xr.Dataset, str], float]) -> dict[str, float | Callable[[xr.Dataset], float]]:
    """What a rival says of every group: a number, or what it makes of the runs and the group's name."""

    def one(group: str) -> float | Callable[[xr.Dataset], float]:
        return (lambda ds: value(ds, group)) if callable(value) else value

    return {f"largest {_over(group)}, mean over runs": one(group) for group in model.names(layers)}


def recorded_as(values: dict[str, tuple[float, float, float]]) -> dict[str, tuple[float, float, float]]:
    """What was recorded of each group, by the names of readings."""
    return {f"largest {_over(group)}, mean over runs": ends for group, ends in values.items()}


def at_start(ds: xr.Dataset, group: str) -> float:
    """The value of a group before training, mean over runs."""
    return float(excess(ds).sel(group=group, step=0).mean())


def judge_start(ds: xr.Dataset) -> list[jd.Check]:
    """At the start, weights have the mean |cos| and the Gram matrix of random directions; embeddings stay near them."""
    start = ds.isel(step=0).sel(group=[g for g in ds.group.values if g.startswith(WEIGHTS)])
    measured, predicted = start.measured_gram**2, start.predicted_gram**2
    gram = (predicted - measured) / measured.mean("seed")
    cosine = (start.predicted_cosine - start.measured_cosine) / start.measured_cosine.mean("seed")
    embeddings = excess(ds, "embedding").isel(group=0, drop=True)
    moved = (embeddings.isel(step=-1) / embeddings.isel(step=0) - 1).mean([d for d in embeddings.dims if d not in ("seed", "step")])
    return [
        jd.mean_within("random over mean |cos|, minus 1, start", cosine, over="seed", low=-START_COSINE, high=START_COSINE),
        jd.mean_within(
            "random over squared distance of the Gram matrix from I, minus 1, start",
            gram,
            over="seed",
            low=-START_GRAM,
            high=START_GRAM,
        ),
        jd.at_most("mean |cos| / random, embedding", embeddings, SHORT_LIMIT),
        jd.mean_within(MOVED, moved, over="seed", low=MOVES),
    ]


def in_place_of_embeddings(cosine: Callable[[xr.Dataset], xr.DataArray]) -> Callable[[xr.Dataset], xr.Dataset]:
    """Other mean cosines where the embeddings' own are judged."""
    return jd.swap(measured_cosine=lambda ds: xr.where(ds.group == "embedding", cosine(ds), ds.measured_cosine))


def narrowed(share: int) -> Callable[[xr.Dataset], xr.Dataset]:
    """The embeddings projected on a share of all directions (number of the axis), at random, in their place."""
    return in_place_of_embeddings(lambda ds: ds["narrow"].isel(share=share, drop=True))


# The raw residual stream before the second block.
STREAMS = in_place_of_embeddings(lambda ds: ds.measured_cosine.sel(group="input 1", drop=True))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Mean |cos| over that of random directions along training: weights, and the residual stream."""
    for ax, starts in zip(fig.subplots(1, 2), (WEIGHTS, ("input", "centred")), strict=True):
        ratio = excess(ds.sel(form="all"), *starts)
        for i, group in enumerate(ratio.group.values):
            plotting.band(ax, ds.step, ratio.sel(group=group).transpose(..., "step"), str(group), HUES[i % len(HUES)])
        ax.axhline(LIMIT, linestyle=":", color=plotting.COLORS["failed"])
        low, high = float(ratio.min()), max(LIMIT, float(ratio.max()))
        room = high * (high / low) ** 0.35  # for the legend, above the data
        ax.set(xlabel="step", ylabel="mean |cos| / random directions", yscale="log", ylim=(None, room))
        ax.legend(ncols=2, loc="upper center")


WIDTHS = [64, 128, 256, 512]
SHORT = {"vectors": 64, "layers": 1, "max_words": 500, "columns": 4, "steps": 100, "every": 50}
TESTED = (
    "NETWORK trained by Adam at rate {lr} for {steps} steps of {columns} windows of {length} words on the manual of the Python "
    "interpreter; {vectors} vectors of different words, read every {every} steps; {seeds} seeds."
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Watched, width=[64, 256], vectors=64),
    paper=jd.grid(Watched, width=WIDTHS, vectors=64, steps=600, every=100),  # four layers, 6000 steps: experiments/orth_overview.py
    seeds=4,
    max_seeds=32,
    evidence="network",
    tested=TESTED.replace("NETWORK", "JoMA's encoder ({layers} layers, width {width})"),
    source="arXiv:2310.00535, assumption of orthogonal embeddings (section 2) and its orthogonality figure",
    plot=plot,
    caption="Mean absolute cosine over pairs of vectors that belong to different words, relative to random directions, against "
    "training steps. Left: embeddings and the rows that each MLP writes; right: the residual stream before each block and after "
    "the last, raw (input) and without its mean over words (centred). Lines and bands: median and central 90% of the runs; "
    "dotted: 2.5 times random.",
)
FOUND = {
    "embedding": (1.01, 1.085, 1.16),
    "input 0": (4.75, 5.132, 5.51),
    "input 1": (7.33, 8.614, 9.9),
    "input 2": (11.7, 12.56, 13.5),
    "centred 0": (1.3, 1.456, 1.61),
    "centred 1": (1.71, 1.952, 2.19),
    "centred 2": (1.96, 2.698, 3.44),
    "written 0": (1.03, 1.08, 1.13),
    "written 1": (1.03, 1.104, 1.18),
}
FOUND_ROTARY = {  # on 16 seeds
    "embedding": (1.64, 1.684, 1.73),
    "input 0": (1.64, 1.684, 1.73),
    "input 1": (4.74, 5.478, 6.22),
    "input 2": (8.75, 8.987, 9.22),
    "centred 0": (1.69, 1.733, 1.78),
    "centred 1": (4.62, 4.862, 5.11),
    "centred 2": (4.69, 4.999, 5.31),
    "written 0": (1.77, 1.827, 1.88),
    "written 1": (1.91, 2.028, 2.15),
}
EXACT: dict[str, Any] = {"exactly orthogonal": jd.swap(predicted_cosine=1e-6)}
RANDOM: dict[str, Any] = {
    "random directions": readings(2, 1.0),
    "exactly orthogonal": readings(2, 0.0),
    "training moves nothing": jd.off(readings(2, at_start)),
}
ORTHOGONAL = {"vectors that are exactly orthogonal": jd.swap(measured_cosine=1e-6)}
NARROW = {"embeddings within d/16 dimensions": narrowed(0)}

TRAINED = STUDY.claim(
    id="orth.trained",
    talks=("training:joma-orthogonal",),
    title="In early training weights stay nearly as orthogonal as at random",
    bounds=jd.tuned(on="0:4", confirmed_on="4000:4004"),
    statement="In JoMA's encoder of width 64 or 256, token embeddings and the directions that each MLP writes start with the "
    "mean |cos| of random directions, within 10%. Training on a text by Adam at rate .001 (or 150 steps at .002) raises it by 2% "
    "or more on average in 150 to 600 steps, and in every record until then it stays below 2.5 times that of random directions. "
    "(Larger networks get farther from them: of width 512, at .002, 3.5 times.)",
    form="weights",
    holds={"lr": (0.001, 0.002)},
    judge=judge_weights,
    controls=NARROW | {"the residual stream for the embeddings": STREAMS},
    rivals={"training moves nothing": jd.off({RISE: 1.0})} | EXACT,
)
CLAIMS = (
    TRAINED,
    dataclasses.replace(
        TRAINED.as_printed(
            id="orth.trained_naive",
            talks=("training:joma-orthogonal",),
            title="The residual stream, too, stays nearly as orthogonal as random vectors",
            statement="In JoMA's encoder of width 64 or 256, before and during 150 to 600 steps of training on a text, the mean "
            "|cos| of token "
            "embeddings, of what each MLP writes and of the residual stream at every layer stays below 2.5 times that of "
            "random directions throughout.",
            form="all",
        ),
        excused={
            "no learning: start": "The statement speaks of the untrained encoder, too, whose residual stream lies in a narrow cone."
        },
    ),
    STUDY.claim(
        id="orth.trained_inputs",
        talks=("training:joma-orthogonal",),
        title="How orthogonal the residual stream of JoMA's encoder is in training",
        statement="What is the largest mean |cos| of the residual stream, over that of random directions, before training and "
        "after 50, 100 and 150 steps on a text: the inputs of each block and the output of the last, raw and without their "
        "mean over words, next to embeddings and what MLPs write (mean over the widths 64 and 256)?",
        source="arXiv:2310.00535, orthogonality figure (which vectors it shows in hidden layers is not recorded)",
        expected="measured",
        form="all",
        judge=read_every,
        controls=NARROW | ORTHOGONAL,
        rivals=RANDOM,
        recorded=recorded_as(FOUND),
    ),
    STUDY.claim(
        id="orth.trained_rotary",
        talks=("training:joma-orthogonal", "training:joma-orthogonal-figure"),
        title="How orthogonal the vectors of a network like Pythia stay in training",
        tested=TESTED.replace(
            "NETWORK", "A pre-norm network with rotary positions ({layers} layers, width {width}, also of its MLPs)"
        ),
        statement="How large does the mean |cos| of embeddings, of what MLPs write and of the residual stream become in 150 "
        "steps of training on a text in a network like Pythia, over that of random directions?",
        quick=jd.grid(Watched, network="rotary", width=64, vectors=64),
        paper=jd.grid(Watched, network="rotary", width=WIDTHS, vectors=64, steps=600, every=100),
        seeds=10,
        expected="measured",
        form="all",
        judge=read_every,
        controls=NARROW | ORTHOGONAL,
        rivals=RANDOM,
        recorded=recorded_as(FOUND_ROTARY),
        recorded_seeds=16,
    ),
    STUDY.claim(
        id="joma.ortho",
        talks=("training:joma-orthogonal",),
        title="JoMA's encoder starts with random embeddings and stays near them",
        statement="At its random start the embeddings and output projections of JoMA's encoder have, on average over seeds, "
        r"the mean |cos| of random directions within 3%, and n of their unit columns U in d dimensions have $\|U^\top U - "
        r"I\|_F^2 = n(n-1)/d$ within 6%. Training on a text for 100 steps of Adam at a rate of .001 to .0015 raises the mean "
        "|cos| of embeddings by .1% or more on average, and leaves it below 1.2 times that of random directions.",
        quick=jd.grid(Watched, width=64, **SHORT),
        paper=jd.grid(Watched, width=WIDTHS, **SHORT),
        seeds=16,
        max_seeds=128,
        paper_seeds=32,
        bounds=jd.tuned(on="0:16", confirmed_on="62000000:62000064"),
        form="all",
        holds={"lr": (0.001, 0.0015)},
        judge=judge_start,
        controls={"embeddings of half the rank": narrowed(1)} | NARROW,
        rivals={
            "training moves nothing": jd.off({MOVED: 0.0}),
            "exactly orthogonal": jd.swap(predicted_cosine=1e-6, predicted_gram=0.0),
        },
    ),
)
