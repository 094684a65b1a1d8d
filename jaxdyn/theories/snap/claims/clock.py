r"""Claims on the decoder's clock: frozen inputs without overlap, by gradient flow and by SGD on one sample a step.

The network's loss is that of ``model.py`` with Z fixed, so that only Y learns. ``task`` makes the classes of this and of the other
topics. Letters as in ``model.py`` and ``dynamics/gradient.py``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting, stats, train
from jaxdyn.theories.snap import model
from jaxdyn.theories.snap.dynamics import clock as theory
from jaxdyn.theories.snap.dynamics import gradient

__all__ = ["CLAIMS", "Frozen", "OneSample", "frozen_trial", "one_sample_trial", "task"]

SOURCE = "arXiv:2305.16380, Theorem 1 and its proof"
FORMS = ("printed", "derived")
DECADES = (-2.0, 5.0)  # saved times, in units of K / eta
SAVES = 42
THREE_SIGMA = 0.9973  # level of 3 standard errors
NUDGE = 1e-3  # the peak of gamma is the vertex through three times that are apart by this share


@jd.setting
class Frozen:
    """Classes whose contexts share no token but the common one; the decoder learns, the attention does not."""

    eta: jd.Swept = 1.0
    common: jd.Swept = 0.0  # share of a common token in every class's context: 0 keeps the f orthonormal
    skew: jd.Swept = 0.0  # frequencies of the classes proportional to 1 + skew n
    tokens: int = 32
    classes: int = 4
    distinct: int = 3

    def __post_init__(self) -> None:
        """Refuse shares that are none and vocabularies that are too small."""
        check(self.tokens, self.classes, self.distinct, self.common)


@jd.setting
class OneSample:
    """The same, trained on the sample of one class a step, drawn anew each time."""

    eta: jd.Swept = 0.5
    common: jd.Swept = 0.0
    skew: jd.Swept = 0.0
    tokens: int = 32
    classes: int = 4
    distinct: int = 3
    steps: int = 120
    samples: int = 8  # records after the start

    def __post_init__(self) -> None:
        """Refuse shares that are none, vocabularies that are too small, and records between steps."""
        check(self.tokens, self.classes, self.distinct, self.common)
        if self.steps < 1 or self.steps % self.samples:
            raise jd.UsageError(f"steps={self.steps} is not allowed: it is a positive multiple of samples={self.samples}")


def check(tokens: int, classes: int, distinct: int, common: float, queries: int | None = None) -> None:
    """Refuse a vocabulary that cannot hold the classes, or a share outside [0, 1).

    Raises:
        UsageError: with the least vocabulary, or the allowed share.
    """
    least = 1 + classes * distinct + (classes if queries is None else queries) + classes
    if tokens < least:
        raise jd.UsageError(f"tokens={tokens} is not allowed: these classes need at least {least}")
    if not 0 <= common < 1:
        raise jd.UsageError(f"common={common} is not allowed: it is a share from 0 up to, not including, 1")


def task(
    key: PRNGKeyArray,
    tokens: int,
    classes: int,
    distinct: int,
    common: float | Float[Array, ""],
    skew: float | Float[Array, ""] = 0.0,
    queries: int | None = None,
) -> model.Task:
    """Classes with ``distinct`` tokens of their own, of random probabilities, and token 0 in common.

    The vocabulary: the common token, the classes' own tokens block by block, queries, next tokens, and tokens never used. Class n
    has query n modulo the number of queries (its own by default).
    """
    queries = classes if queries is None else queries
    own = 0.5 + jax.random.uniform(key, (classes, distinct), jnp.float64)
    own = (1 - common) * own / jnp.sum(own, 1, keepdims=True)
    blocks = jnp.einsum("nd,nk->nkd", own, jnp.eye(classes, dtype=jnp.float64)).reshape(classes, -1)
    rest = jnp.zeros((classes, tokens - 1 - classes * distinct), jnp.float64)
    p = jnp.concatenate([jnp.broadcast_to(jnp.asarray(common, jnp.float64), (classes, 1)), blocks, rest], 1)
    n = np.arange(classes)
    weight = 1 + skew * jnp.asarray(n, jnp.float64)
    return model.Task(p, n % queries, 1 + classes * distinct + queries + n, weight / jnp.sum(weight))


def head_gradient(y: Float[Array, "M M"], f: Float[Array, "K M"], label: Int[Array | np.ndarray, " K"]) -> Float[Array, "K M"]:
    """What the network propagates back to the decoder's inputs: the gradient of the log-probability of each class's next token."""

    def score(f: Float[Array, " M"], label: Int[Array, ""]) -> Float[Array, ""]:
        return jax.nn.log_softmax(f @ y)[label]

    return jax.vmap(jax.grad(score))(f, label)


def advantages(logits: Float[Array, "K M"], label: Int[Array | np.ndarray, " K"]) -> Float[Array, " K"]:
    """The logit of each class's next token over the mean of all other logits."""
    target = jnp.take_along_axis(logits, jnp.asarray(label)[:, None], 1)[:, 0]
    return target - (jnp.sum(logits, 1) - target) / (logits.shape[1] - 1)


def saved_times(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rising times in units of K / eta, over decades and three around the peak of gamma; and where these three are."""
    u = gradient.peak(size)
    top = ((size - 1) * u + np.expm1(u)) / size
    unit = np.sort(np.append(np.logspace(*DECADES, SAVES), top * (1 + NUDGE * np.array([-1, 0, 1]))))
    return unit, np.searchsorted(unit, top * (1 - 0.5 * NUDGE)) + np.arange(-1, 2)


def frozen_trial(s: Frozen, key: PRNGKeyArray) -> jd.Observables:
    """Gradient flow of the decoder, its clock, and its gradient in the form of Theorem 1."""
    one = task(key, s.tokens, s.classes, s.distinct, s.common, s.skew)
    start = model.zeros(one)
    f, label = model.normalized(model.attend(start.z[one.query], one.p)), jnp.asarray(one.label)

    def speed(y: Array) -> Array:
        return jnp.sum(f * head_gradient(y, f, label), 1) / gradient.iota(s.tokens)

    def field(t: Any, state: dict, eta: Array) -> dict:
        rate = -jax.grad(lambda y: model.loss(start._replace(y=y), one))(state["y"])
        ode = eta / s.classes * s.tokens / (s.tokens - 1 + jnp.exp(state["u"]))
        return {"y": eta * rate, "u": ode, "total": jnp.mean(speed(state["y"]))}

    unit, at = saved_times(s.tokens)
    ts = jnp.asarray(np.append(0.0, unit)) * s.classes / s.eta
    zero = jnp.zeros((), jnp.float64)
    solution = flow.solve(field, {"y": start.y, "u": zero, "total": zero}, ts, s.eta, solver="dopri8")
    ys = jax.tree.map(lambda leaf: leaf[1:], solution.ys)
    logits = f @ ys["y"]
    measured_gamma = jnp.mean(jax.vmap(speed)(ys["y"]), 1)
    near, values = ts[1:][at], measured_gamma[at]
    second = values[2] - 2 * values[1] + values[0]
    vertex = near[1] - 0.5 * (near[2] - near[1]) * (values[2] - values[0]) / second

    size, classes = float(s.tokens), float(s.classes)
    u = theory.clock(size * s.eta * ts[1:] / classes, size)
    narrow = theory.clock(s.eta * ts[1:], classes)  # the softmax taken over the K next tokens
    rows = u[:, None, None] * (jax.nn.one_hot(label, s.tokens, dtype=u.dtype) - 1 / s.tokens)
    top_u = gradient.peak(s.tokens)
    return jd.observables(
        predicted={
            "ode": jd.named(u, "time"),
            "rows": jd.named(rows, "time class output"),
            "hit": jd.named(jnp.stack([theory.hit(narrow, classes), theory.hit(u, size)]), "form time"),
            "gradient": jd.named(jax.vmap(lambda u: gradient.gradient_form(f, u, s.tokens))(u), "time class token"),
            "gamma": jd.named(gradient.gamma(u, s.tokens), "time"),
            "total": jd.named(gradient.gamma_integral(u, s.tokens, s.classes, s.eta), "time"),
            "peak_time": gradient.time_at(top_u, s.tokens, s.classes, s.eta),
            "peak": gradient.gamma(jnp.asarray(top_u, u.dtype), s.tokens),
        },
        measured={
            "ode": jd.named(ys["u"], "time"),
            "rows": jd.named(logits, "time class output"),
            "hit": jd.named(jnp.mean(jax.nn.softmax(logits)[:, jnp.arange(s.classes), label], 1), "time"),
            "gradient": jd.named(jax.vmap(lambda y: head_gradient(y, f, label))(ys["y"]), "time class token"),
            "gamma": jd.named(measured_gamma, "time"),
            "total": jd.named(ys["total"], "time"),
            "peak_time": vertex,
            "peak": values[1],
        },
        recorded={
            "advantage": jd.named(jax.vmap(advantages, (0, None))(logits, label), "time class"),
            "excess": gradient.excess(f),
            "steps": solution.steps,
        },
        status=solution.status,
        coords={"form": FORMS, "time": unit},
    )


def one_sample_trial(s: OneSample, key: PRNGKeyArray) -> jd.Observables:
    """SGD on one sample a step: the clocks of all rows given their visits, and the mean probability of the next token."""
    k_task, k_data = jax.random.split(key)
    one = task(k_task, s.tokens, s.classes, s.distinct, s.common, s.skew)
    start, every = model.zeros(one), s.steps // s.samples
    edges = jnp.cumsum(one.weight)

    def drawn(step: Int[Array, ""]) -> Int[Array, ""]:
        draw = jax.random.uniform(jax.random.fold_in(k_data, step), (), jnp.float64)
        return jnp.minimum(jnp.searchsorted(edges, draw, side="right"), s.classes - 1)

    def loss(y: Array, n: Int[Array, ""]) -> Float[Array, ""]:
        weight = jax.nn.one_hot(n, s.classes, dtype=y.dtype)
        return model.loss(start._replace(y=y), one._replace(weight=weight))

    def observe(state: train.State) -> Float[Array, "K M"]:
        return model.logits(start._replace(y=state.params), one.p, jnp.asarray(one.query))

    step = train.make_step(loss, optax.sgd(s.eta), drawn)
    logits = train.record(step, train.init(optax.sgd(s.eta), start.y), observe, samples=s.samples, every=every)[1]
    label, steps = jnp.asarray(one.label), [i * every for i in range(1, s.samples + 1)]
    made = jax.nn.one_hot(jax.vmap(drawn)(jnp.arange(s.steps)), s.classes, dtype=jnp.int32)
    visits = jnp.cumsum(made, 0)[np.asarray(steps) - 1]
    size, classes = float(s.tokens), float(s.classes)
    u = theory.visits(s.steps, s.eta, size)
    probability = theory.hit(u, size)
    by_flow = theory.clock(size * s.eta * jnp.asarray(steps, jnp.float64) / classes, size)
    return jd.observables(
        predicted={
            "advantage": jd.named(u[visits], "step class"),
            "hit": jd.named(jnp.stack([theory.expected(probability, t, classes) for t in steps]), "step"),
        },
        measured={
            "advantage": jd.named(jax.vmap(advantages, (0, None))(logits[1:], label), "step class"),
            "hit": jd.named(jnp.mean(jax.nn.softmax(logits[1:])[:, jnp.arange(s.classes), label], 1), "step"),
        },
        recorded={"flow_hit": jd.named(theory.hit(by_flow, size), "step")},
        coords={"step": steps},
    )


def judge_clock(ds: xr.Dataset) -> list[jd.Check]:
    """The closed clock against the ODE and against every row of the trained decoder."""
    return [
        jd.at_most("closed clock against its ODE, relative", jd.relative_error(ds, "ode"), 1e-8),
        jd.at_most("rows of F^T Y against the clock, relative", jd.relative_error(ds, "rows", "class output"), 1e-8),
    ]


def half_time(ds: xr.Dataset, name: str) -> xr.DataArray:
    """The time at which the next token has probability 1/2, by interpolation, in units of K / eta."""
    hit = ds[name].transpose(..., "time")
    hit = hit.where((hit > 0) & (hit < 1))
    odds = np.log(hit / (1 - hit))
    return xr.apply_ufunc(_crossing, ds.time, odds, input_core_dims=[["time"], ["time"]], vectorize=True)


def _crossing(t: np.ndarray, odds: np.ndarray) -> float:
    """Where rising log-odds pass 0; NaN if they do not rise throughout (a run that is not ok, or no probability)."""
    return float(np.exp(np.interp(0.0, odds, np.log(t)))) if np.all(np.diff(odds) > 0) else np.nan


def judge_scan(ds: xr.Dataset) -> list[jd.Check]:
    """How long the decoder scans: when it is half sure of the next token, and how sure it is at any time."""
    ratio = half_time(ds, "predicted_hit") / half_time(ds, "measured_hit")
    return [
        jd.within("time of probability 1/2, predicted / measured", ratio, 0.99, 1.01),
        jd.at_most("probability of the next token, relative error", jd.relative_error(ds, "hit"), 1e-8),
    ]


def judge_one_sample(ds: xr.Dataset) -> list[jd.Check]:
    """The recursion given the visits exactly; the mean over the draws within 3 standard errors, for all records together."""
    score = abs(stats.standard_errors(ds.measured_hit - ds.predicted_hit))
    bound = stats.bonferroni_z(max(int(score.count()), 1), THREE_SIGMA)
    return [
        jd.at_most("clock of a row given its visits, relative error", jd.relative_error(ds, "advantage", "step class"), 1e-10),
        jd.at_most("mean probability of the next token, deviation in s.e.", score, bound),
    ]


def plot_clock(ds: xr.Dataset, fig: Figure) -> None:
    """The clock and what is left of the probability of all other tokens."""
    left, right = fig.subplots(1, 2)
    ds = ds.isel(eta=0) if "eta" in ds.dims else ds
    one, color = ds.isel(seed=0), plotting.COLORS
    plotting.band(
        left, one.time.values, ds.advantage.transpose(..., "time"), "trained decoder", "measured", linestyle="none", marker="o"
    )
    left.plot(one.time, one.predicted_ode, color=color["theory"], label=r"$(M-1)u + e^u - 1 = s$")
    left.set(xscale="log", xlabel=r"$\eta t/K$", ylabel="advantage u of the next token")
    right.plot(one.time, one.measured_hit, "o", color=color["measured"], label="trained decoder")
    forms = {"derived": "softmax over M", "printed": "softmax over K"}
    shown = one.predicted_hit.form.values if "form" in one.predicted_hit.dims else ["derived"]
    for form in shown:
        hit = one.predicted_hit.sel(form=form) if "form" in one.predicted_hit.dims else one.predicted_hit
        style = {"color": color["theory"]} if form == "derived" else {"color": color["control"], "linestyle": "--"}
        right.plot(one.time, hit, label=forms[str(form)], **style)
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


def flow_mean(ds: xr.Dataset) -> xr.Dataset:
    """The mean of SGD taken to be the gradient flow, which knows nothing of the spread of visits."""
    return ds.assign(predicted_hit=ds.flow_hit)


FROZEN = jd.grid(Frozen, eta=[0.25, 2.0])
FROZEN_PAPER = jd.grid(Frozen, eta=[0.25, 2.0], tokens=[48, 100, 300], classes=[2, 4, 8])
BREACHES = {"inputs overlap (a common token)": {"common": 0.5}, "classes not equally frequent": {"skew": 0.5}}

CLAIMS = (
    jd.Claim(
        id="snap.clock",
        statement=r"With frozen inputs that do not overlap and equally frequent classes, gradient flow trains the decoder to "
        r"$F^\top Y = h\,(M e_{\text{label}} - 1)$ in every row, and $u = Mh$ solves $(M-1)u + e^u - 1 = M\eta t/K$ exactly.",
        source=SOURCE,
        trial=frozen_trial,
        quick=FROZEN,
        paper=FROZEN_PAPER,
        seeds=8,
        paper_seeds=16,
        judge=judge_clock,
        form="derived",
        controls=BREACHES,
        plot=plot_clock,
    ),
    jd.Claim(
        id="snap.t0_as_printed",
        statement=r"The scanning phase lasts $t_0 \sim K \ln K/\eta$, as if the softmax ran over the $K$ next tokens; it runs over "
        r"all $M$ tokens, so that $\ln M$ sets $t_0$.",
        source=f"{SOURCE}, with K in place of M as in some of the authors' talks",
        trial=frozen_trial,
        quick=FROZEN,
        paper=FROZEN_PAPER,
        seeds=8,
        paper_seeds=16,
        judge=judge_scan,
        expected="refuted",
        form="printed",
        counterpart="derived",
        plot=plot_clock,
    ),
    jd.Claim(
        id="snap.clock_sgd",
        statement=r"SGD on one sample a step moves a row only when it is visited, $u_{k+1} = u_k + \eta M/(M-1+e^{u_k})$ exactly, "
        r"and the mean probability of its next token is $\sum_k \mathrm{Binom}(k; t, 1/K)\, p(u_k)$, which gradient flow misses.",
        source=f"{SOURCE}; the mean over visits is ours",
        trial=one_sample_trial,
        quick=jd.grid(OneSample, eta=[0.5, 2.0]),
        paper=jd.grid(OneSample, eta=[0.1, 0.5, 2.0], tokens=100, classes=8, steps=480),
        seeds=128,
        paper_seeds=1024,
        judge=judge_one_sample,
        controls={**BREACHES, "mean replaced by the gradient flow": flow_mean},
        plot=plot_one_sample,
    ),
)
