r"""Exact solutions of linear networks under gradient flow; they are also the test of every ODE solver of the suite.

Measured is gradient flow of the network's own loss (``jax.grad``, diffrax), predicted a closed form: for two layers (aligned,
unbalanced, or balanced in random directions), for deep networks, and for a symmetric factorisation.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import flow, plotting
from jaxdyn.theories.cal import dynamics as theory
from jaxdyn.theories.cal.model import deep_loss, deep_product, factor_loss, linear_loss
from jaxdyn.theories.cal.spectra import linear_start, orthonormal, orthonormals, require_falling, spectrum


@jd.setting
class TwoLayer:
    r"""Gradient flow of a two-layer linear network from a start with a known solution.

    The imbalance ``a^2 - b^2`` of a mode is conserved. The matrix :math:`QQ^\top` of all weights, :math:`Q = [W_1^\top; W_2]`, has
    the network's map as a block.
    """

    start: jd.Code = jd.code("aligned", "unbalanced", "frames")  # frames: balanced, but not aligned with the target
    imbalance: jd.Swept = 0.0  # a^2 - b^2 of each mode in the unbalanced start, known to the theory
    unknown: jd.Swept = 0.0  # further imbalance a^2 - b^2 that the theory ignores
    strength: jd.Swept = jd.field(0.05, above=0)  # mean strength of the modes at the start
    solver: jd.Code = jd.code(*flow.SOLVERS)  # ODE solver; a switch, since one program serves all three
    rtol: float = jd.field(1e-10, above=0)  # relative tolerance of the solver per step
    gram: bool = False  # True: all weights (Q Q^T) are compared, False: the network's map
    inputs: int = jd.field(4, at_least=1)  # input dimension of the network
    hidden: int = jd.field(3, at_least=1)  # units of the hidden layer
    outputs: int = jd.field(2, at_least=1)  # output dimension
    values: tuple[float, ...] | None = None  # singular values of the target; None: drawn
    horizon: float = jd.field(4.0, above=0)  # time at which the flow ends
    samples: int = jd.field(32, at_least=1)  # times after the start at which flow and closed form are compared

    def __post_init__(self) -> None:
        require_falling(self, "values", min(self.inputs, self.hidden, self.outputs))


@jd.setting
class Deep:
    """Gradient flow of a deep linear network; with ``unknown`` all other matrices shrink, so that the product starts as assumed."""

    depth: jd.Swept = jd.field(3.0, at_least=1)  # N, weight matrices of the network
    strength: jd.Swept = jd.field(0.05, above=0)  # mean strength of the modes at the start
    miscount: jd.Swept = 0.0  # added to the number of matrices that the theory assumes
    unknown: jd.Swept = 0.0  # added to the first matrix's squared singular values, unknown to the theory
    solver: str = "tsit5"  # ODE solver of the flow: tsit5, dopri8 or kvaerno5
    rtol: float = jd.field(1e-10, above=0)  # relative tolerance of the solver per step
    width: int = jd.field(3, at_least=1)  # rows and columns of each matrix
    max_depth: int = jd.field(4, at_least=1)  # matrices in the program; those beyond depth stay at the identity
    values: tuple[float, ...] | None = None  # singular values of the target; None: drawn
    horizon: float = jd.field(6.0, above=0)  # time at which the flow ends
    samples: int = jd.field(32, at_least=1)  # times after the start at which flow and closed form are compared

    def __post_init__(self) -> None:
        require_falling(self, "values", self.width)
        whole = self.depth <= self.max_depth and self.depth == int(self.depth)
        jd.require(self, whole, "depth is a whole number, at most max_depth", "depth", "max_depth")


@jd.setting
class Symmetric:
    """Gradient flow of ``||M - U U^T||^2 / 4`` from a random start."""

    init: jd.Swept = jd.field(0.3, above=0)  # standard deviation of the entries of U at the start
    split: jd.Swept = 0.0  # offset between the two factors; 0 in the theorem
    solver: str = "tsit5"  # ODE solver of the flow: tsit5, dopri8 or kvaerno5
    rtol: float = jd.field(1e-10, above=0)  # relative tolerance of the solver per step
    size: int = jd.field(6, at_least=1)  # rows of U
    rank: int = jd.field(4, at_least=1)  # columns of U
    horizon: float = jd.field(4.0, above=0)  # time at which the flow ends
    samples: int = jd.field(32, at_least=1)  # times after the start at which flow and closed form are compared


def two_layer_trial(s: TwoLayer, key: PRNGKeyArray) -> jd.Observables:
    """A two-layer network from an aligned start, balanced or not, or from a balanced start in random directions."""
    # the target, and a start in its own or in turned directions
    k_u, k_v, k_r, k_a, k_b, k_s, k_start = jax.random.split(key, 7)
    k = min(s.inputs, s.hidden, s.outputs)
    u, turned_u = orthonormals((k_u, k_b), s.outputs, k)
    v, turned_v = orthonormals((k_v, k_a), s.inputs, k)
    values = spectrum(k_s, k, 0.5, 2.0, s.values)
    m = (u * values) @ v.T
    strength = s.strength * jax.random.uniform(k_start, (k,), jnp.float64, 0.5, 1.5)
    frames = s.start == "frames"
    left = jnp.where(frames, turned_u, u)
    right = jnp.where(frames, turned_v, v)
    known = jnp.where(s.start == "unbalanced", s.imbalance, 0.0)
    start = linear_start(strength, known + s.unknown, left, right, orthonormal(k_r, s.hidden, k))

    # the network's flow, by the solver of the setting
    ts = jnp.linspace(0.0, s.horizon, s.samples + 1, dtype=jnp.float64)
    solve = functools.partial(flow.gradient_flow, linear_loss, start, ts, m, rtol=s.rtol, atol=s.rtol / 100)
    sol = jax.lax.switch(s.solver.index, [functools.partial(solve, solver=name) for name in s.solver.names])

    # the closed form of this kind of start, for the Gram matrix of all weights
    def from_modes(strengths: Float[Array, " k"]) -> Float[Array, "d d"]:
        first, second = theory.factors(strengths, known)
        q = jnp.concatenate([v * first, u * second])
        return q @ q.T

    def aligned(t: Float[Array, ""]) -> Float[Array, "d d"]:
        return from_modes(theory.logistic_mode(t, values, strength))

    def unbalanced(t: Float[Array, ""]) -> Float[Array, "d d"]:
        apart = theory.unbalanced_mode(
            t, values, strength, jnp.where(known != 0, abs(known), 1.0)
        )  # the layers' order is no matter
        return from_modes(jnp.where(known != 0, apart, theory.logistic_mode(t, values, strength)))

    def rotating(t: Float[Array, ""]) -> Float[Array, "d d"]:
        return theory.balanced_gram(t, m, start)

    predicted = jax.vmap(lambda t: jax.lax.switch(s.start.index, [aligned, unbalanced, rotating], t))(ts)
    product = sol.ys.w2 @ sol.ys.w1
    q = jnp.concatenate([jnp.swapaxes(sol.ys.w1, -1, -2), sol.ys.w2], -2)
    measured = q @ jnp.swapaxes(q, -1, -2) if s.gram else product
    return jd.observables(
        predicted={"product": jd.named(predicted if s.gram else predicted[:, s.inputs :, : s.inputs], "time row col")},
        measured={"product": jd.named(measured, "time row col")},
        recorded={
            "t": jd.named(ts, "time"),
            "strengths": jd.named(jnp.einsum("oi,toj,ji->ti", u, product, v), "time mode"),
            "steps": sol.steps,
        },
        status=sol.status,
    )


def deep_trial(s: Deep, key: PRNGKeyArray) -> jd.Observables:
    """A network of ``depth`` square matrices, balanced and aligned; matrices beyond stay at the identity with rate 0."""
    k_rotation, k_s, k_start = jax.random.split(key, 3)
    d, n = s.width, s.depth
    # the start: one frame between any two layers, all matrices of the same strength but for the unknown part of the first
    rotations = orthonormals(jax.random.split(k_rotation, s.max_depth + 1), d, d)
    values = spectrum(k_s, d, 0.5, 1.5, s.values)
    strength = s.strength * jax.random.uniform(k_start, (d,), jnp.float64, 0.5, 1.5)
    even = strength ** (1 / n)
    first = jnp.sqrt(even**2 + jnp.where(n > 1, s.unknown, 0.0))
    others = even * (even / first) ** (1 / jnp.maximum(n - 1, 1))
    v, u = rotations[0], rotations[-1]

    def layer(i: int) -> Float[Array, "d d"]:
        out = jnp.where(n == i + 1, u, rotations[i + 1])
        into = rotations[i]
        active = (out * (first if i == 0 else others)) @ into.T
        return jnp.where(i < n, active, jnp.eye(d, dtype=jnp.float64))

    start = [layer(i) for i in range(s.max_depth)]
    rate = [jnp.where(i < n, 1.0, 0.0) for i in range(s.max_depth)]
    # the network's flow
    m = (u * values) @ v.T
    ts = jnp.linspace(0.0, s.horizon, s.samples + 1, dtype=jnp.float64)
    sol = flow.gradient_flow(deep_loss, start, ts, m, rate=rate, solver=s.solver, rtol=s.rtol, atol=s.rtol / 100)

    # the closed form of every mode
    over = jax.vmap(jax.vmap(theory.deep_mode, (None, 0, 0, None)), (0, None, None, None))
    modes = over(ts, values, strength, n + s.miscount)
    product = jax.vmap(deep_product)(sol.ys)
    return jd.observables(
        predicted={"product": jd.named(jnp.einsum("di,ti,ei->tde", u, modes, v), "time row col")},
        measured={"product": jd.named(product, "time row col")},
        recorded={
            "t": jd.named(ts, "time"),
            "strengths": jd.named(jnp.einsum("oi,toj,ji->ti", u, product, v), "time mode"),
            "steps": sol.steps,
        },
        status=sol.status,
    )


def symmetric_trial(s: Symmetric, key: PRNGKeyArray) -> jd.Observables:
    """A symmetric factorisation of a matrix with eigenvalues of both signs, from a random start."""
    k_m, k_values, k_u, k_split = jax.random.split(key, 4)
    vectors = orthonormal(k_m, s.size, s.size)
    values = spectrum(k_values, s.size, -0.5, 2.0)
    m = (vectors * values) @ vectors.T
    start = s.init * jax.random.normal(k_u, (s.size, s.rank), jnp.float64)
    offset = s.split * orthonormal(k_split, s.size, s.rank)
    ts = jnp.linspace(0.0, s.horizon, s.samples + 1, dtype=jnp.float64)
    sol = flow.gradient_flow(factor_loss, start, ts, m, offset, solver=s.solver, rtol=s.rtol, atol=s.rtol / 100)
    predicted = jax.vmap(lambda t: theory.symmetric_gram(t, m, start))(ts)
    gram = sol.ys @ jnp.swapaxes(sol.ys + offset, -1, -2)
    return jd.observables(
        predicted={"product": jd.named(predicted, "time row col")},
        measured={"product": jd.named(gram, "time row col")},
        recorded={
            "t": jd.named(ts, "time"),
            "strengths": jd.named(jnp.einsum("oi,toj,ji->ti", vectors, gram, vectors), "time mode"),
            "steps": sol.steps,
        },
        status=sol.status,
    )


SOLVERS = ["tsit5", "dopri8", "kvaerno5"]
PRECISION = 1e-7  # the solvers' relative tolerance is 1e-10 a step
PERTURBED = {"balance perturbed by 0.1": jd.Control({"unknown": 0.1}, breaks="balance")}
CAPTION = (
    "Left: entries of the network's linear map along one run; points from the solver, lines the closed form. "
    "Right: relative error over the trajectory, one point per run, and the bound (dashed)."
)


STILL = {"nothing moves": jd.off(jd.initial("time", "predicted_product"))}


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Closed form against the solver: relative error of the network's map over the whole trajectory."""
    error = jd.relative_error(ds, "product", "time row col")
    return [jd.at_most("relative error over the trajectory", error, PRECISION)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the map along one run, measured as points and predicted as lines; errors of all runs by solver."""
    left, right = fig.subplots(1, 2, width_ratios=(3, 2))
    first = plotting.first_run(ds)
    names = ("row", "col")
    predicted = first.predicted_product.stack(entry=names).transpose("entry", "time").values
    measured = first.measured_product.stack(entry=names).transpose("entry", "time").values
    left.plot(first.t.values, measured.T, "o", markersize=3, color=plotting.COLORS["measured"], alpha=0.6)
    plotting.lines(left, first.t.values, predicted, color=plotting.COLORS["theory"], alpha=0.9)
    left.set(xlabel="time", ylabel="entries of the map, one run")
    error = jd.relative_error(ds, "product", "time row col")
    axis = next((d for d in ("solver", *error.dims) if d in error.dims and error.sizes[d] > 1), "seed")
    labels = [str(v) for v in error[axis].values]
    for i in range(len(labels)):
        values = error.isel({axis: i})
        at = [i] * values.size
        points = right.plot(at, values.values.ravel(), "o", color=plotting.COLORS["measured"], alpha=0.4, markeredgewidth=0)
        plotting.of_runs(points, values)
    right.axhline(PRECISION, color=plotting.COLORS["theory"], linestyle="--", label="bound")
    right.set(yscale="log", xticks=range(len(labels)), xticklabels=labels, xlabel=axis, ylabel="relative error")


MAPS = "{seeds} seeds. The linear map of the network is compared with the closed form over the whole trajectory."
PAPER = jd.grid(TwoLayer, solver=SOLVERS, inputs=6, hidden=5, outputs=4)
two_layers = jd.Study(
    tested="Gradient flow of a linear network with {inputs} inputs, {hidden} hidden units and {outputs} outputs towards a random "
    "target, from a start of strength {strength}, until time {horizon}, by the solvers {solver}. " + MAPS,
    evidence="flow",
    bounds="derived: the solver's tolerance, a relative 1e-10 a step",
    rivals=STILL,
    trial=two_layer_trial,
    quick=jd.grid(TwoLayer, solver=SOLVERS),
    paper=PAPER,
    seeds=8,
    paper_seeds=64,
    judge=judge,
    plot=plot,
    caption=CAPTION,
    source="arXiv:1312.6120, growth of one mode",
)
deep = jd.Study(
    tested="Gradient flow of {depth} square weight matrices of width {width} towards a random target, from a start of strength "
    "{strength}, until time {horizon}. " + MAPS,
    evidence="flow",
    bounds="derived: the solver's tolerance, a relative 1e-10 a step",
    rivals=STILL,
    trial=deep_trial,
    quick=jd.grid(Deep, depth=[1, 2, 3, 4]),
    paper=jd.grid(Deep, solver=SOLVERS, depth=[1, 2, 3, 4, 5], max_depth=5, width=4),
    seeds=8,
    paper_seeds=64,
    judge=judge,
    plot=plot,
    caption=CAPTION,
    source="arXiv:1312.6120, deeper networks; N counts weight matrices, the paper counts layers of units",
)
symmetric = jd.Study(
    tested="Gradient flow of $U$ with {size} rows and {rank} columns, from random entries of size {init}, towards a random "
    "symmetric matrix with eigenvalues of both signs, until time {horizon}. {seeds} seeds. $UU^\\top$ is compared with the "
    "closed form over the whole trajectory.",
    evidence="flow",
    bounds="derived: the solver's tolerance, a relative 1e-10 a step",
    rivals=STILL,
    trial=symmetric_trial,
    quick=jd.grid(Symmetric, solver="dopri8"),
    paper=jd.grid(Symmetric, solver=SOLVERS, init=[0.1, 0.3]),
    seeds=8,
    paper_seeds=64,
    judge=judge,
    plot=plot,
    caption=CAPTION,
    source="symmetric case of the Riccati equation of Fukumizu 1998",
)

CLAIMS = (
    two_layers.claim(
        id="cal.saxe2",
        title="Two-layer linear networks learn each mode along a logistic curve",
        statement=r"Under gradient flow a balanced two-layer linear network with whitened inputs, aligned with its target's "
        r"singular vectors, learns each singular value $s$ independently: the strength $u$ of the mode obeys $\dot u = 2u(s-u)$, "
        r"so that $u(t) = s\,e^{2st}/(e^{2st} - 1 + s/u_0)$ from $u(0) = u_0$.",
        paper=PAPER.replace(strength=[0.01, 0.05, 0.2]),
        controls=PERTURBED,
    ),
    two_layers.claim(
        id="cal.unbalanced",
        title="The learning curve of a mode when the two layers are unbalanced",
        statement=r"In an aligned two-layer linear network under gradient flow, a mode of strength $u = ab$ whose two layers, of "
        r"strengths $a$ and $b$, have the conserved imbalance $a^2 - b^2 = c$ approaches its singular value $s$ by "
        r"$\dot u = \sqrt{c^2 + 4u^2}\,(s-u)$.",
        tested="As for cal.saxe2, from starts of strength {strength} with the imbalances {imbalance}; {seeds} seeds.",
        source="from the equations of arXiv:1312.6120 for one mode; solution derived here",
        quick=two_layers.quick.replace(start="unbalanced", imbalance=[0.1, 2.0]),
        paper=PAPER.replace(start="unbalanced", imbalance=[0.01, 0.1, 1.0, 5.0]),
        controls=PERTURBED,
    ),
    two_layers.claim(
        id="cal.riccati",
        title="Balanced two-layer linear networks have a closed-form solution",
        statement=r"For a two-layer linear network with target $\Sigma$ under gradient flow from a balanced start "
        r"($W_1W_1^\top = W_2^\top W_2$) in any directions, the Gram matrix of all weights, $QQ^\top$ with $Q = "
        r"[W_1^\top; W_2]$, obeys a Riccati equation with the solution $QQ^\top = e^{Ft}Q_0\bigl[I + "
        r"Q_0^\top\int_0^te^{2F\tau}d\tau\,Q_0\bigr]^{-1}Q_0^\top e^{Ft}$, where $Q_0$ is the start and $F$ has the blocks 0, "
        r"$\Sigma^\top$; $\Sigma$, 0. Its lower left block is the network's map $W_2W_1$.",
        tested="Gradient flow of a linear network with {inputs} inputs, {hidden} hidden units and {outputs} outputs towards a "
        "random target, from a balanced start of strength {strength} in random directions, until time {horizon}, by the solvers "
        r"{solver}; {seeds} seeds. All entries of $QQ^\top$ are compared with the closed form over the whole trajectory.",
        source="Braun et al., NeurIPS 2022 (any balanced start), after Fukumizu 1998",
        quick=two_layers.quick.replace(start="frames", strength=0.2, gram=True),
        paper=PAPER.replace(start="frames", strength=[0.01, 0.05, 0.5], gram=True),
        controls=PERTURBED,
        caption=CAPTION.replace("the network's linear map", r"$QQ^\top$"),
    ),
    deep.claim(
        id="cal.saxeN",
        title="The learning curve of a mode in a deep linear network",
        statement=r"Under gradient flow of $\tfrac12\|\Sigma - W_N \cdots W_1\|_F^2$ (whitened inputs), the strength $u$ of a mode "
        r"in a balanced network of $N$ weight matrices $W_i$, aligned with the singular vectors of the target $\Sigma$, approaches "
        r"its singular value $s$ from below by $\dot u = N\,u^{2-2/N}(s-u)$.",
        controls=PERTURBED | {"N counted as layers of units": jd.Control({"miscount": 1.0}, breaks="weight matrices")},
    ),
    symmetric.claim(
        id="cal.symmf",
        title="Symmetric matrix factorisation under gradient flow in closed form",
        statement=r"Gradient flow of $\tfrac14\|M - UU^\top\|_F^2$ with $M$ symmetric, $\dot U = (M - UU^\top)U$ from $U_0$, has "
        r"the solution $UU^\top = e^{Mt}U_0\bigl[I + 2U_0^\top\int_0^te^{2M\tau}d\tau\,U_0\bigr]^{-1}U_0^\top e^{Mt}$.",
        controls={"factors apart by 0.1": {"split": 0.1}},
    ),
)
