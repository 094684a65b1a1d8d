r"""The decoder's clock: frozen inputs without overlap, by gradient flow and by SGD on one sample per step.

The network's gradient flow is that of ``frozen_decoder.py``, the closed forms are those of ``dynamics/clock.py``. Letters as in
``model.py`` and ``dynamics/gradient.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.theories.snap import model, tasks
from jaxdyn.theories.snap.dynamics import clock as theory
from jaxdyn.theories.snap.gradient import frozen_decoder
from jaxdyn.theories.snap.gradient.frozen_decoder import BREACHES, FROZEN, FROZEN_PAPER, TESTED, advantages

HIT = 0.02  # by how much the mean probability of the next token may differ from its law
MISS = 0.04  # by how much 1 - that probability, over its law, may differ from 1 in the later half of training


@jd.setting
class OneSample:
    """The classes of ``Frozen``, but the decoder trains on one random class per step."""

    eta: jd.Swept = 0.5  # rate of Y, the decoder
    common: jd.Swept = jd.field(0.0, at_least=0, below=1)  # share of the common token in every context
    skew: jd.Swept = 0.0  # frequencies of the classes proportional to 1 + skew n
    tokens: int = 32  # M, tokens of the vocabulary
    classes: int = 4  # K, next tokens, each with a law of the context
    distinct: int = 3  # D, tokens that one class alone shows
    steps: int = jd.field(120, at_least=1)  # steps of SGD, on one sample each
    samples: int = 8  # records after the start
    weights: tuple[float, ...] | None = None  # of the distinct tokens of every class; none: random

    def __post_init__(self) -> None:
        """Refuse vocabularies that are too small, and records between steps."""
        tasks.check(self)
        jd.require(self, self.steps % self.samples == 0, f"steps is a multiple of samples={self.samples}", "steps")


def one_sample_trial(s: OneSample, key: PRNGKeyArray) -> jd.Observables:
    """SGD on one sample per step: the clocks of all rows given their visits, and the mean probability of the next token."""
    # the classes, and the class of every step
    k_task, k_data = jax.random.split(key)
    one = tasks.random_task(k_task, s.tokens, s.classes, s.distinct, s.common, s.skew, weights=s.weights)
    start, every = model.zeros(one), s.steps // s.samples
    edges = jnp.cumsum(one.weight)

    def sample_class(step: Int[Array, ""]) -> Int[Array, ""]:
        uniform = jax.random.uniform(jax.random.fold_in(k_data, step), (), jnp.float64)
        return jnp.minimum(jnp.searchsorted(edges, uniform, side="right"), s.classes - 1)

    # training of the decoder alone
    def loss(y: Array, n: Int[Array, ""]) -> Float[Array, ""]:
        weight = jax.nn.one_hot(n, s.classes, dtype=y.dtype)
        return model.loss(start._replace(y=y), one._replace(weight=weight))

    def observe(state: train.State) -> Float[Array, "K M"]:
        return model.logits(start._replace(y=state.params), one.p, jnp.asarray(one.query))

    step = train.make_step(loss, optax.sgd(s.eta), sample_class)
    logits = train.record(step, train.init(optax.sgd(s.eta), start.y), observe, samples=s.samples, every=every)[1]
    # the theory, from the visits of every row, and by gradient flow
    label, steps = jnp.asarray(one.label), [i * every for i in range(1, s.samples + 1)]
    visited = jax.nn.one_hot(jax.vmap(sample_class)(jnp.arange(s.steps)), s.classes, dtype=jnp.int32)
    visits = jnp.cumsum(visited, 0)[np.asarray(steps) - 1]
    size, classes = float(s.tokens), float(s.classes)
    u = theory.visits(s.steps, s.eta, size)
    probability = theory.hit(u, size)
    by_flow = theory.clock(size * s.eta * jnp.asarray(steps, jnp.float64) / classes, size)
    return jd.observables(
        predicted={
            "advantage": jd.named(u[visits], "step class"),
            "hit": jd.named(jax.vmap(theory.expected, (None, 0, None))(probability, jnp.asarray(steps, u.dtype), classes), "step"),
        },
        measured={
            "advantage": jd.named(jax.vmap(advantages, (0, None))(logits[1:], label), "step class"),
            "hit": jd.named(jnp.mean(jax.nn.softmax(logits[1:])[:, jnp.arange(s.classes), label], 1), "step"),
        },
        recorded={"flow_hit": jd.named(theory.hit(by_flow, size), "step"), "chance": jnp.asarray(1 / size, u.dtype)},
        coords={"step": steps},
    )


def judge_clock(ds: xr.Dataset) -> list[jd.Check]:
    """Every row of the trained decoder, its speed, and the probability of the next token, against the closed clock."""
    return [
        jd.at_most("rows of F^T Y against the clock, relative", jd.relative_error(ds, "rows", "class output"), 1e-8),
        jd.at_most("speed of every row's advantage, relative", jd.relative_error(ds, "speed"), 1e-8),
        jd.at_most("probability of the next token, relative error", jd.relative_error(ds, "hit"), 1e-8),
    ]


# The decoder does not learn, and every token stays as probable as any other.
UNTRAINED = jd.swap(predicted_rows=0.0, predicted_speed=0.0, predicted_hit=lambda ds: 1 / ds.sizes["output"])
# A decoder that never saturates: u = eta t / K.
UNSATURATED = jd.swap(
    predicted_rows=lambda ds: ds.predicted_rows * (ds.unit / ds.clock),
    predicted_speed=1.0,
    predicted_hit=lambda ds: 1 / (1 + (ds.sizes["output"] - 1) * np.exp(-ds.unit)),
)


def judge_one_sample(ds: xr.Dataset) -> list[jd.Check]:
    """The recursion given the visits exactly; the mean over the runs at every record, and what is left to learn late."""
    late = ds.isel(step=ds.step >= ds.step.max() / 2)
    left = (1 - late.measured_hit) / (1 - late.predicted_hit)
    miss = ds.measured_hit - ds.predicted_hit
    return [
        jd.at_most("clock of a row given its visits, relative error", jd.relative_error(ds, "advantage", "step class"), 1e-10),
        jd.mean_within("mean probability of the next token minus its law", miss, over="seed", low=-HIT, high=HIT),
        jd.mean_within("1 - mean probability / law, later half", left, over="seed", low=1 - MISS, high=1 + MISS),
    ]


CHANCE = jd.swap(predicted_advantage=0.0, predicted_hit="chance")  # steps change nothing


def plot_clock(ds: xr.Dataset, fig: Figure) -> None:
    """The clock, and the probability of the next token."""
    left, right = fig.subplots(1, 2)
    ds = ds.isel(eta=0) if "eta" in ds.dims else ds
    one, color = plotting.first_run(ds), plotting.COLORS
    plotting.band(
        left, one.unit.values, ds.advantage.transpose(..., "time"), "trained decoder", "measured", linestyle="none", marker="o"
    )
    left.plot(one.unit, one.clock, color=color["theory"], label=r"$(M-1)u + e^u - 1 = s$")
    left.set(xscale="log", xlabel=r"$\eta t/K$", ylabel="advantage u of the next token")
    right.plot(one.unit, one.measured_hit, "o", color=color["measured"], label="trained decoder")
    right.plot(one.unit, one.predicted_hit, color=color["theory"], label="softmax over M")
    right.plot(one.unit, one.narrow_hit, "--", color=color["control"], label="softmax over K")
    right.set(xscale="log", xlabel=r"$\eta t/K$", ylabel="probability of the next token")


def plot_one_sample(ds: xr.Dataset, fig: Figure) -> None:
    """Mean probability over runs with its interval, and by how much it and its expectation differ from the gradient flow."""
    left, right = fig.subplots(1, 2)
    for i, eta in enumerate(np.atleast_1d(ds.eta) if "eta" in ds.dims else [None]):
        one = ds if eta is None else ds.sel(eta=eta)
        by_flow, color = one.flow_hit.isel(seed=0), plotting.CYCLE[(0, 2, 3)[i % 3]]
        mean, low, high = stats.mean_interval(one.measured_hit, "seed", 0.997)
        name = "SGD, mean over runs" if eta is None else rf"SGD, $\eta$ = {eta:g}"
        for ax, base in ((left, 0.0), (right, by_flow)):
            ax.errorbar(one.step, mean - base, [mean - low, high - mean], fmt="o", color=color, capsize=2.5, label=name)
            label = "exact mean over visits" if i == 0 else None
            ax.plot(one.step, one.predicted_hit.isel(seed=0) - base, color=plotting.COLORS["theory"], label=label)
    right.axhline(0.0, color=plotting.COLORS["control"], linestyle="--", label="gradient flow")
    left.set(xlabel="step", ylabel="probability of the next token")
    right.set(xlabel="step", ylabel="difference from the gradient flow")


SOURCE = "arXiv:2305.16380, Theorem 1 and its proof"

CLAIMS = (
    jd.Study(
        trial=frozen_decoder.trial,
        quick=FROZEN,
        paper=FROZEN_PAPER,
        tested=TESTED,
        seeds=8,
        paper_seeds=16,
        source=SOURCE,
    ).claim(
        id="snap.clock",
        title="The decoder learns by a closed-form clock",
        statement="For frozen inputs of norm one that do not overlap and $K$ equally frequent classes, gradient flow at rate "
        r"$\eta$ from zero makes the logits of class $n$ equal to $h\,(M e_{y_n} - 1)$, $y_n$ its next token and $M$ the size "
        r"of the vocabulary, where $u = Mh$ solves $(M-1)u + e^u - 1 = M\eta t/K$; its speed is $\dot u = (\eta/K)\,M/(M - 1 + "
        "e^u)$, and the next token has the probability $1/(1 + (M-1)e^{-u})$.",
        judge=judge_clock,
        evidence="flow",
        bounds="derived: the solver's tolerance, a relative 1e-10 a step",
        rivals={
            "the decoder does not learn": jd.off(UNTRAINED),
            "a decoder that never saturates": UNSATURATED,
            "a softmax over the K next tokens, as in some of the authors' talks": jd.swap(predicted_hit="narrow_hit"),
        },
        controls=BREACHES,
        plot=plot_clock,
        caption=r"Left: advantage of the next token's logit along $\eta t/K$ for the trained decoder (dots and band: median "
        "and central 90% over runs and classes) and by the closed clock. Right: probability of the next token in one run "
        "(dots) and as predicted with the softmax over all $M$ tokens; dashed: over the $K$ next tokens.",
    ),
    jd.Study(
        trial=one_sample_trial,
        quick=jd.grid(OneSample, eta=[0.5, 2.0]),
        paper=jd.grid(OneSample, eta=[0.1, 0.5, 2.0], tokens=100, classes=8, steps=480),
        seeds=512,
        paper_seeds=1024,
        source=f"{SOURCE}; the mean over visits is ours",
    ).claim(
        id="snap.clock_sgd",
        title="SGD's mean probability of the next token has a closed form",
        statement="When a decoder on frozen inputs without overlap is trained by SGD at rate $\\eta$ on one sample per step of "
        "$K$ equally frequent classes, with a vocabulary of $M$ tokens, the advantage $u$ of a class's right logit, $u_k$ after "
        "$k$ visits from $u_0 = 0$, moves only when the "
        r"class is visited, by $u_{k+1} = u_k + \eta M/(M-1+e^{u_k})$, and the mean probability of its next token is "
        r"$\sum_k \mathrm{Binom}(k; t, 1/K)\, p(u_k)$ with $p(u) = 1/(1 + (M-1)e^{-u})$: over 512 runs of 120 steps at $\eta$ of "
        ".5 and 2 ($K = 4$, $M = 32$) within .02 at all recorded times, and in the later half of training $1 - p$ within 4%, "
        "relative.",
        tested="SGD on the decoder alone, step sizes {eta}, one of {classes} equally frequent classes per step for {steps} "
        "steps; {distinct} distinct tokens per class, a vocabulary of {tokens} tokens; {seeds} seeds.",
        judge=judge_one_sample,
        decides={"only": ("clock of a row given its visits, relative error", "inputs overlap (a common token)")},
        evidence="network",
        bounds=jd.tuned(on="0:512", confirmed_on="31000000:31000512"),
        rivals={"nothing is learned": jd.off(CHANCE), "gradient flow": jd.swap(predicted_hit="flow_hit")},
        controls=BREACHES,
        plot=plot_one_sample,
        caption=r"Left: mean probability of the next token along training by SGD on one sample per step (dots, bars: 99.7% "
        r"interval over runs) and its exact mean over the visits (lines), a colour for each $\eta$. Right: the same as a "
        r"difference from gradient flow.",
    ),
)
