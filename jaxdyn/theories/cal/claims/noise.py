r"""Claims on quadratics, where gradient descent and SGD have exact statistics at any step size."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import linalg, plotting, train
from jaxdyn.stats import bonferroni_z
from jaxdyn.theories.cal.dynamics import noise as theory
from jaxdyn.theories.cal.model import quadratic_loss
from jaxdyn.theories.cal.setting import Modes, Noise

__all__ = ["CLAIMS", "modes_trial", "noise_trial"]

TRANSIENT = (1, 2, 4, 8, 16, 32)
SQUARED = 2.0  # where 1 is expected: the mean over 8 seeds scatters by 0.2 to 0.3 (256 seeds in groups of 8)
LEVEL = 0.9973  # a two-sided test at three standard errors, for the whole family of comparisons


def _orthogonal(key: PRNGKeyArray, d: int) -> Array:
    return linalg.qr(jax.random.normal(key, (d, d), jnp.float64))[0]


def modes_trial(s: Modes, key: PRNGKeyArray) -> jd.Observables:
    """Gradient descent on a random quadratic, mode by mode at every step."""
    k_vectors, k_values, k_start, k_noise = jax.random.split(key, 4)
    vectors = _orthogonal(k_vectors, s.size)
    h = jnp.sort(jax.random.uniform(k_values, (s.size,), jnp.float64, 0.1, 2.0))
    hessian = vectors @ (h[:, None] * vectors.T)
    x0 = 1 + jax.random.uniform(k_start, (s.size,), jnp.float64)

    def batch(step: Int[Array, ""]) -> Array:
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


def judge_modes(ds: xr.Dataset) -> list[jd.Check]:
    """The exact amplitudes at every step, the rate of every mode, and which modes grow."""
    grows = np.abs(ds.measured_amplitude.isel(step=-1)) > np.abs(ds.measured_amplitude.isel(step=0))
    wrong = (grows != (ds.eta * ds.curvature > 2)).where(ds.measured_rate.notnull())
    miss = np.abs(ds.measured_rate - ds.predicted_rate) / ds.curvature
    return [
        jd.at_most("relative error of the amplitudes", jd.relative_error(ds, "amplitude", "mode"), 1e-10),
        jd.at_most("error of the rate, in units of the curvature", miss, 1e-6),
        jd.at_most(r"modes that do not grow exactly where the step size is above 2 / curvature", wrong.sum(skipna=True), 0),
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


def _statistics(xs: Array, count: int) -> tuple[Array, Array]:
    """Mean over replicas (leading axis) of a statistic, and its standard error."""
    return jnp.mean(xs, 0), jnp.std(xs, 0, ddof=1) / count**0.5


def noise_trial(s: Noise, key: PRNGKeyArray) -> jd.Observables:
    """SGD from the minimum: covariance after a few steps and in the stationary state, over independent replicas."""
    k_vectors, k_values, k_mix, k_noise = jax.random.split(key, 4)
    d, matrix = s.size, s.problem == 1
    vectors = jnp.where(matrix, _orthogonal(k_vectors, d), jnp.eye(d, dtype=jnp.float64))
    h = jnp.where(matrix, jax.random.uniform(k_values, (d,), jnp.float64, 0.5, 1.0), 1.0) * s.curvature
    hessian = vectors @ (h[:, None] * vectors.T)
    mix = jnp.where(matrix, jax.random.normal(k_mix, (d, d), jnp.float64) / d**0.5, jnp.eye(d, dtype=jnp.float64)) * s.sigma
    c = mix @ mix.T

    def replica(k: PRNGKeyArray) -> Array:
        def batch(step: Int[Array, ""]) -> Array:
            return mix @ jax.random.normal(jax.random.fold_in(k, step), (d,), jnp.float64)

        tx = optax.sgd(s.eta, momentum=s.momentum)
        step = train.make_step(lambda x, xi: quadratic_loss(x, xi, hessian), tx, batch)
        first = train.init(tx, jnp.zeros((d,), jnp.float64))
        return train.record(step, first, lambda state: state.params, samples=s.burn_in + s.steps, every=1)[1]

    xs = jax.vmap(replica)(jax.random.split(k_noise, s.replicas))  # (replica, step, entry)
    late = xs[:, s.burn_in + 1 :]
    stationary, stationary_se = _statistics(jnp.einsum("rti,rtj->rij", late, late) / s.steps, s.replicas)
    early = xs[:, jnp.array(TRANSIENT)]
    transient, transient_se = _statistics(jnp.sum(early**2, -1), s.replicas)
    grown = jax.vmap(lambda n: jnp.trace(theory.covariance_after(n, s.eta, h, vectors, c)))(jnp.array(TRANSIENT))
    return jd.observables(
        predicted={
            "covariance": jd.named(theory.stationary_covariance(s.eta, h, vectors, c), "row col"),
            "transient": jd.named(grown, "step"),
        },
        measured={"covariance": jd.named(stationary, "row col"), "transient": jd.named(transient, "step")},
        recorded={
            "covariance_error": jd.named(stationary_se, "row col"),
            "transient_error": jd.named(transient_se, "step"),
            "diffusion": jd.named(theory.diffusion_covariance(s.eta, h, vectors, c), "row col"),
        },
        coords={"step": TRANSIENT},
    )


def _family_bound(count: int) -> float:
    return bonferroni_z(count, LEVEL)


def judge_variance(ds: xr.Dataset) -> list[jd.Check]:
    """Variances averaged over coordinates and seeds, in standard errors."""
    diagonal = xr.DataArray(np.eye(ds.sizes["row"]) / ds.sizes["row"], dims=("row", "col"))
    spread = ((ds.measured_covariance - ds.predicted_covariance) * diagonal).sum(["row", "col"], skipna=False)
    error = np.sqrt(((ds.covariance_error * diagonal) ** 2).sum(["row", "col"], skipna=False))
    checks = []
    for name, miss, se in (
        ("stationary variance", spread, error),
        ("variance after a few steps", ds.measured_transient - ds.predicted_transient, ds.transient_error),
    ):
        z = np.abs(miss.mean("seed")) / (np.sqrt((se**2).mean("seed") / se.count("seed")))
        checks.append(jd.at_most(f"{name}, in standard errors", z, _family_bound(z.size)))
    return checks


def judge_covariance(ds: xr.Dataset) -> list[jd.Check]:
    """Entries of the covariance averaged over seeds, and single ones on average, in standard errors."""
    miss, se = ds.measured_covariance - ds.predicted_covariance, ds.covariance_error
    z = np.abs(miss.mean("seed")) / np.sqrt((se**2).mean("seed") / se.count("seed"))
    d = ds.sizes["row"]
    return [
        jd.at_most("covariance over seeds, in standard errors", z, _family_bound(z.size * (d + 1) // (2 * d))),
        jd.at_most("mean squared deviation of single runs, in standard errors", ((miss / se) ** 2).mean(), SQUARED),
    ]


def _diffusion(ds: xr.Dataset) -> xr.Dataset:
    return ds.assign(predicted_covariance=ds.diffusion)


def plot_variance(ds: xr.Dataset, fig: Figure) -> None:
    """Stationary variances against the step size, with the exact formula and the diffusion limit."""
    ax = fig.subplots()
    entry = xr.DataArray(range(ds.sizes["row"]), dims="entry")
    picked = ds.isel(row=entry, col=entry)
    plotting.band(ax, ds.eta, picked.measured_covariance, "measured", marker="o", linestyle="none")
    first = picked.isel(entry=0, seed=0)
    ax.plot(ds.eta, first.predicted_covariance, "--", color=plotting.COLORS["theory"], label=r"$\eta\sigma^2/(h(2-\eta h))$")
    ax.plot(ds.eta, first.diffusion, ":", color=plotting.COLORS["control"], label=r"$\eta\sigma^2/(2h)$")
    ax.set(xlabel=r"step size $\eta$", ylabel="stationary variance", xscale="log", yscale="log")


def plot_covariance(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the stationary covariance against their predictions."""
    plotting.scatter(fig.subplots(), ds.predicted_covariance, ds.measured_covariance, "entries of S", log=False)


CLAIMS = (
    jd.Claim(
        id="cal.quadratic_rate",
        statement=r"On a quadratic, gradient descent multiplies the mode of curvature $\lambda$ by $1-\eta\lambda$ a step: "
        r"its rate is $-\ln|1-\eta\lambda|/\eta = \lambda + \eta\lambda^2/2 + \dots$, and it is stable if and only if "
        r"$\eta < 2/\lambda$.",
        source="linear recursion of one mode; derived here",
        trial=modes_trial,
        quick=jd.grid(Modes, eta=[0.1, 0.3, 0.6, 1.1, 1.6]),
        seeds=8,
        paper_seeds=64,
        judge=judge_modes,
        controls={
            r"rate $\lambda$ of gradient flow": lambda ds: ds.assign(predicted_rate=ds.curvature + 0 * ds.predicted_rate),
            "momentum": {"momentum": 0.5},
            "gradient noise": {"noise": 0.1},
        },
        plot=plot_modes,
    ),
    jd.Claim(
        id="cal.sgd_var",
        statement=r"SGD on a quadratic with gradient noise $\sigma^2$ has the variance $\eta^2\sigma^2(1-r^{2n})/(1-r^2)$ "
        r"after $n$ steps, $r = 1-\eta h$, and the stationary one $\eta\sigma^2/(h(2-\eta h))$.",
        source="arXiv:2012.03636, in one dimension without momentum",
        trial=noise_trial,
        quick=jd.grid(Noise, eta=[0.2, 0.46, 0.92]),
        paper=jd.grid(Noise, eta=[0.05, 0.1, 0.2, 0.46, 0.92], steps=8192),
        seeds=8,
        paper_seeds=64,
        judge=judge_variance,
        controls={r"diffusion limit $\eta\sigma^2/(2h)$": _diffusion, "momentum": {"momentum": 0.5}},
        plot=plot_variance,
    ),
    jd.Claim(
        id="cal.sgd_cov",
        statement=r"In several dimensions the stationary covariance of SGD solves $HS + SH - \eta HSH = \eta C$.",
        source="arXiv:2012.03636, stationary covariance without momentum",
        trial=noise_trial,
        quick=jd.grid(Noise, eta=[0.2, 0.46, 0.92], problem="matrix"),
        paper=jd.grid(Noise, eta=[0.05, 0.1, 0.2, 0.46, 0.92], problem="matrix", steps=8192),
        seeds=8,
        paper_seeds=64,
        judge=judge_covariance,
        controls={r"diffusion limit $HS + SH = \eta C$": _diffusion, "momentum": {"momentum": 0.5}},
        plot=plot_covariance,
    ),
)
