r"""Quadratics, where gradient descent and SGD with gradient noise have exact statistics at any step size.

Gradient descent is followed mode by mode; SGD in independent replicas, for its covariance after a few steps and in the stationary
state. Letters: h = curvatures, C = covariance of the gradient noise, S = stationary covariance.
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
from jaxdyn import plotting, train
from jaxdyn.theories.cal import dynamics as theory
from jaxdyn.theories.cal.model import quadratic_loss
from jaxdyn.theories.cal.spectra import orthonormal, require_falling


@jd.setting
class Modes:
    """Gradient descent on a random quadratic."""

    eta: jd.Swept = jd.field(0.2, above=0)  # step size of gradient descent
    noise: jd.Swept = 0.0  # standard deviation of gradient noise; 0 in the theorem
    momentum: jd.Swept = 0.0  # heavy-ball momentum; 0 in the theorem
    size: int = jd.field(6, at_least=1)  # dimensions of the quadratic
    curvatures: tuple[float, ...] | None = None  # of the modes; None: drawn
    steps: int = jd.field(32, at_least=1)  # steps of descent, all of them recorded

    def __post_init__(self) -> None:
        require_falling(self, "curvatures", self.size)


@jd.setting
class Noise:
    """SGD with gradient noise on a quadratic, in many runs; the standard error comes from the replicas."""

    eta: jd.Swept = jd.field(0.2, above=0)  # step size of SGD
    sigma: jd.Swept = 0.5  # standard deviation of the gradient noise
    curvature: jd.Swept = jd.field(1.3, above=0)  # h; of a random matrix the largest possible curvature
    momentum: jd.Swept = 0.0  # heavy-ball momentum; 0 in the theorem
    problem: jd.Code = jd.code("scalar", "matrix")  # multiple of the identity, or a random Hessian with correlated noise
    size: int = jd.field(4, at_least=1)  # dimensions of the quadratic
    replicas: int = jd.field(32, at_least=2)  # runs in which the stationary state is observed
    starts: int = jd.field(1024, at_least=1)  # runs of which only the first steps are observed
    burn_in: int = jd.field(128, at_least=1)  # steps of a replica before it counts as stationary
    steps: int = jd.field(1024, at_least=1)  # steps of a replica in the stationary state


TRANSIENT = (1, 2, 4, 8, 16, 32)


def modes_trial(s: Modes, key: PRNGKeyArray) -> jd.Observables:
    """Gradient descent on a random quadratic, mode by mode at every step."""
    k_vectors, k_values, k_start, k_noise = jax.random.split(key, 4)
    vectors = orthonormal(k_vectors, s.size, s.size)
    drawn = jax.random.uniform(k_values, (s.size,), jnp.float64, 0.1, 2.0)
    h = jnp.sort(drawn if s.curvatures is None else jnp.asarray(s.curvatures, jnp.float64))
    hessian = vectors @ (h[:, None] * vectors.T)
    x0 = 1 + jax.random.uniform(k_start, (s.size,), jnp.float64)

    def batch(step: Int[Array, ""]) -> Float[Array, " d"]:
        return s.noise * jax.random.normal(jax.random.fold_in(k_noise, step), (s.size,), jnp.float64)

    tx = optax.sgd(s.eta, momentum=s.momentum)
    step = train.make_step(lambda x, xi: quadratic_loss(x, xi, hessian), tx, batch)
    _, xs = train.record(step, train.init(tx, vectors @ x0), lambda c: c.params, samples=s.steps, every=1)
    modes = xs @ vectors
    steps = jnp.arange(1, s.steps + 1)
    exact = jax.vmap(lambda n: theory.mean_after(n, s.eta, h, x0))(steps)
    rate = -jnp.log(jnp.abs(modes[2] / modes[0])) / (2 * s.eta)
    return jd.observables(
        predicted={"amplitude": jd.named(exact, "step mode"), "rate": jd.named(theory.decay_rate(s.eta, h), "mode")},
        measured={"amplitude": jd.named(modes[1:], "step mode"), "rate": jd.named(rate, "mode")},
        recorded={"curvature": jd.named(h, "mode")},
        coords={"step": range(1, s.steps + 1)},
    )


def mean_and_error(xs: Float[Array, " replica *shape"], count: int) -> tuple[Float[Array, " *shape"], Float[Array, " *shape"]]:
    """Mean over replicas (leading axis) of a statistic, and its standard error."""
    return jnp.mean(xs, 0), jnp.std(xs, 0, ddof=1) / count**0.5


def noise_trial(s: Noise, key: PRNGKeyArray) -> jd.Observables:
    """SGD from the minimum: covariance after a few steps and in the stationary state, over independent replicas."""
    k_vectors, k_values, k_mix, k_noise, k_start = jax.random.split(key, 5)
    # the problem: curvatures h in random directions, and the covariance c of the noise
    d, matrix = s.size, s.problem == "matrix"
    vectors = jnp.where(matrix, orthonormal(k_vectors, d, d), jnp.eye(d, dtype=jnp.float64))
    h = jnp.where(matrix, jax.random.uniform(k_values, (d,), jnp.float64, 0.5, 1.0), 1.0) * s.curvature
    hessian = vectors @ (h[:, None] * vectors.T)
    mix = jnp.where(matrix, jax.random.normal(k_mix, (d, d), jnp.float64) / d**0.5, jnp.eye(d, dtype=jnp.float64)) * s.sigma
    c = mix @ mix.T

    def path(k: PRNGKeyArray, count: int) -> Float[Array, "step d"]:
        def batch(step: Int[Array, ""]) -> Float[Array, " d"]:
            return mix @ jax.random.normal(jax.random.fold_in(k, step), (d,), jnp.float64)

        tx = optax.sgd(s.eta, momentum=s.momentum)
        step = train.make_step(lambda x, xi: quadratic_loss(x, xi, hessian), tx, batch)
        first = train.init(tx, jnp.zeros((d,), jnp.float64))
        return train.record(step, first, lambda state: state.params, samples=count, every=1)[1]

    # the stationary state of the replicas, and the first steps of the other runs
    keys = jax.random.split(k_noise, s.replicas), jax.random.split(k_start, s.starts)
    xs, early = (jax.vmap(path, (0, None))(k, n) for k, n in zip(keys, (s.burn_in + s.steps, TRANSIENT[-1]), strict=True))
    late = xs[:, s.burn_in + 1 :]
    stationary, stationary_se = mean_and_error(jnp.einsum("rti,rtj->rij", late, late) / s.steps, s.replicas)
    transient = jnp.mean(jnp.sum(early[:, jnp.array(TRANSIENT)] ** 2, -1), 0)
    # the theory after the same number of steps
    grown = jax.vmap(lambda n: jnp.trace(theory.covariance_after(n, s.eta, h, vectors, c)))(jnp.array(TRANSIENT))
    return jd.observables(
        predicted={
            "covariance": jd.named(theory.stationary_covariance(s.eta, h, vectors, c), "row col"),
            "transient": jd.named(grown, "step"),
        },
        measured={"covariance": jd.named(stationary, "row col"), "transient": jd.named(transient, "step")},
        recorded={
            "covariance_error": jd.named(stationary_se, "row col"),
            "diffusion": jd.named(theory.diffusion_covariance(s.eta, h, vectors, c), "row col"),
        },
        coords={"step": TRANSIENT},
    )


VARIANCE = 0.01  # by how much the mean stationary variance may differ from the law, as a share of it
TRANSIENT_BOUND = 0.04  # the same for the variance after a few steps
ENTRY = 0.03  # by how much the mean of an entry of S may differ, in units of sqrt(S_ii S_jj)
SINGLE = 0.02  # the same in single problems, root mean square over entries and problems


def judge_modes(ds: xr.Dataset) -> list[jd.Check]:
    r"""The exact amplitudes at every step, the rate of every mode by its factor over two steps, and which modes grow.

    A rate :math:`r` is compared as the factor :math:`e^{-2\eta r} = (1-\eta\lambda)^2`. The rate itself is ill-conditioned where
    :math:`\eta\lambda` is near 1: rounding moves an amplitude by a share of the length of all d of them, and the logarithm of one
    that has almost vanished by that over what is left, so that among enough runs no bound on it holds. The error of the factor,
    over the largest factor of the run or 1, is bounded at any :math:`\eta\lambda`. In units of :math:`u = 2^{-53}`, to first order:

    - a step moves x by at most :math:`3.5d^2\eta\Lambda\|x\|`, with :math:`\Lambda` the largest curvature: the Hessian is a product
      of computed matrices (d^2), their columns are orthonormal to rounding (2 d^2), and products with it round (d^{1.5});
    - over two steps :math:`\eta\Lambda(1+\rho)/\max(1, \rho^2) \le 4` with :math:`\rho = |1-\eta\Lambda|`, which gives 14 d^2;
    - reading the modes at the start and at the end adds at most 1.5 d^2 each;
    - modes start between 1 and 2, so that :math:`\|x_0\|` is at most :math:`2\sqrt d` times any of them.

    Together :math:`34d^{2.5}u`; the bound is :math:`64d^{2.5}u`, which leaves room for terms of lower order. Whether a mode grows
    is asked where the factor differs from 1 by more than that.
    """
    largest = 32 * ds.sizes["mode"] ** 2.5 * np.finfo(np.float64).eps
    measured, predicted = (np.exp(-2 * ds.eta * rate) for rate in (ds.measured_rate, ds.predicted_rate))
    unit = np.maximum(measured.max("mode"), 1)
    exact = (1 - ds.eta * ds.curvature) ** 2
    wrong = ((measured > 1) != (exact > 1)) & (np.abs(exact - 1) > largest * unit)
    return [
        jd.at_most("relative error of the amplitudes", jd.relative_error(ds, "amplitude", "mode"), 1e-10),
        jd.at_most("error of a mode's factor over two steps, exp(-2 rate step)", np.abs(measured - predicted) / unit, largest),
        jd.at_most(
            "modes that do not grow exactly where the step size is above 2 / curvature, beyond rounding",
            wrong.where(measured.notnull()).sum(skipna=True),
            0,
        ),
    ]


def plot_modes(ds: xr.Dataset, fig: Figure) -> None:
    """Rates against the product of step size and curvature."""
    ax = fig.subplots()
    x = (ds.eta * ds.curvature).transpose(*ds.measured_rate.dims).values.ravel()
    order = np.argsort(x)
    ax.plot(x[order], (ds.predicted_rate / ds.curvature).values.ravel()[order], color=plotting.COLORS["theory"], label="predicted")
    measured = (ds.measured_rate / ds.curvature).values.ravel()
    ax.plot(x, measured, "o", color=plotting.COLORS["measured"], alpha=0.5, markeredgewidth=0, label="measured")
    ax.axvline(2, color=plotting.COLORS["control"], linestyle=":", label="edge of stability")
    ax.axhline(1, color=plotting.COLORS["control"], linestyle="--", label="gradient flow")
    ax.set(xlabel=r"$\eta\lambda$", ylabel=r"rate / $\lambda$")


def judge_variance(ds: xr.Dataset) -> list[jd.Check]:
    """Variances averaged over coordinates, and after a few steps, against the law: their means over seeds at every step size."""
    diagonal = xr.DataArray(np.eye(ds.sizes["row"]), dims=("row", "col"))
    stationary, law = (
        (side * diagonal).sum(["row", "col"], skipna=False) for side in (ds.measured_covariance, ds.predicted_covariance)
    )

    def excess(measured: xr.DataArray, predicted: xr.DataArray) -> xr.DataArray:
        """Over the mean of what is measured, which no theory can make zero."""
        return (measured - predicted) / measured.mean("seed")

    early = excess(ds.measured_transient, ds.predicted_transient)
    return [
        jd.mean_within(
            "stationary variance minus the law, relative", excess(stationary, law), over="seed", low=-VARIANCE, high=VARIANCE
        ),
        jd.mean_within(
            "variance after a few steps minus the law, relative", early, over="seed", low=-TRANSIENT_BOUND, high=TRANSIENT_BOUND
        ),
    ]


def judge_covariance(ds: xr.Dataset) -> list[jd.Check]:
    """Entries of the covariance against the law in units of sqrt(S_ii S_jj): their means over seeds, and single problems."""
    variance = (ds.measured_covariance * xr.DataArray(np.eye(ds.sizes["row"]), dims=("row", "col"))).sum("col", skipna=False)
    unit = np.sqrt(variance * variance.rename(row="col"))
    miss, error = (ds.measured_covariance - ds.predicted_covariance) / unit, ds.covariance_error / unit
    row, col = (xr.DataArray(i, dims="entry") for i in np.triu_indices(ds.sizes["row"]))
    squares = (miss**2 - error**2).mean(["row", "col"], skipna=False)
    return [
        jd.mean_within("entries of S minus the law", miss.isel(row=row, col=col), over="seed", low=-ENTRY, high=ENTRY),
        jd.rms_within("entries of S minus the law, root mean square over problems", squares, over="seed", high=SINGLE),
    ]


def plot_variance(ds: xr.Dataset, fig: Figure) -> None:
    """Stationary variances against the step size, with the exact formula and the diffusion limit."""
    ax = fig.subplots()
    entry = xr.DataArray(range(ds.sizes["row"]), dims="entry")
    picked = ds.isel(row=entry, col=entry)
    plotting.band(ax, ds.eta, picked.measured_covariance, "measured", marker="o", linestyle="none")
    first = plotting.first_run(picked, "eta").isel(entry=0)
    ax.plot(ds.eta, first.predicted_covariance, "--", color=plotting.COLORS["theory"], label=r"$\eta\sigma^2/(h(2-\eta h))$")
    ax.plot(ds.eta, first.diffusion, ":", color=plotting.COLORS["control"], label=r"$\eta\sigma^2/(2h)$")
    ax.set(xlabel=r"step size $\eta$", ylabel="stationary variance", xscale="log", yscale="log")


def plot_covariance(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the stationary covariance against their predictions."""
    plotting.scatter(fig.subplots(), ds.predicted_covariance, ds.measured_covariance, "entries of S", log=False)


TUNED = jd.tuned(on="0:32", confirmed_on="31000000:31000032")
modes = jd.Study(
    evidence="algebra",  # descent on a bare quadratic
    bounds="derived: float64 rounding of products with a d x d matrix, 64 d^2.5 units over two steps",
    trial=modes_trial,
    quick=jd.grid(Modes, eta=[0.1, 0.3, 0.6, 1.1, 1.6]),
    seeds=8,
    paper_seeds=64,
    source="linear recursion of one mode; derived here",
    tested="Random quadratics in {size} dimensions with curvatures from 0.1 to 2, {steps} steps at step sizes {eta}, on both "
    "sides of stability; {seeds} seeds.",
)
PAPER = jd.grid(Noise, eta=[0.05, 0.1, 0.2, 0.46, 0.92], steps=8192)
scalar = jd.Study(
    evidence="algebra",
    bounds=TUNED,
    trial=noise_trial,
    quick=jd.grid(Noise, eta=[0.2, 0.46, 0.92]),
    paper=PAPER,
    seeds=32,
    paper_seeds=64,
    source="arXiv:2012.03636, in one dimension without momentum",
    tested="{size} independent coordinates of curvature {curvature} with noise of standard deviation {sigma}, step sizes {eta}: "
    "the stationary state in {replicas} runs of {steps} steps, the first 32 steps in {starts} runs from the minimum; {seeds} "
    "seeds.",
)

CLAIMS = (
    modes.claim(
        id="cal.quadratic_rate",
        title="Exact rate and stability of gradient descent on a quadratic",
        statement=r"On a quadratic, each step of gradient descent of size $\eta$ multiplies the mode of curvature $\lambda$ by "
        r"$1-\eta\lambda$: it decays at the rate $-\ln|1-\eta\lambda|/\eta$, and grows if and only if $\eta > 2/\lambda$.",
        decides={
            "if and only if": (
                "modes that do not grow exactly where the step size is above 2 / curvature, beyond rounding",
                "momentum",
            )
        },
        judge=judge_modes,
        controls={"momentum": jd.Control({"momentum": 0.5}, breaks="gradient descent"), "gradient noise": {"noise": 0.1}},
        rivals={
            "nothing moves": jd.initial("step", "predicted_amplitude", predicted_rate=0.0),
            r"rate $\lambda$ of gradient flow": jd.swap(predicted_rate="curvature"),
        },
        plot=plot_modes,
        caption=r"Rate of each mode over its curvature $\lambda$, against $\eta\lambda$: points are the modes of all runs, the "
        r"line is $-\ln|1-\eta\lambda|/(\eta\lambda)$; dashed the rate of gradient flow, dotted the edge of stability.",
    ),
    scalar.claim(
        id="cal.sgd_var",
        title="The exact variance of SGD with gradient noise on a quadratic",
        statement=r"SGD with step size $\eta$ on a quadratic of curvature $h$ with gradient noise of variance $\sigma^2$ has, "
        r"after $n$ steps from the minimum, the variance $\eta^2\sigma^2(1-r^{2n})/(1-r^2)$ with $r = 1-\eta h$, and for $\eta h "
        r"< 2$ in the stationary state $\eta\sigma^2/(h(2-\eta h))$; means over runs are within 4% of the former and within 1% of "
        "the latter.",
        judge=judge_variance,
        controls={"momentum": jd.Control({"momentum": 0.5}, breaks="SGD")},
        rivals={
            "noise leaves no variance": jd.swap(predicted_covariance=0.0, predicted_transient=0.0),
            r"diffusion limit $\eta\sigma^2/(2h)$": jd.swap(predicted_covariance="diffusion"),
        },
        plot=plot_variance,
        caption="Stationary variance of a coordinate against the step size: points and band are the median and the central 90% "
        "of runs and coordinates, the dashed line the exact formula, the dotted line the diffusion limit.",
    ),
    scalar.claim(
        id="cal.sgd_cov",
        title="The stationary covariance of SGD solves a matrix equation",
        statement=r"On a quadratic with Hessian $H$ and gradient noise of covariance $C$ the stationary covariance $S$ of SGD "
        r"with step size $\eta < 2/\|H\|$ solves $HS + SH - \eta HSH = \eta C$: in units of $\sqrt{S_{ii}S_{jj}}$, each entry is "
        r"within .03 of the solution on average over problems, and the root mean square deviation in single problems, after "
        "removing sampling error, is at most .02.",
        tested="Random quadratics in {size} dimensions with correlated noise, step sizes {eta}: the stationary state in "
        "{replicas} runs of {steps} steps; {seeds} problems.",
        source="arXiv:2012.03636, stationary covariance without momentum",
        quick=scalar.quick.replace(problem="matrix"),
        paper=PAPER.replace(problem="matrix"),
        judge=judge_covariance,
        controls={"momentum": jd.Control({"momentum": 0.5}, breaks="SGD")},
        rivals={
            "noise leaves no variance": jd.swap(predicted_covariance=0.0),
            r"diffusion limit $HS + SH = \eta C$": jd.swap(predicted_covariance="diffusion"),
        },
        plot=plot_covariance,
        caption="Entries of the stationary covariance, measured over the replicas of a run, against the solution of the "
        "equation; one point per entry and run.",
    ),
)
