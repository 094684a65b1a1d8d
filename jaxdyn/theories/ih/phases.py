r"""How a network of two layers learns Markov chains in context: first counts of tokens, then pairs, by an induction head.

The network is trained on sequences of chains sampled anew at every step. Observed on other sequences, after every ``every``
steps: the cross-entropy of the next token; the divergence of the network's predictions from those by counts of tokens, by
counts of pairs, and from the uniform one, :math:`D(q) = \mathrm{mean}\sum_j m_j \ln(m_j/q_j)`; the weight of the first layer on
the token before the query's; and of the second layer on tokens that come right after one equal to the query's, at queries that have
such a one. Means are over queries from position ``FIRST`` on.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.data import chains
from jaxdyn.theories.ih import model

FIRST = 8
HELD_OUT = 64  # sequences
MEASURED = ("from_unigram", "from_bigram", "loss", "before", "induced")
LEAST = "least divergence from counts of tokens, over that at the end"
LOWER = "its logarithm, minus that of the divergence from uniform then"
LEFT = "share of the gap between both predictors that is left"
BEFORE = "weight of the first layer on the token before"
INDUCED = "weight of the second on tokens after equal ones"


@jd.setting
class Phases:
    """A network and its training.

    Args:
        chain: rows from the Dirichlet law, or scaled until the stationary law is uniform.
        lr: of Adam.
        first: share of the first layer's output that is written; 0 leaves a network of one layer.
        tokens, length, width, batch, every, samples, dtype: sizes.
    """

    chain: jd.Code = jd.code("dirichlet", "doubly_stochastic")
    lr: jd.Swept = jd.field(0.03, above=0)
    first: jd.Swept = 1.0
    tokens: int = jd.field(3, at_least=2)
    length: int = jd.field(64, above=FIRST)
    width: int = jd.field(16, at_least=1)
    batch: int = jd.field(16, at_least=1)
    every: int = jd.field(10, at_least=1)
    samples: int = jd.field(60, at_least=1)
    dtype: str = "float32"


def sample_rows(s: Phases, key: PRNGKeyArray, count: int) -> Int[Array, "b T1"]:
    """Sequences one token longer than the context."""

    def one(key: PRNGKeyArray) -> Int[Array, " T1"]:
        k_matrix, k_tokens = jax.random.split(key)
        matrix = chains.transitions(k_matrix, s.tokens, s.dtype)
        matrix = jnp.where(s.chain == "dirichlet", matrix, chains.doubly_stochastic(matrix))
        return chains.sample(k_tokens, matrix, s.length + 1)

    return jax.vmap(one)(jax.random.split(key, count))


def entropies(logits: Float[Array, "b T k"], following: Int[Array, "b T"]) -> Float[Array, "b T"]:
    """Cross-entropy of every next token."""
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), following[..., None], -1)[..., 0]


def observe(s: Phases, params: model.Params, rows: Int[Array, "b T1"]) -> dict[str, Array]:
    """Losses, divergences and attention."""
    tokens, late = rows[:, :-1], slice(FIRST, None)
    logits, weights = model.forward(params, tokens, s.first)
    log = jax.nn.log_softmax(logits)[:, late]

    def divergence(q: Float[Array, "b T k"]) -> Array:
        return jnp.mean(jnp.sum(jnp.exp(log) * (log - jnp.log(q[:, late])), -1))

    counts = {
        "unigram": jax.vmap(lambda r: chains.unigram(r, s.tokens, s.dtype))(tokens),
        "bigram": jax.vmap(lambda r: chains.bigram(r, s.tokens, s.dtype))(tokens),
        "uniform": jnp.full((*tokens.shape, s.tokens), 1 / s.tokens, s.dtype),
    }
    place = jnp.arange(s.length)
    follows = jax.vmap(chains.followers)(tokens)[:, late]
    some = jnp.any(follows, -1)
    looked = jnp.sum(jnp.where(follows, weights[1][:, late], 0), -1)
    return {
        "loss": jnp.mean(entropies(logits, rows[:, 1:])[:, late]),
        **{f"from_{name}": divergence(q) for name, q in counts.items()},
        "before": jnp.mean(weights[0][:, place[late], place[late] - 1]),
        "induced": jnp.sum(jnp.where(some, looked, 0)) / jnp.sum(some).astype(s.dtype),
        "chance": jnp.sum(jnp.where(some, jnp.mean(follows, -1, dtype=s.dtype), 0)) / jnp.sum(some).astype(s.dtype),
    }


def floors(s: Phases, rows: Int[Array, "b T1"]) -> dict[str, Array]:
    """Cross-entropies of the predictors by counts, on the sequences of :func:`observe`."""
    late = slice(FIRST, None)

    def loss(predict: Callable[..., Array]) -> Array:
        q = jax.vmap(lambda r: predict(r, s.tokens, s.dtype))(rows[:, :-1])
        return jnp.mean(entropies(jnp.log(q), rows[:, 1:])[:, late])

    return {"unigram_loss": loss(chains.unigram), "bigram_loss": loss(chains.bigram)}


def trial(s: Phases, key: PRNGKeyArray) -> jd.Observables:
    """Training from scratch, and what is observed along it."""
    k_init, k_data, k_rows = jax.random.split(key, 3)
    # sequences that are not trained on
    rows = sample_rows(s, k_rows, HELD_OUT)

    def loss(params: model.Params, rows: Int[Array, "b T1"]) -> Float[Array, ""]:
        return jnp.mean(entropies(model.forward(params, rows[:, :-1], s.first)[0], rows[:, 1:]))

    # training, on all its sequences sampled beforehand
    tx = optax.adam(s.lr)
    drawn = jax.vmap(lambda i: sample_rows(s, jax.random.fold_in(k_data, i), s.batch))(jnp.arange(s.every * s.samples))
    step = train.make_step(loss, tx, lambda i: drawn[i])
    start = train.init(tx, model.init(k_init, s.tokens, s.length, s.width, s.dtype))
    last, curves = train.record(step, start, lambda t: observe(s, t.params, rows), samples=s.samples, every=s.every)
    # the attention of the trained network on one sequence
    shown = model.forward(last.params, rows[:1, :-1], s.first)[1][:, 0]
    return jd.observables(
        predicted={},
        measured={name: jd.named(curves[name], "step") for name in MEASURED},
        recorded={name: jd.named(curve, "step") for name, curve in curves.items() if name not in MEASURED}
        | floors(s, rows)
        | {
            "pattern": jd.named(shown, "layer query key"),
            "text": jd.named(rows[0, :-1].astype(s.dtype), "query"),
            "steps": jd.named((s.every * jnp.arange(s.samples + 1)).astype(s.dtype), "step"),
        },
        status=train.finite_status(last.params),
    )


LAST = slice(-8, None)  # records whose mean is the end


def end(ds: xr.Dataset, name: str) -> xr.DataArray:
    """The mean of the last records."""
    mean: xr.DataArray = ds[name].isel(step=LAST).mean("step", skipna=False)
    return mean


def closest(ds: xr.Dataset, name: str) -> stats.Labelled:
    """A curve at the record at which the network's predictions are closest to those by counts of tokens."""
    at = ds.measured_from_unigram.fillna(1e9).argmin("step")
    value: xr.DataArray = ds[name].isel(step=at)
    return value


def excess(ds: xr.Dataset) -> xr.DataArray:
    """Loss at the end above that by counts of pairs, over the gap between both predictors."""
    share: xr.DataArray = (end(ds, "measured_loss") - ds.bigram_loss) / (ds.unigram_loss - ds.bigram_loss)
    return share


def at_start(ds: xr.Dataset) -> float:
    """The same before training, mean over runs."""
    return float(((ds.measured_loss.isel(step=0) - ds.bigram_loss) / (ds.unigram_loss - ds.bigram_loss)).mean())


def lower(ds: xr.Dataset) -> xr.DataArray:
    """How far predictions are from counts of tokens when they are closest, over how far from uniform then; in logarithms."""
    ratio: xr.DataArray = np.log(closest(ds, "measured_from_unigram") / closest(ds, "from_uniform"))
    return ratio


def judge_phases(ds: xr.Dataset) -> list[jd.Check]:
    """The way to counts of tokens and away from them, and the loss at the end."""
    least = closest(ds, "measured_from_unigram") / end(ds, "measured_from_unigram")
    return [
        jd.mean_within(LEAST, least, over="seed", high=0.5),
        jd.mean_within(LOWER, lower(ds), over="seed", high=0.0),
        jd.mean_within(LEFT, excess(ds), over="seed", high=0.5),
    ]


def judge_excess(ds: xr.Dataset) -> list[jd.Reading]:
    """The loss at the end."""
    return [jd.mean_reading(LEFT, excess(ds), over="seed")]


def judge_circuit(ds: xr.Dataset) -> list[jd.Check]:
    """Where both layers look at the end."""
    return [
        jd.mean_within(BEFORE, end(ds, "measured_before"), over="seed", low=0.5),
        jd.mean_within(INDUCED, end(ds, "measured_induced"), over="seed", low=0.7),
    ]


# Networks that stay as they start: every curve keeps its first value.
STILL = jd.initial("step", *(f"measured_{name}" for name in MEASURED), "from_uniform")


def untrained(measure: Callable[[xr.Dataset], xr.DataArray]) -> Callable[[xr.Dataset], float]:
    """The mean over runs of a measure of networks that stay as they start."""
    return lambda ds: float(measure(STILL(ds)).mean())


# What the checks find if nothing moves.
STILL_PHASES = {LEAST: 1.0, LOWER: untrained(lower), LEFT: untrained(excess)}
STILL_CIRCUIT = {
    BEFORE: untrained(lambda ds: end(ds, "measured_before")),
    INDUCED: untrained(lambda ds: end(ds, "measured_induced")),
}


def plot_phases(ds: xr.Dataset, fig: Figure) -> None:
    """Loss over those of both predictors, and the divergences, along training."""
    left, right = fig.subplots(1, 2)
    steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0] + 1
    plotting.band(left, steps, ds.measured_loss.transpose(..., "step"), "network", "measured")
    for name, label, color in (("unigram_loss", "counts of tokens", "third"), ("bigram_loss", "counts of pairs", "theory")):
        left.axhline(float(ds[name].mean()), linestyle="--", color=plotting.COLORS[color], label=label)
    for name, label, color in (
        ("from_uniform", "uniform", "control"),
        ("measured_from_unigram", "counts of tokens", "third"),
        ("measured_from_bigram", "counts of pairs", "theory"),
    ):
        plotting.band(right, steps, ds[name].transpose(..., "step"), label, color)
    left.set(xlabel="step + 1", ylabel="loss", xscale="log")
    right.set(xlabel="step + 1", ylabel="divergence of the network from", xscale="log", yscale="log")


def plot_circuit(ds: xr.Dataset, fig: Figure) -> None:
    """Weights of both layers along training."""
    ax = fig.subplots()
    steps = ds.steps.values.reshape(-1, ds.sizes["step"])[0]
    plotting.band(ax, steps, ds.measured_before.transpose(..., "step"), "layer 1: the token before", "measured")
    plotting.band(ax, steps, ds.measured_induced.transpose(..., "step"), "layer 2: tokens after equal ones", "third")
    plotting.band(ax, steps, ds.chance.transpose(..., "step"), "their share of all tokens", "control")
    ax.set(xlabel="step", ylabel="attention weight")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Phases),
    paper=jd.grid(Phases, lr=3e-3, length=100, batch=64, every=50, samples=120),
    seeds=16,
    paper_seeds=16,
    evidence="network",
    source="arXiv:2402.11004, sections 2 and 3; sizes, rate and bounds ours",
    tested="Two layers of attention with learned relative positions and nothing else, width {width}; Adam at rate {lr} for "
    "{samples} times {every} steps, each on {batch} new sequences of {length} tokens of chains with {tokens} states and rows "
    "uniform on the simplex. Observed on 64 other sequences, from position 8 on; the end is the mean of the last 8 records; "
    "{seeds} seeds.",
    plot=plot_phases,
    caption="Left: loss on held-out sequences along training, and those of both predictors (dashed: mean over runs). Right: "
    "divergence of the network's predictions from three predictors. Median and central 90% of the runs.",
)
ONE_LAYER = {"no first layer": {"first": 0.0}}
CLAIMS = (
    STUDY.claim(
        id="ih.phases",
        title="A two-layer network passes counts of tokens before counts of pairs",
        statement="A two-layer attention network of width 16 that learns by Adam to predict Markov chains of three states in "
        "context, a new chain in every sequence, its rows uniform on the simplex, comes close to the predictor by counts of "
        "tokens, and then leaves it: on average over runs the least divergence from it on the way is below half of that at the "
        "end, and at that moment the network is closer to it than to the uniform prediction (geometric mean). After 600 steps at "
        "rate .03 it has won, on average, more than half of the gap between the losses by counts of tokens and by counts of "
        "pairs.",
        max_seeds=64,
        bounds=jd.tuned(on="56000000:56000016", confirmed_on="56000016:56000032"),
        judge=judge_phases,
        rivals={"nothing moves": jd.off(STILL_PHASES)},
        controls={**ONE_LAYER, "chains with a uniform stationary law": {"chain": "doubly_stochastic"}},
    ),
    STUDY.claim(
        id="ih.circuit",
        title="Both halves of an induction head form in a two-layer network",
        statement="After 600 steps by Adam at rate .03 on sequences of Markov chains of three states, a new chain in every "
        "sequence, its rows uniform on the simplex, the first layer of a two-layer attention network of width 16 puts, on "
        "average over runs, more than half of its attention on the token before the query's, and the second more than .7 of its "
        "own on tokens that come right after one equal to the query's.",
        max_seeds=64,  # one run in 16 forms no induction head
        bounds=jd.tuned(on="56000000:56000016", confirmed_on="56000016:56000032"),
        judge=judge_circuit,
        rivals={"nothing moves: attention as at the start": jd.off(STILL_CIRCUIT)},
        controls=ONE_LAYER,
        plot=plot_circuit,
        caption="Weights of the first layer on the token before, and of the second layer on tokens that come right after one "
        "equal to the query's, along training: median and central 90% of the runs.",
    ),
    STUDY.claim(
        id="ih.excess",
        title="How far a small network stays behind counts of pairs",
        statement="Which share of the gap between the losses by counts of tokens and by counts of pairs is left, on average "
        "over runs, when a two-layer attention network of width 16 has learned by Adam for 600 steps to predict Markov chains "
        "of three states in context?",
        expected="measured",
        judge=judge_excess,
        controls=ONE_LAYER,
        rivals={
            "nothing is learned": jd.off({LEFT: at_start}),
            "no more than counts of tokens is learned": {LEFT: 1.0},
            "counts of pairs are reached": {LEFT: 0.0},
        },
        recorded={LEFT: (0.217, 0.3056, 0.395)},
        recorded_seeds=32,
    ),
)
