"""Trained language models: how orthogonal their embeddings, what their MLPs write, and their residual streams are.

Groups of vectors are recorded along training on a text; they are those of ``model.py``, random directions those of
``dynamics/directions.py``. The weights of a pre-norm network with rotary positions, like Pythia's, do not stay as near to random
ones: ``orth.trained_rotary``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, nn, plotting, train
from jaxdyn.text import reading
from jaxdyn.theories.orth import model
from jaxdyn.theories.orth.dynamics import directions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "CLAIMS",
    "FORMS",
    "SHARES",
    "WEIGHTS",
    "Watched",
    "excess",
    "judge_every",
    "judge_start",
    "judge_weights",
    "narrowed",
    "trial",
]


SHARES = (1 / 16, 1 / 2)
WEIGHTS = ("embedding", "written")  # groups of vectors that are weights, by the start of their names
FORMS = ("weights", "all")  # which groups are predicted to be like random directions; of the others only |cos| <= 1
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
        run = self.reading()
        self.shape(2)
        object.__setattr__(self, "digest", run.digest)
        model.probe(run.corpus().valid, self.length, self.vectors)

    def reading(self) -> reading.Reading:
        """The run on the text: Adam without restarts, on JoMA's encoder."""
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

    loss: Float[Array, ""]  # of the windows that are probed, nats per word
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
        jd.mean_within("mean |cos| of weights, end / start", rise, over="seed", low=1.02),
        jd.at_most("mean |cos| / predicted, every group and record", excess(ds), LIMIT),
    ]


def largest(ranges: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Where the check of :func:`judge_every` on each group lies: the largest of all records of four seeds.

    From seeds 0:4 and 41000000:41000004: a fifth to either side of their largest values, wider where the prediction interval for
    four further seeds is (log-normal, the largest over widths and records of each seed, Student's t, all groups together 99%).
    """
    return {f"mean |cos| / random, {group}": ends for group, ends in ranges.items()}


def judge_every(ds: xr.Dataset) -> list[jd.Check]:
    """Every group of vectors by itself, at every record."""
    return [jd.at_most(f"mean |cos| / random, {g}", excess(ds, g), LIMIT) for g in ds.group.values]


def judge_start(ds: xr.Dataset) -> list[jd.Check]:
    """At the start, weights have the mean |cos| and the Gram matrix of random directions; embeddings stay near them."""
    start = ds.isel(step=0).sel(group=[g for g in ds.group.values if g.startswith(WEIGHTS)])
    gram = (start.measured_gram / start.predicted_gram) ** 2
    words = "squared distance of the Gram matrix from I / random, start"
    return [
        jd.mean_within("mean |cos| / random, start", excess(start), over="seed", low=1 - START_COSINE, high=1 + START_COSINE),
        jd.mean_within(words, gram, over="seed", low=1 - START_GRAM, high=1 + START_GRAM),
        jd.at_most("mean |cos| / random, embedding", excess(ds, "embedding"), SHORT_LIMIT),
    ]


def in_place_of_embeddings(cosine: Callable[[xr.Dataset], xr.DataArray]) -> Callable[[xr.Dataset], xr.Dataset]:
    """Other mean cosines where the embeddings' own are judged."""
    return jd.swap(measured_cosine=lambda ds: xr.where(ds.group == "embedding", cosine(ds), ds.measured_cosine))


def narrowed(share: int) -> Callable[[xr.Dataset], xr.Dataset]:
    """The embeddings projected on a share of all directions (number of the axis), at random, in their place."""
    return in_place_of_embeddings(lambda ds: ds["narrow"].isel(share=share, drop=True))


UNTOUCHED = jd.initial("step", "measured_cosine")  # training moves nothing
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
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Watched, width=[64, 256], vectors=64),
    paper=jd.grid(Watched, width=WIDTHS, vectors=64, steps=600, every=100),  # four layers, 6000 steps: experiments/orth_overview.py
    seeds=4,
    evidence="network",
    source="arXiv:2310.00535, assumption of orthogonal embeddings (section 2) and its orthogonality figure",
    plot=plot,
    caption="Mean absolute cosine over pairs of vectors that belong to different words, relative to random directions, against "
    "training steps. Left: embeddings and the rows that each MLP writes; right: the residual stream before each block and after "
    "the last, raw (input) and without its mean over words (centred). Lines and bands: median and central 90% of the runs; "
    "dotted: 2.5 times random.",
)
FOUND = largest(
    {
        "embedding": (0.89, 1.34),
        "input 0": (4.2, 6.5),
        "input 1": (7.5, 11.3),
        "input 2": (12.0, 23.0),
        "centred 0": (1.25, 1.9),
        "centred 1": (1.9, 2.9),
        "centred 2": (2.9, 9.2),
        "written 0": (0.92, 1.44),
        "written 1": (0.96, 1.46),
    }
)
FOUND_ROTARY = largest(
    {
        "embedding": (1.4, 2.4),
        "input 0": (1.4, 2.4),
        "input 1": (4.6, 13.7),
        "input 2": (7.6, 11.4),
        "centred 0": (1.48, 2.5),
        "centred 1": (4.2, 7.1),
        "centred 2": (4.1, 7.1),
        "written 0": (1.58, 2.6),
        "written 1": (1.85, 3.5),
    }
)
EXACT = {"exactly orthogonal": jd.swap(predicted_cosine=1e-6)}
NARROW = {"embeddings within d/16 dimensions": narrowed(0)}

TRAINED = STUDY.claim(
    id="orth.trained",
    bounds=jd.looked(at="0:4", confirmed="4000:4004"),
    statement="In JoMA's encoder trained on a text, token embeddings and the directions that each MLP writes start as random "
    "ones, and though training raises their mean |cos| by 2% and more, it stays below 2.5 times that of random directions, in "
    "every record (widths 64 and 256, along 150 steps at small scale).",
    form="weights",
    judge=judge_weights,
    controls=NARROW | {"the residual stream for the embeddings": STREAMS},
    rivals={"training moves nothing": UNTOUCHED} | EXACT,
)
CLAIMS = (
    TRAINED,
    TRAINED.as_printed(
        id="orth.trained_naive",
        statement=r"In JoMA's encoder trained on a text the mean |cos| of token embeddings, of what each MLP writes and of the "
        r"residual stream at every layer stays below 2.5 times that of random directions, in every record.",
        form="all",
    ),
    STUDY.claim(
        id="orth.trained_inputs",
        statement=r"How orthogonal the residual stream of JoMA's encoder is along training on a text, raw and without its mean "
        r"over different words (inputs of the blocks, and after the last): the largest mean |cos| of each group of vectors, over "
        r"that of random directions.",
        source="arXiv:2310.00535, orthogonality figure (which vectors it shows in hidden layers is not recorded)",
        expected="measured",
        form="all",
        judge=judge_every,
        controls=NARROW,
        rivals=EXACT,
        found=FOUND,
    ),
    STUDY.claim(
        id="orth.trained_rotary",
        statement=r"How orthogonal embeddings and what MLPs write stay in a pre-norm network with rotary positions, like Pythia's, "
        r"along training on a text: the largest mean |cos| of each group of vectors, over that of random directions.",
        quick=jd.grid(Watched, network="rotary", width=64, vectors=64),
        paper=jd.grid(Watched, network="rotary", width=WIDTHS, vectors=64, steps=600, every=100),
        expected="measured",
        form="all",
        judge=judge_every,
        controls=NARROW,
        rivals=EXACT,
        found=FOUND_ROTARY,
    ),
    STUDY.claim(
        id="joma.ortho",
        statement=r"At its random start the embeddings $U$ and output projections of JoMA's encoder have, on average over seeds, "
        r"the mean |cos| of random directions within 3%, and unit columns with $\|\hat U^\top\hat U - I\|_F^2 = n(n-1)/d$ within "
        r"6%; in 100 steps of training on a text the embeddings stay below 1.2 times that mean |cos|.",
        quick=jd.grid(Watched, width=64, **SHORT),
        paper=jd.grid(Watched, width=WIDTHS, **SHORT),
        seeds=16,
        paper_seeds=32,
        bounds=jd.looked(at="0:16", confirmed="31000000:31000016"),
        form="all",
        judge=judge_start,
        controls={"embeddings of half the rank": narrowed(1)} | NARROW,
        rivals={"exactly orthogonal": jd.swap(predicted_cosine=1e-6, predicted_gram=0.0)},
    ),
)
