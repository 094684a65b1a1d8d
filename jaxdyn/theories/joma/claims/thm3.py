r"""Theorem 3: the population gradient of a nonlinear node on a mixture of isotropic components.

The network is one node under uniform attention: ``f = U_C x + u_m``, ``h = phi(w . f)``, with samples ``x = centre_c + eps`` of
component ``c`` and a given upper gradient ``g`` that is constant within a component. Its gradient is ``jax.grad`` of
``-E[g h]`` on drawn samples; the theory sees only the centres, the scale of the noise and ``a_c = E_c[g] P[c]``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.theories.joma import model
from jaxdyn.theories.joma.dynamics.nonlinear import NOISES, mixture_field

SOURCE = "arXiv:2310.00535, Theorem 3"
KINDS = model.ACTIVATIONS
LEVEL = 0.99  # family level of simultaneous tests
FORMS = ("printed", "derived")


@jd.setting
class Mixture:
    """One node on a mixture: ``samples`` in all, shared equally by the components; ``anisotropy`` and ``g_slope`` are breaches."""

    activation: jd.Code = jd.code(*KINDS)
    noise: jd.Code = jd.code(*NOISES)
    spread: jd.Swept = 0.5  # standard deviation of a noise coordinate
    anisotropy: jd.Swept = 0.0  # alternating variances spread^2 (1 +- anisotropy)
    g_slope: jd.Swept = 0.0  # slope of g along a random direction inside each component
    tokens: int = 12
    components: int = 4
    samples: int = 20_000

    def __post_init__(self):
        if self.tokens < 3 or self.components < 1 or self.samples < 2 * self.components:
            raise ValueError("a mixture needs tokens >= 3, components >= 1 and at least 2 samples a component")
        if not -1 <= self.anisotropy <= 1:
            raise ValueError(f"anisotropy must lie in [-1, 1], got {self.anisotropy}")


class Instance(NamedTuple):
    """What a run's key fixes: components, upper gradients, embeddings, the start, and a direction for ``g_slope``."""

    centres: Float[Array, "C d"]
    share: Float[Array, " C"]
    g: Float[Array, " C"]
    v: Float[Array, " d"]
    xi: Float[Array, ""]
    tokens: Float[Array, "D d"]
    query: Float[Array, " D"]
    direction: Float[Array, " d"]


def draw(key: PRNGKeyArray, d: int, components: int, low: float, high: float) -> Instance:
    """A random mixture and a start whose norm lies in [low, high] (log-uniform)."""
    k_normal, k_norm, k_embed = jax.random.split(key, 3)
    tokens, query = model.embed(k_embed, d + 1, d, 1)
    sizes = np.cumsum([components * d, d, d, components, components])
    normals = jax.random.normal(k_normal, (sizes[-1] + 1,), jnp.float64)  # one draw, sliced: one program
    centres, v, direction, share, g, xi = jnp.split(normals, sizes)
    norm = low * (high / low) ** jax.random.uniform(k_norm, (), jnp.float64)
    return Instance(
        centres=2 * centres.reshape(components, d) / d**0.5,
        share=jax.nn.softmax(0.5 * share),
        g=g,
        v=norm * v / jnp.linalg.norm(v),
        xi=0.5 * norm * xi[0],
        tokens=tokens,
        query=query[:, 0],
        direction=direction / jnp.linalg.norm(direction),
    )


def sample(key: PRNGKeyArray, one: Instance, s: Mixture, each: int) -> tuple[Float[Array, "C n d"], Float[Array, "C n"]]:
    """``each`` samples a component and their upper gradients."""
    d = one.centres.shape[1]
    e = jax.random.normal(key, (len(one.g), each, d), jnp.float64)
    sphere = e * (d**0.5 / jnp.linalg.norm(e, axis=-1, keepdims=True))
    e = jnp.where(s.noise == NOISES.index("gauss"), e, sphere)
    signs = jnp.asarray(1 - 2 * (np.arange(d) % 2), jnp.float64)
    x = one.centres[:, None] + s.spread * jnp.sqrt(1 + s.anisotropy * signs) * e
    return x, one.g[:, None] + s.g_slope * (e @ one.direction)


def features(one: Instance, x: Float[Array, "*n d"]) -> Float[Array, "*n D"]:
    """Input of the MLP layer under uniform attention, ``f = U_C x + u_m``."""
    return x @ one.tokens.T + one.query


def utility(w: Float[Array, " D"], f: Float[Array, " D"], g: Float[Array, ""], kind: model.Index) -> Float[Array, ""]:
    """Loss of one sample whose upper gradient is ``g``: ``-g phi(w . f)``."""
    return -g * model.activation(jnp.atleast_1d(f @ w), kind)[0]


def start_weights(one: Instance) -> Float[Array, " D"]:
    """Lower-layer weights with the instance's v and xi."""
    return one.tokens @ one.v + one.query * one.xi


def coordinates(one: Instance, w: Float[Array, "*n D"]) -> Float[Array, "*n d1"]:
    """(v, xi) of a vector in embedding space."""
    return jnp.concatenate([w @ one.tokens, (w @ one.query)[..., None]], -1)


def field_trial(s: Mixture, key: PRNGKeyArray) -> jd.Observables:
    """(v', xi') by Theorem 3 and by the mean of per-sample gradients of the network, with standard errors."""
    k_instance, k_data = jax.random.split(key)
    one = draw(k_instance, s.tokens, s.components, 0.5, 3.0)
    x, g = sample(k_data, one, s, s.samples // s.components)
    gradient = jax.vmap(jax.vmap(jax.grad(utility), (None, 0, 0, None)), (None, 0, 0, None))
    rates = coordinates(one, -gradient(start_weights(one), features(one, x), g, s.activation))

    def predict(**options: float) -> Float[Array, " d1"]:
        v, xi = mixture_field(one.v, one.xi, one.centres, one.g * one.share, s.activation, s.noise, s.spread, **options)
        return jnp.append(v, xi)

    rate = jnp.stack([predict(theta_norm=1.0), predict()])
    axis = rate[1] / jnp.linalg.norm(rate[1])
    measured, error = _stratified(rates, one.share)
    along, along_error = _stratified((rates @ axis)[..., None], one.share)
    grain = one.share @ jnp.max(jnp.abs(g), 1) / x.shape[1]  # a mean resolves no less than one sample: a ReLU may sleep in all
    return jd.observables(
        predicted={"rate": jd.named(rate, "form coordinate"), "size": jd.named(rate @ axis, "form")},
        measured={"rate": jd.named(measured, "coordinate"), "size": along[0]},
        recorded={
            "error": jd.named(jnp.hypot(error, grain), "coordinate"),
            "size_error": jnp.hypot(along_error[0], grain),
            "without_xi": jd.named(predict(keep_xi=0.0), "coordinate"),
            "norm": jnp.linalg.norm(one.v),
        },
        coords={"form": FORMS},
    )


def _stratified(rates: Float[Array, "C n k"], share: Float[Array, " C"]) -> tuple[Float[Array, " k"], Float[Array, " k"]]:
    """Population mean over components of the given shares, and its standard error."""
    variance = jnp.var(rates, axis=1, ddof=1) / rates.shape[1]
    return share @ jnp.mean(rates, axis=1), jnp.sqrt(share**2 @ variance)


def judge_field(ds: xr.Dataset) -> list[jd.Check]:
    """Each coordinate within Monte Carlo error of the theory, and the size of the field pooled over seeds."""
    z = abs(ds.measured_rate - ds.predicted_rate) / ds.error
    score = (ds.measured_size - ds.predicted_size) * ds.predicted_size / ds.size_error**2
    pooled = abs(score.sum("seed", min_count=1)) / np.sqrt(((ds.predicted_size / ds.size_error) ** 2).sum("seed", min_count=1))
    return [
        jd.at_most("deviation of a coordinate, in standard errors", z, _z_bound(z)),
        jd.at_most("size of the field pooled over seeds, in s.e.", pooled, _z_bound(pooled)),
    ]


def _z_bound(values: xr.DataArray) -> float:
    """Two-sided normal quantile for all the values at once."""
    return stats.bonferroni_z(max(int(values.count()), 1), LEVEL)


def plot_field(ds: xr.Dataset, fig: Figure) -> None:
    """Measured against predicted rates, and deviations in standard errors against the normal law."""
    left, right = fig.subplots(1, 2)
    for kind, color in zip(ds.activation.values, plotting.CYCLE, strict=False):
        part = ds.sel(activation=kind)
        plotting.scatter(left, part.predicted_rate, part.measured_rate, str(kind), color, log=False)
    z = np.ravel((ds.measured_rate - ds.predicted_rate) / ds.error)
    z = np.sort(z[np.isfinite(z)])
    normal = scipy.stats.norm.ppf((np.arange(z.size) + 0.5) / max(z.size, 1))
    right.plot(normal, normal, color=plotting.COLORS["theory"], label="normal law")
    right.plot(normal, z, ".", color=plotting.COLORS["measured"], label="(measured − predicted) / s.e.")
    left.set(xlabel=r"predicted $\dot v_l,\ \dot\xi$", ylabel="gradient of the network")
    right.set(xlabel="normal quantile", ylabel="quantile over runs")


def drop_xi(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A breach of the theory: the prediction with xi left out of ``r``."""

    def breach(ds: xr.Dataset) -> xr.Dataset:
        return ds.assign({f"predicted_{name}": ds.without_xi.where(np.isfinite(ds.without_xi))})

    return breach


_FIELD = {"trial": field_trial, "judge": judge_field, "plot": plot_field, "seeds": 8, "paper_seeds": 64}
_FIELD |= {
    "quick": jd.grid(Mixture, activation=list(KINDS), noise=list(NOISES)),
    "paper": jd.grid(Mixture, activation=list(KINDS), noise=list(NOISES), samples=100_000),
}
CLAIMS = (
    jd.Claim(
        id="joma.thm3",
        statement=r"On a mixture of isotropic components, with $g$ constant within each, the population gradient of a node is "
        r"$\dot v = \|v\|^{-1}\sum_c a_c\theta_1(r_c)\bar x_c + \|v\|^{-3}\sum_c a_c\theta_2(r_c)\,v$, "
        r"$\dot\xi = \|v\|^{-1}\sum_c a_c\theta_1(r_c)$ (ReLU, tanh, GELU; for the identity it reduces to $\Delta$).",
        source=SOURCE,
        form="derived",
        controls={
            "anisotropic noise": {"anisotropy": 0.8},
            "g varies inside a component": {"g_slope": 0.5},
            "xi dropped": drop_xi("rate"),
        },
        **_FIELD,
    ),
    jd.Claim(
        id="joma.theta_as_printed",
        statement=r"$\theta_1(r)$ and $\theta_2(r)$ are functions of $r$ and $\phi$ alone (the norm inside the integrals set "
        r"to 1); the derived integrals depend on $\|v\|$.",
        source=SOURCE + ", wording of the theorem",
        expected="refuted",
        form="printed",
        counterpart="derived",
        **_FIELD,
    ),
)
