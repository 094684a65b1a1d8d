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
from jaxdyn.stats import wilson
from jaxdyn.text import pretraining
from jaxdyn.theories.assort import model
from jaxdyn.theories.assort.coder import Coding, fitted, problems, recode, restored

__all__ = [
    "Assorted",
    "CLAIMS",
    "KINDS",
    "LABELS",
    "PAPER",
    "generate",
    "judge_order",
    "judge_used",
    "right",
    "score",
    "sequences",
    "trial",
]


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

    def decoder(self) -> nn.Decoder:
        """The decoder, with the codes in its vocabulary."""
        f = self.forest()
        return nn.Decoder(
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
    net = nn.decoder(s.decoder())
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
CODED = ("all", "curriculum", "random", "permuted")
OTHERS = ("text", "all", "curriculum", "permuted")
CHANCE, LEAST = 0.65, 0.9  # marks: a coin is below the one, what learned the task above the other
RESTORED = 0.9  # tokens that codes restore: below it codes do not say what the text says
AHEAD = 0.04  # of right solutions; in print random m is ahead by 4.5 to 22.9 points
LEVEL = 0.95


def right(ds: xr.Dataset, kind: str, level: float = LEVEL) -> tuple[float, tuple[float, float]]:
    """Share of right solutions of one kind in all problems of all runs at the end, with Wilson's interval."""
    one = ds.measured_accuracy.isel(step=-1).sel(kind=kind)
    asked = ds.asked.max()
    hits, count = int(np.round(float((one * asked).sum()))), int(one.count() * asked)
    return hits / count, wilson(hits, count, level)


def learned(ds: xr.Dataset) -> list[jd.Check]:
    """Gates: with the trace as text the task is learned, and codes say what the text says."""
    return [
        jd.gate("right solutions with the trace as text, in all runs", right(ds, "text")[0], at_least=LEAST),
        jd.gate("tokens restored from codes, in all runs", float(ds.restored.mean()), at_least=RESTORED),
    ]


def judge_order(ds: xr.Dataset) -> list[jd.Check]:
    """Right solutions by kind at the end, and random m minus each other kind, at the end and on average along training.

    All are means over runs. In print, random m is ahead of all three kinds that have no codes, codes throughout, or a curriculum.
    """
    jd.need(ds, kind=KINDS)
    end = ds.measured_accuracy.isel(step=-1)
    along = ds.measured_accuracy.isel(step=slice(1, None)).mean("step")
    shares = []
    for kind in ("solution", *CODED):
        bound = {"high": CHANCE} if kind == "solution" else {"low": CHANCE}
        shares.append(jd.mean_within(f"right solutions, {LABELS[kind]}", end.sel(kind=kind), over="seed", level=LEVEL, **bound))

    def ahead(values: xr.DataArray, when: str, kind: str) -> jd.Check:
        name = f"{when}, random m minus {LABELS[kind]}"
        return jd.mean_within(name, values.sel(kind="random") - values.sel(kind=kind), over="seed", low=AHEAD, level=LEVEL)

    differences = [ahead(x, when, k) for x, when in ((end, "at the end"), (along, "along training")) for k in OTHERS]
    return [*learned(ds), *shares, *differences]


def judge_used(ds: xr.Dataset) -> list[jd.Check]:
    """Codes that networks write, of those of a whole trace, and tokens until the end of the solution, on average over runs."""
    jd.need(ds, kind=KINDS)
    end = ds.isel(step=-1)
    used, length = end.measured_used, end.measured_length
    share = used.sel(kind="random") / used.sel(kind="all").mean()
    shorter = length.sel(kind="text") - length.sel(kind="random")
    return [
        *learned(ds),
        jd.mean_within("codes, random m, of those of all the trace", share, over="seed", low=0.1, high=0.95, level=LEVEL),
        jd.mean_within("codes, random m, codes permuted", used.sel(kind="permuted"), over="seed", high=0.1, level=LEVEL),
        jd.mean_within("tokens that codes save", shorter, over="seed", low=0.1, level=LEVEL),
    ]


# Nothing moves.
STILL = jd.initial("step", "measured_accuracy")


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
    plot=plot,
    caption="Right solutions (with Wilson's 95% interval of all problems), tokens until the end of the solution, and codes among "
    "them, by kind of sequences: one point per run.",
)
SETUP = (
    "decoders of two layers and width 32, trained from scratch for 1200 steps of Adam on searches in chains of 6 names (traces of "
    "16 tokens in sentences of 8, for each of which a code of a trained autoencoder stands)"
)

CLAIMS = (
    STUDY.claim(
        id="assort.order",
        statement="Which way to replace tokens of a trace by codes serves training best? The paper has random $m$ above a "
        f"curriculum, above replacing all of the trace, and above text. In {SETUP}, where codes restore at least 90% of the tokens "
        "and networks learn the task from text (gates), that order is not seen. In three sets of three starts, all replaced "
        "solves every new problem, text 96% to 100%, the curriculum 87% to 95%, random $m$ 74% to 87%, random $m$ with permuted "
        "codes 48% to 64%, and the solution alone 47% to 51%, where a coin has 50%. On average along training random $m$ is "
        "behind all replaced by 24 to 35 points, clearly so in two of the sets; the intervals of all other differences from "
        "text, all replaced and the curriculum contain 0, but that from text in one set. In the study, with chains of 10 names, "
        "traces of 32 tokens and 4000 steps, three starts reach 98%, 94%, 92%, 73%, 54% and 51% in the same order, and the "
        "intervals of these differences contain 0. (In a fourth set of quick runs one network of three did not learn from text: "
        "the gate is not met there.)",
        expected="measured",
        judge=judge_order,
        controls={"text and solution alone exchanged": kinds_as("measured_accuracy", text="solution", solution="text")},
        rivals={
            "nothing is learned": STILL,
            "all kinds are as right as with text": kinds_as("measured_accuracy", **dict.fromkeys(KINDS, "text")),
            "the paper's order, at its sharpest": kinds_as("measured_accuracy", random="text", all=0.5, curriculum=0.5),
        },
        found={  # means of three sets of three seeds, with room for others
            "right solutions, solution alone": (0.43, 0.57),
            "right solutions, all replaced": (0.97, 1.0),
            "right solutions, curriculum": (0.8, 1.0),
            "right solutions, random m": (0.65, 0.95),
            "right solutions, random m, codes permuted": (0.4, 0.75),
            "at the end, random m minus trace as text": (-0.35, 0.0),
            "at the end, random m minus all replaced": (-0.35, -0.05),
            "at the end, random m minus curriculum": (-0.3, 0.05),
            "at the end, random m minus random m, codes permuted": (0.05, 0.5),
            "along training, random m minus trace as text": (-0.45, -0.05),
            "along training, random m minus all replaced": (-0.45, -0.15),
            "along training, random m minus curriculum": (-0.25, 0.1),
            "along training, random m minus random m, codes permuted": (0.05, 0.35),
        },
    ),
    STUDY.claim(
        id="assort.used",
        statement="Does a network that was trained with a random number of codes write codes when it is free to? With codes of a "
        "trained autoencoder it writes 65% to 69% of those of a whole trace (means of three sets of three starts), and needs 7.1 "
        "to 7.6 tokens less than with the trace as text; with codes renamed at random in each example it writes none: it closes "
        f"the codes at once and writes text. (In {SETUP}; $m$ is 0, 8 or 16 in training.)",
        expected="measured",
        judge=judge_used,
        controls={"kinds exchanged": jd.rolled(measured_used="kind", measured_length="kind")},
        rivals={
            "no code is written": kinds_as("measured_used", random=0.0),
            "all of the trace is written in codes": kinds_as("measured_used", random="all", permuted="all"),
            "all sequences are as long": jd.swap(measured_length=13.0),
        },
        found={  # means of three sets of three seeds, with room for others
            "codes, random m, of those of all the trace": (0.55, 0.8),
            "codes, random m, codes permuted": (0.0, 0.05),
            "tokens that codes save": (6, 9),
        },
    ),
)
