r"""Gradient flow with merged keys and queries: its path, its limit, what it conserves, and the logistic special case.

The flow of all :math:`2(d+1)^2` entries of the layer's matrices on the exact population loss is by automatic differentiation; it
knows nothing of blocks. Predicted are the equations of two blocks. Time runs to 100, at records that are even in its logarithm.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting
from jaxdyn.theories.icl import dynamics, model

TIMES = (0.0, *(10 ** (-1 + 3 * i / 24) for i in range(25)))


@jd.setting
class Limit:
    """A layer with merged keys and queries, and its flow.

    Args:
        start: as in ``starts.first_weights``.
        size: of U at the start.
        imbalance: c.
        first: largest eigenvalue of the inputs' covariance.
        ratio: of each eigenvalue to the one before.
        length: N.
        inputs: d.
    """

    start: jd.Code = jd.code(*model.STARTS)
    size: jd.Swept = jd.field(0.3, above=0)
    imbalance: jd.Swept = 0.0
    first: jd.Swept = jd.field(2.0, above=0)
    ratio: jd.Swept = jd.field(0.6, above=0, at_most=1)
    length: jd.Swept = jd.field(10.0, at_least=1)
    inputs: int = jd.field(4, at_least=2)

    def __post_init__(self) -> None:
        jd.require(self, self.imbalance > -(self.size**2), "imbalance is above -size^2", "imbalance", "size")


def trial(s: Limit, key: PRNGKeyArray) -> jd.Observables:
    """Both blocks along the flow and by their equations, their limits, the loss at the end, and the rest of the matrices."""
    k_basis, k_start = jax.random.split(key)
    ts, d = jnp.asarray(TIMES, jnp.float64), s.inputs
    # the layer's flow in all entries
    vectors = model.basis(k_basis, d)
    values = model.spectrum(s.first, s.ratio, d)
    lam = (vectors * values) @ vectors.T
    start = model.first_weights(s.start, k_start, d, 1, s.size, s.imbalance)
    options = {"solver": "dopri8", "rtol": 1e-9, "atol": 1e-11, "max_steps": 20_000}
    solution = flow.gradient_flow(model.population_loss, start, ts, lam, s.length, **options)
    blocks, rest = model.blocks(solution.ys.pv, solution.ys.kq)
    # the equations of two blocks from the same start, their limits, and the logistic special case
    first = jax.tree.map(lambda x: x[0], blocks)
    path = dynamics.solve(first, lam, s.length, ts)
    conserved = jnp.square(blocks.u) - jnp.sum(jnp.square(blocks.block), (-1, -2))
    end, long = (dynamics.limit(lam, length, conserved[0]) for length in (s.length, 1e12))
    logistic = dynamics.logistic(ts, s.size**2 / d**0.5, d, s.length)
    strength = blocks.u * jnp.trace(blocks.block, axis1=-2, axis2=-1) / d
    last = jax.tree.map(lambda x: x[-1], solution.ys)
    return jd.observables(
        predicted={
            "u": jd.named(path.ys.u, "time"),
            "block": jd.named(path.ys.block, "time row col"),
            "u_end": end.u,
            "block_end": jd.named(end.block, "row col"),
            "loss_end": dynamics.least_loss(lam, s.length),
            "held": jd.named(jnp.full(len(TIMES), conserved[0]), "time"),
            "strength": jd.named(logistic, "time"),
        },
        measured={
            "u": jd.named(blocks.u, "time"),
            "block": jd.named(blocks.block, "time row col"),
            "u_end": blocks.u[-1],
            "block_end": jd.named(blocks.block[-1], "row col"),
            "loss_end": model.population_loss(last, lam, s.length),
            "held": jd.named(conserved, "time"),
            "strength": jd.named(strength, "time"),
        },
        recorded={
            "rest": jd.named(rest, "time"),
            "u_start": first.u,
            "block_start": jd.named(first.block, "row col"),
            "strength_start": strength[0],
            "loss_start": model.population_loss(start, lam, s.length),
            "u_long": long.u,
            "block_long": jd.named(long.block, "row col"),
            "u_balanced": dynamics.corner(lam, s.length, 0.0),
            "exponential": jd.named(logistic[-1] * -jnp.expm1(-2 * d**0.5 * ts), "time"),
        },
        assumed={"settled": TIMES[-1] * end.u**2 * dynamics.slowest(values, s.length)},
        status=jnp.maximum(solution.status, path.status),
        coords={"time": TIMES},
    )


def judge_limit(ds: xr.Dataset) -> list[jd.Check]:
    """Both blocks at all times and at the end, the loss, and all other entries."""
    block = abs(ds.measured_block - ds.predicted_block)
    return [
        jd.at_most("u against its equation, at all times", abs(ds.measured_u - ds.predicted_u), 1e-6),
        jd.at_most("entries of U against their equation, at all times", block, 1e-6),
        jd.at_most("u at the end against its limit, relative", jd.relative_error(ds, "u_end"), 1e-6),
        jd.at_most("U at the end against its limit, relative", jd.relative_error(ds, "block_end", "row col"), 1e-6),
        jd.at_most("loss at the end against the least loss, relative", jd.relative_error(ds, "loss_end"), 1e-6),
        jd.at_most("root mean square of the other entries, at all times", ds.rest, 1e-9),
    ]


def judge_invariant(ds: xr.Dataset) -> list[jd.Check]:
    """The conserved quantity at all times, and the limit that it sets."""
    return [
        jd.at_most("change of the conserved quantity", abs(ds.measured_held - ds.predicted_held), 1e-8),
        jd.at_most("u at the end against the limit for this c, relative", jd.relative_error(ds, "u_end"), 1e-6),
    ]


def judge_logistic(ds: xr.Dataset) -> list[jd.Check]:
    """The strength at all times."""
    return [jd.at_most("strength against the logistic path", abs(ds.measured_strength - ds.predicted_strength), 1e-6)]


STILL = jd.swap(
    predicted_u="u_start",
    predicted_block="block_start",
    predicted_u_end="u_start",
    predicted_block_end="block_start",
    predicted_loss_end="loss_start",
)


def plot_path(ds: xr.Dataset, fig: Figure) -> None:
    """U of every run along time, and the error of its prediction."""
    left, right = fig.subplots(1, 2)
    for side, color, style, label in (("measured", "measured", "-", "flow"), ("predicted", "theory", "--", "two blocks")):
        runs = ds[f"{side}_u"].isel(time=slice(1, None)).stack(every=ds.status.dims).transpose("time", "every")
        lines = left.semilogx(ds.time.values[1:], runs, style, color=plotting.COLORS[color], linewidth=1)
        lines[0].set_label(label)
    left.set(xlabel="t", ylabel="u")
    plotting.scatter(right, ds.predicted_block_end, ds.measured_block_end, "entries of U at the end")


def plot_invariant(ds: xr.Dataset, fig: Figure) -> None:
    """U at the end against its limit."""
    plotting.scatter(fig.subplots(), ds.predicted_u_end, ds.measured_u_end, "u at the end")


def plot_strength(ds: xr.Dataset, fig: Figure) -> None:
    """The strength of every run along time."""
    ax, time = fig.subplots(), ds.time.values[1:]
    for side, color, label in (("measured", "measured", "flow"), ("predicted", "theory", "logistic")):
        plotting.band(ax, time, ds[f"{side}_strength"].isel(time=slice(1, None)).transpose(..., "time"), label, color)
    ax.set(xlabel="t", ylabel=r"$\mathrm{tr}(uU)/d$", xscale="log")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Limit, start="paper", length=[10.0, 40.0]),
    seeds=2,
    paper_seeds=32,
    evidence="flow",
    bounds="derived: the solver's tolerance, a relative 1e-9 a step, and what is left of the way at t = 100",
    source="arXiv:2306.09927, Theorem 4.1",
    tested="Gradient flow of one layer of linear attention, in all entries of its two matrices, on the exact population loss "
    "in float64 to $t = 100$. In-context regression with {inputs} inputs and {length} examples per prompt; the inputs' "
    "covariance has random eigenvectors, the largest eigenvalue {first}, and each further one {ratio} times the one before; "
    "{seeds} seeds.",
    plot=plot_path,
    caption="Left: u along the flow and by the equations of two blocks, one line per run. Right: entries of U at t = 100 "
    "against the limit.",
)
DENSE = {"a start with all entries": {"start": "dense"}}
SETTLED = (jd.above("settled", 20.0),)  # times that the slowest entry's distance from its limit falls by e

CLAIMS = (
    STUDY.claim(
        id="icl.gf_limit",
        title="Linear attention learns the best in-context regressor it can express",
        statement="In the gradient flow of linear attention with merged keys and queries, from a start in which only the "
        r"corner $u$ of the value matrix and the block $U = \sigma\Theta\Theta^\top$ of the key-query matrix (a number $\sigma "
        r"> 0$, a matrix $\Theta$) differ from zero, with equal norms and $u > 0$, the other entries that act on predictions "
        r"stay zero, both blocks follow their own two equations to $10^{-6}$, and once $u^2\Gamma_d\lambda_d^2\,t > 20$ they "
        r"are, to a relative $10^{-6}$, $u = (\mathrm{tr}\,\Gamma^{-2})^{1/4}$, $U = \Gamma^{-1}/u$ with the loss "
        r"$\frac12(\mathrm{tr}\Lambda - \mathrm{tr}\Lambda^2\Gamma^{-1})$. Here $\Lambda$ is the inputs' covariance, $N$ the "
        r"number of examples and $\Gamma = (1 + \tfrac1N)\Lambda + \tfrac{\mathrm{tr}\Lambda}{N} I$; $\lambda_d$ and "
        r"$\Gamma_d$ are the least eigenvalues of both matrices.",
        assumes=SETTLED,
        decides={"best": ("loss at the end against the least loss, relative", "a start with all entries")},
        judge=judge_limit,
        controls={"a start of zeros": {"start": "zero"}, **DENSE},
        rivals={
            "nothing moves": jd.off(STILL),
            r"the limit is that of endless prompts, $\Gamma = \Lambda$": jd.swap(
                predicted_u_end="u_long", predicted_block_end="block_long"
            ),
        },
    ),
    STUDY.claim(
        id="icl.invariant",
        title="A conserved difference of norms decides where training ends",
        statement="In the gradient flow of linear attention with merged keys and queries, from a start in which only the "
        r"corner $u > 0$ of the value matrix and the block $U = \sigma\Theta\Theta^\top$ of the key-query matrix (a number "
        r"$\sigma > 0$, a matrix $\Theta$) differ from zero, $c = u^2 - \|U\|_F^2$ keeps its first value, to $10^{-8}$, and "
        r"sets where $u$ ends: once $u^2\Gamma_d\lambda_d^2\,t > 20$, $u$ is to a relative $10^{-6}$ the root of $u^2 = "
        r"\frac12(c + \sqrt{c^2 + 4\,\mathrm{tr}\,\Gamma^{-2}})$. Here $\Gamma = (1 + \tfrac1N)\Lambda + "
        r"\tfrac{\mathrm{tr}\Lambda}{N} I$ for inputs of covariance $\Lambda$ and $N$ examples; $\lambda_d$ and $\Gamma_d$ are "
        "the least eigenvalues of both matrices.",
        tested="Gradient flow of one layer of linear attention, in all entries of its two matrices, on the exact population "
        "loss in float64 to $t = 100$, from $c$ of {imbalance}. In-context regression with {inputs} inputs and {length} "
        "examples per prompt; the inputs' covariance has random eigenvectors, the largest eigenvalue {first}, and each "
        "further one {ratio} times the one before; {seeds} seeds.",
        source="arXiv:2306.09927, section 5.2 (the invariant at c = 0); the limit for other c is derived",
        quick=STUDY.quick.replace(imbalance=[-0.05, 1.0]),
        assumes=SETTLED,
        judge=judge_invariant,
        controls={**DENSE, r"a start at $-\sigma I$": {"start": "negative"}},
        rivals={
            "nothing moves": jd.off(predicted_u_end="u_start"),
            "u ends where it does for c = 0": jd.swap(predicted_u_end="u_balanced"),
            "the norm of U is conserved": jd.swap(
                predicted_held=lambda ds: ds.measured_u**2 - (ds.block_start**2).sum(["row", "col"])
            ),
        },
        plot=plot_invariant,
        caption="u at t = 100 against the limit that its conserved quantity sets; one point per run.",
    ),
    STUDY.claim(
        id="icl.logistic",
        bounds="derived: the solver's tolerance, a relative 1e-9 a step",
        title="For white inputs in-context learning follows a logistic curve",
        statement="In the gradient flow of linear attention with merged keys and queries on $d$ inputs of covariance $I$, "
        r"from a start in which only the corner $u$ of the value matrix and the block $U \propto I$ of the key-query matrix, "
        "both positive, differ from zero, with equal norms, the strength $q$ of $uU = qI$ is logistic at all recorded times, "
        r"$q(t) = 1/(\gamma + (1/q_0 - \gamma)e^{-2\sqrt d\, t})$ with $\gamma = 1 + (1 + d)/N$ for $N$ examples, to $10^{-6}$.",
        tested="Gradient flow of one layer of linear attention, in all entries of its two matrices, on the exact population "
        "loss in float64 to $t = 100$; {inputs} white inputs and {length} examples per prompt, $U$ of norm {size} at the "
        "start; {seeds} seeds.",
        source="derived from arXiv:2306.09927, Theorem 4.1",
        quick=jd.grid(Limit, start="white", first=1.0, ratio=1.0, size=0.1, length=[10.0, 40.0]),
        judge=judge_logistic,
        controls={"inputs of unequal variances": {"ratio": 0.5}, "a start that is no multiple of I": {"start": "paper"}},
        rivals={
            "nothing moves": jd.off(predicted_strength="strength_start"),
            "an exponential relaxation": jd.swap(predicted_strength="exponential"),
        },
        plot=plot_strength,
        caption=r"Strength q of $uU = qI$ along the flow and by its logistic path: median and central 90% of the runs.",
    ),
)
