"""What descent leaves of the gradient: within fixed subspaces, and where inputs lack dimensions.

Descent within subspaces, judged: fixed ones stall, switching ones converge; and what inputs of low rank do.

Descent where inputs lack dimensions: the part of the gradient that no weight feels stays.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import linalg, plotting, train
from jaxdyn.theories.galore import dynamics, model
from jaxdyn.theories.galore.descent import Fixed, Span, Switching, fixed_trial, positive, span_trial, switching_trial


def judge_fixed(ds: xr.Dataset) -> list[jd.Check]:
    """The worst ratio of successive norms, the late one, and where the gradient ends."""
    return [
        jd.at_most("largest ratio of successive norms, minus its bound", ds.measured_worst_ratio - ds.predicted_worst_ratio, 1e-9),
        jd.at_most("full gradient at the end: relative error", jd.relative_error(ds, "end", "row col"), 1e-6),
    ]


def judge_switching(ds: xr.Dataset) -> list[jd.Check]:
    """The gradient at the end, and the rank of the accumulated update."""
    missing = abs(ds.measured_rank - ds.predicted_rank)
    return [
        jd.at_most("norm of the gradient at the end over that at the start", ds.measured_end - ds.predicted_end, 1e-10),
        jd.at_most("|rank of the update - rank times subspaces used, or full rank|", missing, 0.0),
        jd.at_most("dimensions that the update lacks at the end", ds.predicted_final_rank - ds.measured_final_rank, 0.0),
    ]


def judge_span(ds: xr.Dataset) -> list[jd.Check]:
    """Singular values beyond the span of the inputs, the part in the null space, and that space's dimension."""
    return [
        jd.at_most("singular value N' + 1 at all steps, over the first at the start", ds.beyond, 1e-12),
        jd.at_most("part of the gradient in the null space of S", ds.in_null, 1e-10),
        jd.at_most(
            "dimension of the null space minus m (n - N')", abs(ds.measured_null_dimensions - ds.predicted_null_dimensions), 0
        ),
    ]


def plot_fixed(ds: xr.Dataset, fig: Figure) -> None:
    """Norms of the projected and of the full gradient along descent."""
    ax = fig.subplots()
    part = ds.isel(step=0) if "step" in ds.dims else ds
    time = np.arange(ds.sizes["time"])
    plotting.band(ax, time, (part.norms / part.norms.isel(time=0)).transpose(..., "time"), "projected gradient", "measured")
    plotting.band(ax, time, (part.full / part.full.isel(time=0)).transpose(..., "time"), "full gradient", "third")
    ax.set(yscale="log", xlabel="step", ylabel="norm over that at the start")


def plot_switching(ds: xr.Dataset, fig: Figure) -> None:
    """Norm of the gradient and rank of the update along training."""
    left, right = fig.subplots(1, 2)
    time = np.arange(ds.sizes["time"])
    plotting.band(left, time, ds.norms.transpose(..., "time"), "switching", "measured")
    left.set(yscale="log", xlabel="sample along training", ylabel="gradient over that at the start")
    plotting.band(right, time, ds.measured_rank.transpose(..., "time"), "rank of the update", "measured")
    plotting.band(right, time, ds.predicted_rank.transpose(..., "time"), "rank times subspaces", "theory", linestyle="--")
    right.set(xlabel="sample along training", ylabel="rank")


def plot_span(ds: xr.Dataset, fig: Figure) -> None:
    """Ratio of the first singular value beyond the span to the largest."""
    ax = fig.subplots()
    values = np.maximum(ds.beyond.max("time").values.ravel(), 1e-18)
    ax.hist(np.log10(values), bins=30, color=plotting.COLORS["measured"])
    ax.set(xlabel=r"$\log_{10}$ of $\sigma_{N'+1} / \sigma_1$, largest along descent", ylabel="runs")


@jd.setting
class Free:
    r"""Parametric gradients :math:`A - \frac1N\sum_i B_i W f_i f_i^\top` with any A, and inputs that lack dimensions."""

    leak: jd.Swept = jd.field(0.0, at_least=0)  # standard deviation of a part in all dimensions; 0 in the theorem
    size: int = 8  # n, rows and columns of W
    span: int = jd.field(3, at_least=1, role="none")  # N', dimensions that the inputs span
    steps: int = 800  # steps of gradient descent

    def __post_init__(self) -> None:
        """Refuse inputs that span all dimensions."""
        jd.require(self, self.span < self.size, "span is below size", "span", "size")


def trial(s: Free, key: PRNGKeyArray) -> jd.Observables:
    """The gradient at the end of descent, and the part of A that no weight feels."""
    # inputs and coefficients
    k_f, k_mix, k_a, k_b, k_leak = jax.random.split(key, 5)
    count = 2 * s.size
    frame = linalg.qr(jax.random.normal(k_f, (s.size, s.span), jnp.float64))[0]
    mixed = linalg.qr(jax.random.normal(k_mix, (count, s.span), jnp.float64))[0]
    within = mixed * jnp.linspace(1, 2, s.span, dtype=jnp.float64) @ frame.T
    inputs = within + s.leak * jax.random.normal(k_leak, (count, s.size), jnp.float64)
    a = jax.random.normal(k_a, (s.size, s.size), jnp.float64)
    b, c = positive(k_b, count, s.size), jnp.einsum("ij,ik->ijk", inputs, inputs)
    eta = 1 / dynamics.modes(b, c).values[-1]

    def negative(w: Array) -> Array:
        return -jax.grad(model.linear_loss)(w, a, b, c)

    # the end of descent, and the part that stays
    last = jax.lax.fori_loop(0, s.steps, lambda _, w: w + eta * negative(w), jnp.zeros_like(a))
    end, left = negative(last), dynamics.remainder(a, within, s.span)
    values = linalg.singular_values(end)
    return jd.observables(
        predicted={"end": jd.named(left, "row col"), "rank": float(s.size - s.span)},
        measured={"end": jd.named(end, "row col"), "rank": jnp.sum(values > 1e-6 * values[0]).astype(jnp.float64)},
        recorded={
            "none": jd.named(jnp.zeros_like(a), "row col"),
            "start": jd.named(a, "row col"),
            "left": jnp.linalg.norm(end),
            "size": float(s.size),
        },
        status=train.finite_status(end),
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The gradient at the end against the part of A that no weight feels, and its rank."""
    return [
        jd.at_most("gradient at the end: relative error", jd.relative_error(ds, "end", "row col"), 1e-6),
        jd.at_most("|rank at the end - (n - N')|", abs(ds.measured_rank - ds.predicted_rank), 0.0),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the gradient at the end, and its singular values."""
    left, right = fig.subplots(1, 2)
    one = ds.isel(seed=slice(0, 16))
    plotting.scatter(left, one.predicted_end, one.measured_end, label="entries of the gradient", color="measured")
    left.set(xlabel=r"$A(I - \Pi)$", ylabel="end of descent")
    values = np.linalg.svd(one.measured_end.transpose(..., "row", "col").values.reshape(-1, *ds.measured_end.shape[-2:]))[1]
    right.plot(np.arange(values.shape[1]) + 1, values.T, color=plotting.COLORS["measured"], linewidth=0.8, alpha=0.5)
    right.axvline(float(ds.predicted_rank.max()) + 0.5, color=plotting.COLORS["theory"], linestyle="--", label="$n - N'$")
    right.set(yscale="log", xlabel="number of the singular value", ylabel="singular value at the end")
    right.legend()


CLAIMS = (
    jd.Study(
        trial=fixed_trial,
        quick=jd.grid(Fixed, step=[0.3, 0.6, 0.95]),
        paper=jd.grid(Fixed, step=[0.3, 0.6, 0.95], size=[8, 16], rank=[3, 6]),
        seeds=128,
        paper_seeds=256,
        evidence="reduced",
        bounds="derived: float64 rounding, and the decay of the projected gradient over 2000 steps",
        assumes=(jd.below("step_over_limit", 1.0), jd.above("kappa", 0.0)),
        source=r"arXiv:2403.03507, theorem 3.8 for constant $A$, $B$, $C$; its condition on the step size and where $G$ ends: "
        "derived",
    ).claim(
        id="galore.fixed_proj",
        title="Descent within a fixed subspace converges, but the gradient stays",
        tested="{steps} steps of gradient descent, by differentiation of a quadratic loss, and 2000 for the end: matrices of "
        "{size} by {size}, {terms} terms with eigenvalues from .5 to 1.5, random subspaces of {rank} dimensions on both sides, "
        "step sizes of {step} times the largest; {seeds} problems.",
        statement=r"In the reduced dynamics of gradient descent within fixed subspaces of orthonormal bases $P$, $Q$, $W "
        r"\leftarrow W + \eta P P^\top G\, Q Q^\top$ on $G = A - S[W]$, $S[W] = \frac1N\sum_i B_i W C_i$, with constant $A$, "
        r"symmetric positive definite $B_i$, $C_i$ and $\eta < 2 / (\kappa + \lambda_{max}(\hat S))$, the norm of the projected "
        r"gradient $P^\top G\, Q$ falls to $1 - \eta\kappa$ of itself at most in every step, $\kappa = \frac1N\sum_i "
        r"\lambda_{min}(P^\top B_i P)\, \lambda_{min}(Q^\top C_i Q)$ and $\hat S[X] = P^\top S[PXQ^\top]\, Q$. In random problems "
        r"the full gradient does not vanish: it ends at $G_0 - S[PXQ^\top]$ with $\hat S[X] = P^\top G_0 Q$.",
        holds={"rank": (1, 3), "terms": (1, 3)},
        judge=judge_fixed,
        controls={r"step sizes above $2 / (\kappa + \lambda_{max})$": {"step": 1.06}},
        rivals={
            "the full gradient vanishes": jd.swap(predicted_end="none"),
            r"decay at twice the rate $\kappa$": jd.swap(predicted_worst_ratio=lambda ds: 2 * ds.predicted_worst_ratio - 1),
            "nothing moves": jd.swap(predicted_end="start"),
        },
        plot=plot_fixed,
        caption="Norm of the projected and of the full gradient along descent within fixed subspaces, relative to the start; "
        "medians and central 90% of the runs at the smallest step size.",
    ),
    jd.Study(
        trial=switching_trial,
        quick=jd.grid(Switching),
        paper=jd.grid(Switching, size=[10, 16], steps=3000),
        seeds=128,
        paper_seeds=256,
        evidence="reduced",
        bounds="derived: the decay of the gradient over all steps; ranks are counted",
        source="arXiv:2403.03507, section 4.1 and theorem 3.8; the pair of runs: ours",
    ).claim(
        id="galore.switching",
        title="Switching low-rank subspaces lets the whole gradient vanish",
        tested="{steps} steps of GaLore's optimizer without moments at the rate {step} over the largest eigenvalue: matrices of "
        "{size} by {size}, {terms} terms with eigenvalues from .5 to 1.5, a subspace of {rank} dimensions on one side, found "
        "again every {every} steps; {seeds} problems.",
        statement=r"In the reduced dynamics of gradient descent on $G = A - \frac1N\sum_i B_i W C_i$ in the weights $W$, with "
        "constant $A$ and $N$ of 2 to 4 terms, symmetric $B_i$, $C_i$ with eigenvalues from .5 to 1.5, by GaLore's optimizer "
        "without moments, at a rate of .3 to 1.5 over the largest eigenvalue, a one-sided subspace of 4 of 10 dimensions that is "
        "found again every 10 to 30 of 600 steps lets the whole gradient vanish, to "
        "$10^{-10}$ of its start. The accumulated update has the rank of one subspace times the number of subspaces used, until "
        "it has full rank, and has it at the end.",
        holds={"every": (10.0, 30.0), "step": (0.3, 1.5), "terms": (2, 4)},
        talks=("practical:galore-update",),
        judge=judge_switching,
        controls={"the first subspace is kept": {"every": 0.0}},
        rivals={"the update keeps the rank of one subspace": jd.swap(predicted_rank="one_subspace")},
        plot=plot_switching,
        caption="Left: norm of the gradient over that at the start, along training. Right: rank of the accumulated update, and "
        "the rank of a subspace times the number of subspaces used. Medians and central 90% of the runs; 10 steps a sample.",
    ),
    jd.Study(
        trial=span_trial,
        quick=jd.grid(Span),
        paper=jd.grid(Span, span=[2, 3, 5], size=[8, 12]),
        seeds=128,
        paper_seeds=256,
        evidence="algebra",
        bounds="derived: float64 rounding; dimensions are counted",
        source="arXiv:2403.03507, corollary to lemma 3.4 (low-rank parametric gradients), corrected: derived",
    ).claim(
        id="galore.cor_rank",
        title="Inputs that span few dimensions leave a gradient of as low a rank",
        tested="{steps} steps of gradient descent, by differentiation of a quadratic loss: weights of {rows} by {size}, inputs "
        "that span {span} dimensions, symmetric $B_i$ with eigenvalues from .5 to 1.5; {seeds} problems.",
        statement=r"Where the negative gradient of weights W, m by n, is $\frac1N\sum_i (a_i - B_i W f_i) f_i^\top$, with "
        r"vectors $a_i$, symmetric positive definite $B_i$ and inputs $f_i$ that span $N' < n$ dimensions, it has rank $N'$ at "
        r"most at every step of gradient descent. The operator $S[W] = \frac1N\sum_i B_i W f_i f_i^\top$ has a null space of "
        r"dimension $m(n-N')$, in which the "
        "gradient has no part at any step, so that no bound by that part, as in the paper's corollary, says anything of its rank. "
        "(An identity, along the reduced dynamics.)",
        judge=judge_span,
        controls={"$A$ not of this form": jd.Control({"free": 0.1}, breaks="span $N' < n$ dimensions")},
        rivals={"no direction of the weights is free: S is invertible": jd.swap(predicted_null_dimensions=0.0)},
        plot=plot_span,
        caption=r"Singular value $N' + 1$ of the gradient, the largest along descent, over the first at the start, one count "
        r"per run "
        r"(below $10^{-18}$ counted there).",
    ),
    jd.Study(
        trial=trial,
        quick=jd.grid(Free),
        paper=jd.grid(Free, span=[2, 3, 5]),
        seeds=128,
        paper_seeds=512,
        evidence="reduced",
        bounds="derived: the decay of all other parts over the steps; the rank is counted",
        source="arXiv:2403.03507, corollary to lemma 3.4, for A that is not of the parametric form; where it ends: derived",
    ).claim(
        id="galore.parallel_part",
        title="The part of the gradient that no input reaches stays",
        tested="{steps} steps of gradient descent, by differentiation of a quadratic loss: weights of {size} by {size}, a "
        "Gaussian A, inputs that span {span} dimensions, symmetric $B_i$ with eigenvalues from .5 to 1.5; {seeds} problems.",
        statement=r"In the reduced dynamics of gradient descent from zero weights, n by n, whose negative gradient is $A - "
        r"\frac1N\sum_i B_i W f_i f_i^\top$ with symmetric positive definite $B_i$, Gaussian $A$ and inputs $f_i$ that span $N' < "
        r"n$ dimensions, the gradient does not vanish: it ends at $A(I - \Pi)$, $\Pi$ the projection on the inputs' span, which "
        r"has rank $n - N'$.",
        judge=judge,
        controls={"inputs that span all dimensions": {"leak": 0.5}},
        rivals={
            "the gradient vanishes": jd.swap(predicted_end="none", predicted_rank=0.0),
            "nothing moves": jd.swap(predicted_end="start", predicted_rank="size"),
        },
        plot=plot,
        caption=r"Left: entries of the gradient at the end of descent against $A(I - \Pi)$. Right: its singular values, one line "
        r"per run; dashed: after the first $n - N'$. 16 runs.",
    ),
)
