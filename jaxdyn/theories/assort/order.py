"""Decoders trained with codes for a part of the trace: how often they are right, and whether they write codes at all.

A small decoder is trained from scratch; codes of a trained autoencoder replace the first tokens of traces.

A run trains the autoencoder on chunks of traces, then the decoder on sequences of one kind, with codes of the trained encoder,
and lets it continue greedily after the prompts of problems that were not trained on. Kinds of sequences:

- "solution": the solution alone, no trace;
- "text": the trace as text, without delimiters;
- "all": all of the trace is replaced;
- "curriculum": m grows from 0 to all of the trace in equal stages, the last of which begins after ``ramp`` of the steps;
- "random": m is sampled for each example, one of 0, r, 2r, ... up to all of the trace;
- "permuted": as "random", with codes renamed at random in each example, so that they say nothing.

Source: arXiv:2502.03275, sections 3 and 4. Departure: sizes, tasks and the autoencoder are small; networks start from scratch.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import nn, plotting, train
from jaxdyn.nn import vq
from jaxdyn.stats import mean_interval
from jaxdyn.text import pretraining
from jaxdyn.theories.assort import model
from jaxdyn.theories.assort.model import Coding, fitted, problems, recode, restored
from jaxdyn.theories.assort.published import REPLACED

KINDS = ("solution", "text", "all", "curriculum", "random", "permuted")


@jd.setting
class Assorted(Coding):
    """A kind of sequences, the decoder, and its training.

    Args:
        kind: of the sequences, one of KINDS.
        lr: peak of the decoder's rate.
        ramp: share of the steps before the curriculum's last stage.
        width, layers, heads, hidden, std: of the decoder.
        batch, steps: of its training.
        samples: how often it generates along it.
        held_out: problems that it is asked.
    """

    kind: jd.Code = jd.code(*KINDS)
    lr: jd.Swept = jd.field(5e-3, above=0)
    ramp: jd.Swept = jd.field(0.6, at_least=0, below=1)
    width: int = 32
    layers: int = 2
    heads: int = 2
    hidden: int = 64
    batch: int = jd.field(12, at_least=1)
    steps: int = 1000
    samples: int = jd.field(1, at_least=1)
    held_out: int = jd.field(128, at_least=1)
    std: float = 0.2

    def __post_init__(self) -> None:
        Coding.__post_init__(self)
        whole = self.steps >= 10 and self.steps % self.samples == 0
        jd.require(self, whole, "steps is at least 10 and a multiple of samples", "steps", "samples")
        self.decoder()

    def decoder(self) -> nn.Transformer:
        """The decoder, with the codes in its vocabulary."""
        f = self.forest()
        return nn.Transformer(
            vocabulary=f.text + self.codes,
            width=self.width,
            layers=self.layers,
            heads=self.heads,
            hidden=self.hidden,
            position="learned",
            length=model.longest(f),
            std=self.std,
            dtype=self.dtype,
        )


def sequences(s: Assorted, coder: vq.Params, i: Int[Array, ""], key: PRNGKeyArray) -> model.Sequence:
    """The batch of step i."""
    f, most = s.forest(), s.forest().trace // s.rate
    k_draw, k_m, k_code = jax.random.split(key, 3)
    some = problems(s, k_draw, s.batch)
    codes = recode(s, coder, some.trace)
    renamed = jax.vmap(lambda k, z: jax.random.permutation(k, s.codes).astype(jnp.int32)[z])(
        jax.random.split(k_code, s.batch), codes
    )
    codes = jnp.where(s.kind == "permuted", renamed, codes)
    stage = jnp.floor(i.astype(s.dtype) / (s.ramp * s.steps) * most)
    sampled = jax.random.randint(k_m, (s.batch,), 0, most + 1, jnp.int32)
    full = jnp.full(s.batch, most, jnp.int32)
    grown = jnp.minimum(full, stage.astype(jnp.int32))
    k = jnp.where(s.kind == "all", full, jnp.where(s.kind == "curriculum", grown, sampled))
    delimited, kept = s.kind != "text", s.kind != "solution"

    def one(prompt: Array, trace: Array, z: Array, target: Array, k: Array) -> model.Sequence:
        row, length = model.middle(f, trace, z, s.rate * k, s.rate, delimited, kept)
        return model.whole(f, prompt, row, length, target)

    return jax.vmap(one)(some.prompt, some.trace, codes, some.target, k)


def generate(s: Assorted, net: nn.Network, params: PyTree, prompt: Int[Array, "b p"]) -> Int[Array, "b T"]:
    """What the decoder says greedily after prompts."""
    size, total = prompt.shape[1], model.longest(s.forest())
    start = jnp.pad(prompt, ((0, 0), (0, total - size)), constant_values=s.forest().special("none"))

    def step(tokens: Int[Array, "b T"], at: Int[Array, ""]) -> tuple[Int[Array, "b T"], None]:
        x = net.trunk(params, tokens)
        logits = x[:, at - 1] @ params["head"].T
        return tokens.at[:, at].set(jnp.argmax(logits, -1).astype(jnp.int32)), None

    return jax.lax.scan(step, start, jnp.arange(size, total, dtype=jnp.int32))[0]


def score(s: Assorted, tokens: Int[Array, "b T"], target: Int[Array, " b"]) -> dict[str, Float[Array, ""]]:
    """Share of right solutions, tokens until the end of the solution, and codes among them."""
    f = s.forest()
    said = tokens[:, f.prompt :]
    at = jnp.argmax(said == f.special("answer"), 1)
    answer = jnp.take_along_axis(said, jnp.minimum(at + 1, said.shape[1] - 1)[:, None], 1)[:, 0]
    ended = said == f.special("end")
    length = jnp.where(jnp.any(ended, 1), jnp.argmax(ended, 1) + 1, said.shape[1])
    before = jnp.arange(said.shape[1]) < length[:, None]
    right = jnp.any(said == f.special("answer"), 1) & (answer == target)
    wide = jnp.dtype(s.dtype)
    return {
        "accuracy": jnp.mean(right.astype(wide)),
        "length": jnp.mean(length.astype(wide)),
        "used": jnp.mean(jnp.sum((said >= f.text) & before, 1).astype(wide)),
    }


def trial(s: Assorted, key: PRNGKeyArray) -> jd.Observables:
    """Train both networks, then generate.

    Eighteen runs take over 20 s: with far fewer steps the task is not learned, even with text alone.
    """
    # both networks
    k_code, k_init, k_data, k_held = jax.random.split(key, 4)
    coder = fitted(s, k_code)
    net = nn.network(s.decoder())
    shape = pretraining.schedule(s.steps)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(b2=0.98),
        optax.scale_by_schedule(lambda i: -s.lr * shape(i).astype(s.dtype)),
    )

    def loss(params: PyTree, batch: model.Sequence) -> Float[Array, ""]:
        table = jax.nn.log_softmax(net.apply(params, batch.tokens[:, :-1]))
        nats = -jnp.take_along_axis(table, batch.tokens[:, 1:, None], -1)[..., 0]
        due = batch.due[:, 1:].astype(nats.dtype)
        return jnp.sum(nats * due) / jnp.sum(due)

    # training of the decoder
    step = train.make_step(loss, tx, lambda i: sequences(s, coder, i, jax.random.fold_in(k_data, i)))
    held = problems(s, k_held, s.held_out)

    def observe(state: train.State) -> dict[str, Array]:
        return score(s, generate(s, net, state.params, held.prompt), held.target)

    every = s.steps // s.samples
    last, seen = train.record(step, train.init(tx, net.init(k_init)), observe, samples=s.samples, every=every)
    # what the codes restore
    codes = recode(s, coder, held.trace)
    return jd.observables(
        predicted={},
        measured={name: jd.named(value, "step") for name, value in seen.items()},
        recorded={
            "steps": jd.named(every * jnp.arange(s.samples + 1, dtype=jnp.float64), "step"),
            "asked": jnp.asarray(s.held_out, jnp.float64),
            "restored": jnp.mean(restored(s, coder, held.trace, held.prompt, codes).astype(s.dtype)),
            "perplexity": vq.perplexity(codes, s.codes, s.dtype),
        },
        status=train.finite_status(last.params),
    )


LABELS = {
    "solution": "solution alone",
    "text": "trace as text",
    "all": "all replaced",
    "curriculum": "curriculum",
    "random": "random m",
    "permuted": "random m, codes permuted",
}
OTHERS = ("text", "all", "curriculum", "permuted")
LEAST = 0.9  # mark: what learned the task lies above it
RESTORED = 0.9  # tokens that codes restore: below it codes do not say what the text says
SOLVED = 0.95  # of the problems
LEVEL = 0.95  # of each interval


def right(ds: xr.Dataset, kind: str, level: float = LEVEL) -> tuple[float, tuple[float, float]]:
    """Share of right solutions of one kind at the end, mean over runs, with Student's interval."""
    mean, low, high = mean_interval(ds.measured_accuracy.isel(step=-1).sel(kind=kind), "seed", level)
    return float(mean), (float(low), float(high))


def learned(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: with the trace as text the task is learned, and codes say what the text says."""
    return [
        jd.gate("right solutions with the trace as text, mean over runs", right(ds, "text")[0], at_least=LEAST),
        jd.gate("tokens restored from codes, mean over runs", float(ds.restored.mean()), at_least=RESTORED),
    ]


ALONE = ("solution", "curriculum", "random", "permuted")  # kinds that do not solve every problem
RIGHT, SURE = "right solutions, {}", "runs that solve at least 95%, {}"
END, ALONG = "at the end, random m minus {}", "along training, random m minus {}"


def judge_order(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Right solutions by kind at the end, and random m minus each other kind, at the end and on average along training.

    All are means over runs, or shares of runs. In print, random m is ahead of text, codes throughout, and a curriculum.
    """
    jd.need(ds, kind=KINDS)
    end = ds.measured_accuracy.isel(step=-1)
    along = ds.measured_accuracy.isel(step=slice(1, None)).mean("step")

    def mean(name: str, values: xr.DataArray) -> jd.Reading:
        return jd.mean_reading(name, values, over="seed", level=LEVEL)

    def sure(kind: str) -> jd.Reading:
        one = end.sel(kind=kind)
        return jd.share_reading(SURE.format(LABELS[kind]), (one >= SOLVED).where(one.notnull()), over="seed", level=LEVEL)

    return [
        *learned(ds),
        *(sure(kind) for kind in ("text", "all")),
        *(mean(RIGHT.format(LABELS[kind]), end.sel(kind=kind)) for kind in ALONE),
        *(
            mean(name.format(LABELS[kind]), x.sel(kind="random") - x.sel(kind=kind))
            for x, name in ((end, END), (along, ALONG))
            for kind in OTHERS
        ),
    ]


WRITTEN, EMPTY, SAVED = "codes written, random m", "runs that write codes, random m, codes permuted", "tokens that codes save"


def judge_used(ds: xr.Dataset) -> list[jd.Check | jd.Reading]:
    """Codes that networks write, and tokens until the end of the solution: means over runs, and a share of runs."""
    jd.need(ds, kind=KINDS)
    end = ds.isel(step=-1)
    used, length = end.measured_used, end.measured_length
    other = used.sel(kind="permuted")
    return [
        *learned(ds),
        jd.mean_reading(WRITTEN, used.sel(kind="random"), over="seed", level=LEVEL),
        jd.share_reading(EMPTY, (other >= SOME).where(other.notnull()), over="seed", level=LEVEL),
        jd.mean_reading(SAVED, length.sel(kind="text") - length.sel(kind="random"), over="seed", level=LEVEL),
    ]


SOME = 0.1  # codes per problem
COIN = {SURE.format(LABELS[k]): 0.0 for k in ("text", "all")} | {RIGHT.format(LABELS[k]): 0.5 for k in ALONE}
# What random m is ahead in print (mathematics; published.REPLACED).
PRINTED = {END.format(LABELS[k]): (REPLACED["random"] - REPLACED[k]) / 100 for k in ("text", "all", "curriculum")}


def kinds_as(name: str, **given: str | float) -> Callable[[xr.Dataset], xr.Dataset]:
    """A rival or control in which some kinds have of ``name`` what others have, or a number."""

    def changed(ds: xr.Dataset) -> xr.Dataset:
        values = ds[name].copy(deep=True)
        for kind, other in given.items():
            values.loc[{"kind": kind}] = ds[name].sel(kind=other) if isinstance(other, str) else other
        return ds.assign({name: values})

    return changed


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Right solutions, tokens and codes by kind."""
    axes = fig.subplots(1, 3)
    end = ds.isel(step=-1)
    kinds = [k for k in KINDS if k in ds.kind.values]
    names = ("measured_accuracy", "measured_length", "measured_used")
    for ax, name, label in zip(axes, names, ("right solutions", "tokens", "codes"), strict=True):
        for i, kind in enumerate(kinds):
            values = end[name].sel(kind=kind).values.ravel()
            ax.plot(values, np.full(values.size, i), "o", ms=4, color=plotting.COLORS["measured"])
            if name == "measured_accuracy":
                ax.plot(right(ds, kind)[1], [i, i], "-", color=plotting.COLORS["theory"])
        ax.set(xlabel=label, xlim=(0, None))
        ax.set_yticks(range(len(kinds)), [LABELS[k] if ax is axes[0] else "" for k in kinds])
        ax.invert_yaxis()


LOGS = {"sentences": True, "rate": 8, "beta": 1.0, "batch": 16, "held_out": 64}
QUICK = jd.grid(Assorted, kind=list(KINDS), height=2, codes=32, vq_batch=64, steps=1200, samples=2, **LOGS)
PAPER = jd.grid(Assorted, kind=list(KINDS), height=4, codes=128, vq_steps=500.0, steps=4000, samples=4, **LOGS)
STUDY = jd.Study(
    trial=trial,
    quick=QUICK,
    paper=PAPER,
    seeds=3,
    paper_seeds=3,
    evidence="network",
    source="arXiv:2502.03275, sections 3.2 and 4, and its ablation of replacement; task and sizes ours",
    tested="Decoders of {layers} layers and width {width}, trained from scratch for {steps} steps of Adam on searches in two "
    "chains of {height} edges, whose logs (traces) are written in sentences of {rate} tokens; a code of a trained autoencoder "
    "stands for each sentence. Sequences: {kind}. {held_out} new problems are asked; {seeds} seeds.",
    plot=plot,
    caption="Right solutions (with the 95% interval of the mean over runs), tokens until the end of the solution, and codes "
    "among them, by kind of sequences: one point per run.",
)

CLAIMS = (
    STUDY.claim(
        id="assort.order",
        title="Which way to replace text by codes trains best?",
        statement="How many problems does a network solve that was trained with a random number $m$ of trace tokens replaced "
        "by codes, and how many more or fewer are these than with the trace as text, with all of it replaced, with a "
        "curriculum in which $m$ grows, or with codes renamed at random in each example?",
        talks=("practical:assort-better",),
        expected="measured",
        recorded={
            "runs that solve at least 95%, trace as text": (0.609, 1, 1),
            "runs that solve at least 95%, all replaced": (0.436, 0.8333, 0.97),
            "right solutions, solution alone": (0.441, 0.487, 0.533),
            "right solutions, curriculum": (0.76, 0.9089, 1.06),
            "right solutions, random m": (0.55, 0.7188, 0.887),
            "right solutions, random m, codes permuted": (0.405, 0.5182, 0.631),
            "at the end, random m minus trace as text": (-0.439, -0.276, -0.113),
            "at the end, random m minus all replaced": (-0.431, -0.2708, -0.111),
            "at the end, random m minus curriculum": (-0.333, -0.1901, -0.0481),
            "at the end, random m minus random m, codes permuted": (-0.0164, 0.2005, 0.418),
            "along training, random m minus trace as text": (-0.405, -0.3047, -0.204),
            "along training, random m minus all replaced": (-0.427, -0.3177, -0.208),
            "along training, random m minus curriculum": (-0.293, -0.151, -0.00973),
            "along training, random m minus random m, codes permuted": (-0.0179, 0.1458, 0.31),
        },
        recorded_seeds=6,
        judge=judge_order,
        controls={"text and solution alone exchanged": kinds_as("measured_accuracy", text="solution", solution="text")},
        rivals={
            "nothing is learned: a coin": jd.off(COIN),
            "random m is ahead by as much as in print": PRINTED,
        },
    ),
    STUDY.claim(
        id="assort.used",
        title="How many codes does a network write if trained with a random number?",
        statement="How many codes does a network that was trained with a random number of codes write when it is free to, "
        "how many tokens does it save compared with the trace as text, and does it write any if the codes were renamed at "
        "random in each example?",
        talks=("practical:assort-shorter",),
        expected="measured",
        recorded={
            "codes written, random m": (0.433, 1.375, 2.32),
            "runs that write codes, random m, codes permuted": (0, 0, 0.562),
            "tokens that codes save": (1.03, 7.625, 14.3),
        },
        judge=judge_used,
        controls={
            "kinds exchanged": jd.Control(jd.rolled(measured_used="kind", measured_length="kind"), breaks="renamed at random")
        },
        rivals={
            "no code is written": jd.off({WRITTEN: 0.0, SAVED: 0.0}),
            "codes that say nothing are written, too": {EMPTY: 1.0},
        },
    ),
)
