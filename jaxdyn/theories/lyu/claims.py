r"""Claims on the switch from the kernel's predictor to the sparse one, its time and its whole course.

Time is in units of 1/lambda. Letters as in ``dynamics.py``; the error is the squared distance of w from the truth, which is
sparse, over the truth's square: the population's loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import flow, plotting, stats
from jaxdyn.errors import given
from jaxdyn.theories.lyu import dynamics, model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Switch", "trial"]

SOURCE = "arXiv:2311.18817, theorems 3.9 and 3.10, for the network of its section 3.2.3"
FITTED = 0.25  # by then, in units of 1/lambda, the data are fitted
AFTER = 6.0  # units of 1/lambda recorded after ln(alpha)


@jd.setting
class Switch:
    """Gradient flow of the diagonal network; a decay that is not ``acting`` and a start that is shrunk are breaches."""

    alpha: jd.Swept = 8.0
    decay: jd.Swept = 0.01
    acting: jd.Code = jd.code("yes", "no")
    shrink: jd.Swept = 1.0  # multiplies the start, not what the theory and the clock take it for
    samples: int = 12
    inputs: int = 24
    active: int = 2
    records: int = 64

    def __post_init__(self) -> None:
        """Refuse data that determine the weight, and scales and decays that are not positive."""
        if not 0 < self.active < self.samples < self.inputs or self.records < 8:
            found = given(self, "active", "samples", "inputs", "records")
            raise jd.UsageError(f"active < samples < inputs, and at least 8 records, {found}")
        if min(self.alpha, self.decay, self.shrink) <= 0:
            raise jd.UsageError(f"alpha, decay and shrink are positive, {given(self, 'alpha', 'decay', 'shrink')}")


def trial(s: Switch, key: PRNGKeyArray) -> jd.Observables:
    """The network's error and effective weight along the flow, beside the entropic path."""
    data = model.sample(key, s.samples, s.inputs, s.active)
    time = jnp.linspace(0, jnp.abs(jnp.log(s.alpha)) + AFTER, s.records + 1, dtype=jnp.float64)
    decay = jnp.where(s.acting == 0, s.decay, 0.0)
    start = model.init(s.alpha * s.shrink, s.inputs)
    options = {"solver": "kvaerno5", "rtol": 1e-7, "atol": 1e-10}  # fitting is stiff: 4 alpha^2 against lambda
    found = flow.gradient_flow(model.loss, start, time / s.decay, data, decay, **options)
    w, product = jax.vmap(model.weight)(found.ys), jnp.abs(found.ys.u * found.ys.v)
    said = dynamics.path(data, s.alpha * jnp.exp(-time))
    near = dynamics.kernel(data)

    def error(w: Float[Array, "... d"]) -> Float[Array, "..."]:
        return jnp.sum(jnp.square(w - data.truth), -1) / jnp.sum(jnp.square(data.truth))

    half = error(near) / 2
    first = jnp.argmax(time >= FITTED)  # before it w is still growing from zero

    def switch(w: Array) -> Array:
        e = error(w)
        return dynamics.crossing(time, jnp.where(jnp.arange(len(time)) < first, e[first], e), half)

    early = jnp.argmin(jnp.abs(time - jnp.abs(jnp.log(s.alpha)) / 2))
    return jd.observables(
        predicted={
            "switch": switch(said),
            "error": jd.named(error(said), "record"),
            "product": jd.named(jnp.square(s.alpha) * jnp.exp(-2 * time), "record"),
        },
        measured={
            "switch": switch(w),
            "error": jd.named(error(w), "record"),
            "product": jd.named(jnp.mean(product, 1), "record"),
        },
        recorded={
            "time": jd.named(time, "record"),
            "kernel_error": error(near),
            "early": jnp.linalg.norm(w[early] - near) / jnp.linalg.norm(near),
            "spread": jnp.max(product / jnp.mean(product, 1, keepdims=True)) - 1,
            "fitted": jd.named(jnp.where(time >= FITTED, 1.0, 0.0), "record"),
        },
        status=found.status,
    )


def _limit(ds: xr.Dataset, name: str) -> xr.DataArray:
    """A measurement at vanishing decay, from the two smallest decays, of which one is half the other."""
    if ds.sizes["decay"] < 2 or not np.isclose(float(ds.decay[-2] / ds.decay[-1]), 2):
        raise jd.Inconclusive("the limit of vanishing decay needs two decays, the last half of the one before")
    values = ds[f"measured_{name}"]
    return stats.richardson(values.isel(decay=-2, drop=True), values.isel(decay=-1, drop=True))


def judge_switch(ds: xr.Dataset) -> list[jd.Check]:
    """The time of the switch, its slope in ln alpha, its dependence on lambda, and the two predictors."""
    if ds.sizes["alpha"] < 3:
        raise jd.Inconclusive("a slope in ln(alpha) needs at least three values of alpha")
    limit, predicted = _limit(ds, "switch"), ds.predicted_switch.isel(decay=-1, drop=True)
    x = np.log(ds.alpha) - np.log(ds.alpha).mean()
    slopes = [(x * y).sum("alpha", skipna=False) / (x * x).sum("alpha") for y in (ds.measured_switch, ds.predicted_switch)]
    late = ds.measured_switch - ds.predicted_switch
    order = np.log2(late.isel(decay=-2, drop=True) / late.isel(decay=-1, drop=True))
    last = ds.isel(decay=-1)
    return [
        jd.within("slope of lambda t in ln(alpha), less the predicted one", slopes[0] - slopes[1], -0.02, 0.02),
        jd.at_most("lambda t of the switch at vanishing lambda, off the predicted one", abs(limit - predicted), 0.05),
        jd.within("power of lambda in what is left at finite lambda", order.median(["seed", "alpha"]), 0.85, 1.15),
        jd.at_most("distance from the kernel's predictor at half of ln(alpha), largest alpha", last.early.isel(alpha=-1), 0.05),
        jd.at_most("last error over the kernel predictor's", last.measured_error.isel(record=-1) / last.kernel_error, 0.15),
    ]


def judge_path(ds: xr.Dataset) -> list[jd.Check]:
    """The conserved product, and the whole course of the error."""
    fitted, size = ds.fitted.isel(decay=-1, drop=True) > 0, ds.kernel_error.isel(decay=-1, drop=True)
    off = (_limit(ds, "error") - ds.predicted_error.isel(decay=-1, drop=True)) / size
    return [
        jd.at_most("relative error of the products u v", jd.relative_error(ds, "product"), 1e-4),
        jd.at_most("spread of the products over inputs", ds.spread, 1e-4),
        jd.at_most("error at vanishing lambda off the predicted one, over the kernel's", abs(off).where(fitted), 0.05),
    ]


def plot_switch(ds: xr.Dataset, fig: Figure) -> None:
    """Error against time for every alpha; the time of the switch against ln(alpha)."""
    left, right = fig.subplots(1, 2)
    one = ds.isel(decay=-1, seed=0)
    for i, color in zip(range(ds.sizes["alpha"]), ("measured", "third", "fourth", "fifth"), strict=False):
        at = one.isel(alpha=i)
        left.plot(at.time, at.measured_error, color=plotting.COLORS[color], label=rf"$\alpha = {float(at.alpha):g}$")
        left.plot(at.time, at.predicted_error, ":", color=plotting.COLORS["theory"], label=None if i else "predicted")
    left.set(xlabel=r"$\lambda t$", ylabel="error", ylim=(0, None))
    for i, color in zip(range(ds.sizes["decay"]), ("third", "measured", "fourth"), strict=False):
        at = ds.isel(decay=i)
        name = rf"$\lambda = {float(at.decay):g}$"
        plotting.band(right, np.log(ds.alpha), at.measured_switch.transpose("seed", "alpha"), name, color, marker="o", linestyle="")
    plotting.band(right, np.log(ds.alpha), at.predicted_switch.transpose("seed", "alpha"), "predicted", "theory")
    right.set(xlabel=r"$\ln\alpha$", ylabel=r"$\lambda t$ of the switch")


_SHARED = {
    "trial": trial,
    "quick": jd.grid(Switch, alpha=[4.0, 8.0, 16.0], decay=[0.01, 0.005]),
    "paper": jd.grid(Switch, alpha=[4.0, 8.0, 16.0, 32.0], decay=[0.01, 0.005, 0.0025], samples=24, inputs=64, active=3),
    "seeds": 8,
    "paper_seeds": 32,
    "source": SOURCE,
}

_NONE = {"no decay": {"acting": "no"}}

CLAIMS = (
    jd.Claim(
        id="lyu.dichotomy",
        statement=r"From a start of size $\alpha$ with weight decay $\lambda$ the network keeps to the interpolator of least "
        r"2-norm until $t \approx \ln\alpha/\lambda$ and then goes over to the sparse one of least 1-norm: $\lambda t$ of the "
        r"switch is $\ln\alpha - \ln\varepsilon_c + O(\lambda)$, with an $\varepsilon_c$ that only the data set.",
        judge=judge_switch,
        controls=_NONE
        | {
            "small start": {"shrink": 0.01},
            "the rate of the product uv": lambda ds: ds.assign(predicted_switch=ds.predicted_switch / 2),
        },
        plot=plot_switch,
        **_SHARED,
    ),
    jd.Claim(
        id="lyu.path",
        statement=r"All along $uv = \varepsilon^2$ with $\varepsilon = \alpha e^{-\lambda t}$, and for small $\lambda$ the "
        r"predictor is the interpolator of least hyperbolic entropy of scale $\varepsilon$.",
        judge=judge_path,
        controls=_NONE
        | {
            "a scale that stays": lambda ds: ds.assign(predicted_error=xr.ones_like(ds.predicted_error) * ds.kernel_error),
        },
        plot=plot_switch,
        **(_SHARED | {"source": "derived here; the potential is that of arXiv:2002.09277, section 4"}),
    ),
)
