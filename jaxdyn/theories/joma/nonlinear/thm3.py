r"""Theorem 3: the population gradient of a nonlinear node on a mixture of isotropic components.

The network is in ``mixture.py``. The measured side is ``jax.grad`` of ``-g h``, averaged over samples; the theory has the centres,
the scale of the noise and ``a_c = E_c[g] P[c]``.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.dynamics.nonlinear import NOISES, mixture_field
from jaxdyn.theories.joma.nonlinear.model import Mixture, coordinates, features, sample, sample_instance, start_weights, utility

LEVEL = 0.997  # that all intervals of a check hold together; their errors are known from tens of thousands of samples
COORDINATE = 0.04  # by how much a coordinate may differ, over the root mean square size of the field over seeds
SIZE = 0.01  # by how much the size of the field over that of the theory may differ from 1


def field_trial(s: Mixture, key: PRNGKeyArray) -> jd.Observables:
    """(v', xi') by Theorem 3 and by the mean of per-sample gradients of the network, with standard errors."""
    # gradients of the network on samples
    k_instance, k_data = jax.random.split(key)
    one = sample_instance(k_instance, s.tokens, s.components, 0.5, 3.0)
    x, g = sample(k_data, one, s, s.samples // s.components)
    gradient = jax.vmap(jax.vmap(jax.grad(utility), (None, 0, 0, None)), (None, 0, 0, None))
    rates = coordinates(one, -gradient(start_weights(one), features(one, x), g, s.activation))

    # the theory
    def predict(**options: float) -> Float[Array, " d1"]:
        v, xi = mixture_field(one.v, one.xi, one.centres, one.g * one.share, s.activation, s.noise, s.spread, **options)
        return jnp.append(v, xi)

    rate, flat = predict(), predict(theta_norm=1.0)
    # means over the samples, of the coordinates and along the predicted field
    axis = rate / jnp.linalg.norm(rate)
    measured, error = _stratified(rates, one.share)
    along, along_error = _stratified((rates @ axis)[..., None], one.share)
    grain = one.share @ jnp.max(jnp.abs(g), 1) / x.shape[1]  # one sample: a ReLU may be inactive in all of them
    return jd.observables(
        predicted={"rate": jd.named(rate, "coordinate"), "size": rate @ axis},
        measured={"rate": jd.named(measured, "coordinate"), "size": along[0]},
        recorded={
            "error": jd.named(jnp.hypot(error, grain), "coordinate"),
            "size_error": jnp.hypot(along_error[0], grain),
            "without_xi": jd.named(predict(keep_xi=0.0), "coordinate"),
            "flat": jd.named(flat, "coordinate"),
            "flat_size": flat @ axis,
            "norm": jnp.linalg.norm(one.v),
        },
    )


def _stratified(rates: Float[Array, "C n k"], share: Float[Array, " C"]) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Population mean over components of the given shares, and its standard error."""
    variance = jnp.var(rates, axis=1, ddof=1) / rates.shape[1]
    return share @ jnp.mean(rates, axis=1), jnp.sqrt(share**2 @ variance)


def judge_field(ds: xr.Dataset) -> list[jd.Check]:
    """Every coordinate of every run against the theory, and the size of the field pooled over seeds, with Monte Carlo intervals.

    Errors are known from a run's own samples, and those of different seeds alone are pooled; that runs of one seed share random
    numbers matters to no interval (Bonferroni).
    """
    unit = np.sqrt((ds.predicted_rate**2).sum("coordinate", skipna=False).mean("seed"))
    miss = (ds.measured_rate - ds.predicted_rate) / unit
    weight = ds.size_error**-2
    total = (weight * ds.predicted_size**2).sum("seed", min_count=1)
    ratio = (weight * ds.predicted_size * ds.measured_size).sum("seed", min_count=1) / total

    def normal(values: xr.DataArray, error: xr.DataArray) -> Callable[[float], tuple[xr.DataArray, xr.DataArray]]:
        """Of a level: the ends of normal intervals that hold together."""

        def ends(level: float) -> tuple[xr.DataArray, xr.DataArray]:
            half = stats.bonferroni_z(max(int(values.count()), 1), level) * error
            return values - half, values + half

        return ends

    words = "coordinates minus the theory, over the size of the field"
    return [
        jd.interval_within(words, miss, normal(miss, ds.error / unit), low=-COORDINATE, high=COORDINATE, level=LEVEL),
        jd.interval_within(
            "size of the field / theory", ratio, normal(ratio, 1 / np.sqrt(total)), low=1 - SIZE, high=1 + SIZE, level=LEVEL
        ),
    ]


def plot_field(ds: xr.Dataset, fig: Figure) -> None:
    """Measured against predicted rates, and deviations in standard errors against the normal law."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.flat, ds.measured_rate, r"$\theta$ of $r$ alone", "failed", log=False)
    for kind, color in zip(ds.activation.values, plotting.CYCLE, strict=False):
        part = ds.sel(activation=kind)
        plotting.scatter(left, part.predicted_rate, part.measured_rate, str(kind), color, log=False)
    for predicted, label, color in ((ds.flat, r"$\theta$ of $r$ alone", "failed"), (ds.predicted_rate, "Theorem 3", "measured")):
        z = np.ravel((ds.measured_rate - predicted) / ds.error)
        z = np.sort(z[np.isfinite(z)])
        normal = scipy.stats.norm.ppf((np.arange(z.size) + 0.5) / max(z.size, 1))
        right.plot(normal, z, ".", color=plotting.COLORS[color], label=label)
    right.plot(normal, normal, color=plotting.COLORS["theory"], label="normal law")
    right.set_yscale("symlog", linthresh=5)  # deviations of the rival are up to thousands of standard errors
    right.set_yticks([-1000, -100, -5, 0, 5, 100, 1000], ["−1000", "−100", "−5", "0", "5", "100", "1000"])
    left.set(xlabel=r"predicted $\dot v_l,\ \dot\xi$", ylabel="gradient of the network")
    right.set(xlabel="normal quantile", ylabel="(measured − predicted) / s.e.")


GRID = jd.grid(Mixture, activation=list(model.ACTIVATIONS), noise=list(NOISES), samples=80_000)

CLAIMS = (
    jd.Claim(
        id="joma.thm3",
        talks=("training:joma-theorem-3",),
        title="The mean gradient of a nonlinear node on a mixture, in closed form",
        statement=r"At random weights $v$, the mean gradient of one node with activation $\phi$ under uniform attention on a "
        r"mixture of isotropic components, with a given upper gradient $g$ that is constant within each, is $\dot v = "
        r"\|v\|^{-1}\sum_c a_c\theta_1(r_c)\bar x_c + \|v\|^{-3}\sum_c a_c\theta_2(r_c)\,v$, $\dot\xi = \|v\|^{-1}\sum_c "
        r"a_c\theta_1(r_c)$, with $\theta_1(r) = \|v\| E[\phi'(r + \|v\|\epsilon_1)]$ and $\theta_2(r) = \|v\|^2 E[\phi'(r + "
        r"\|v\|\epsilon_1)\epsilon_1]$ ($\bar x_c$: centres, $a_c$: $g$ times the share of component $c$, $r_c = v\cdot\bar "
        r"x_c + \xi$, $\xi$: bias of the residual path, $\epsilon_1$: one coordinate of the noise): each coordinate to 4% of "
        r"the field's size in every run, and the size itself to 1%. So $\theta_1$ and $\theta_2$ depend on $\|v\|$, not on "
        "$r$ alone.",
        tested="Gradients of one node with {activation} activation at random weights, averaged over {samples} samples of a "
        "mixture of {components} components over {tokens} tokens, {noise} noise; seeds: {seeds}.",
        source="arXiv:2310.00535, Theorem 3",
        trial=field_trial,
        quick=GRID,
        paper=GRID.replace(samples=100_000),
        seeds=8,
        paper_seeds=64,
        evidence="algebra",
        bounds=jd.tuned(on="0:8", confirmed_on="31000000:31000008"),
        judge=judge_field,
        controls={"anisotropic noise": {"anisotropy": 0.8}, "g varies inside a component": {"g_slope": 0.5}},
        rivals={
            "no residual path: xi dropped": jd.swap(predicted_rate="without_xi"),
            r"$\theta_1$, $\theta_2$ of $r$ alone": jd.swap(predicted_rate="flat", predicted_size="flat_size"),
        },
        plot=plot_field,
        caption=r"Left: components of $\dot v$ and $\dot\xi$, mean gradient of the network over samples against the theorem; one "
        r"point per component and run, colours are activations; red: with $\theta_1$ and $\theta_2$ of $r$ alone. Right: "
        r"deviations in standard errors, sorted, against the quantiles of the normal law.",
    ),
)
