r"""The angle between a residual stream and itself one block later: how small its cosine can be.

.. math:: \cos(x, x + F) = \frac{1 + \rho c}{\sqrt{1 + 2 \rho c + \rho^2}} \ge \sqrt{1 - \rho^2}, \qquad
   \rho = \|F\| / \|x\| < 1,\ c = \cos(x, F)

with equality at :math:`c = -\rho`. Source: arXiv:2310.17157, section 4.3, for the question; formula and bound: derived.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting


@jd.setting
class Residual:
    """A random stream x and its change F by one block."""

    ratio: jd.Swept = jd.field(0.5, above=0)  # rho, norm of F over that of x
    worst: jd.Swept = 0.0  # 1: F at the angle of the bound, 0: in a random direction
    width: int = jd.field(8, at_least=2)  # entries of x


def cosine(a: Float[Array, " d"], b: Float[Array, " d"]) -> Float[Array, ""]:
    """Cosine of the angle between two vectors."""
    return a @ b / (jnp.linalg.norm(a) * jnp.linalg.norm(b))


def trial(s: Residual, key: PRNGKeyArray) -> jd.Observables:
    """Cosines of the two streams, the formula, and the bound."""
    k_x, k_f = jax.random.split(key)
    x, f = (jax.random.normal(k, (s.width,), jnp.float64) for k in (k_x, k_f))
    unit = x / jnp.linalg.norm(x)
    across = f - unit * (unit @ f)
    side = jnp.sqrt(jnp.maximum(1 - s.ratio**2, 0))
    turned = -s.ratio * unit + side * across / jnp.linalg.norm(across)
    f = jnp.where(s.worst > 0.5, turned, f / jnp.linalg.norm(f)) * s.ratio * jnp.linalg.norm(x)
    c = cosine(x, f)
    formula = (1 + s.ratio * c) / jnp.sqrt(1 + 2 * s.ratio * c + s.ratio**2)
    near = cosine(x, x + f)
    return jd.observables(
        predicted={"cosine": formula, "bound": side},
        measured={"cosine": near, "bound": near},
        recorded={"changed": cosine(f, x + f), "linear": 1 - s.ratio, "parabola": 1 - s.ratio**2 / 4, "start": jnp.ones_like(near)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The formula, the bound, and that it is attained."""
    jd.need(ds, worst=(0.0, 1.0))
    short = ds.predicted_bound - ds.measured_bound
    return [
        jd.at_most("cosine minus the formula", abs(ds.measured_cosine - ds.predicted_cosine), 1e-12),
        jd.at_most("bound minus the cosine", short, 1e-12),
        jd.at_most("cosine minus the bound at its angle", -short.sel(worst=1.0), 1e-12),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Cosines over the ratio, and the bound."""
    ax = fig.subplots()
    for value, label, color in ((0.0, "random change", "measured"), (1.0, r"change at $c = -\rho$", "third")):
        part = (ds.sel(worst=value) if "worst" in ds.dims else ds).transpose("ratio", ...)
        ax.plot(part.ratio, part.measured_cosine.values.reshape(part.sizes["ratio"], -1), ".", color=plotting.COLORS[color])
        ax.plot([], [], ".", color=plotting.COLORS[color], label=label)
    ax.plot(part.ratio, part.predicted_bound.values.reshape(part.sizes["ratio"], -1)[:, 0], "--", color=plotting.COLORS["theory"])
    ax.set(xlabel=r"$\rho = \|F\| / \|x\|$", ylabel=r"$\cos(x, x + F)$")
    ax.legend()


RATIOS = [0.1, 0.3, 0.6, 0.9]

CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Residual, ratio=RATIOS, worst=[0.0, 1.0]),
        paper=jd.grid(Residual, ratio=RATIOS, worst=[0.0, 1.0], width=[2, 8, 64]),
        seeds=128,
        paper_seeds=512,
        evidence="algebra",
        bounds="derived: float64 rounding of products of up to 64 terms",
        source="derived; the question: arXiv:2310.17157, section 4.3 (slowly changing embeddings)",
    ).claim(
        id="dejavu.cos_bound",
        title="A stream turns by a bounded angle if the change is smaller than it",
        statement=r"A residual stream $x$ and the next one, $x + F$ with $\rho = \|F\| / \|x\| < 1$, have the cosine $(1 + \rho "
        r"c) / \sqrt{1 + 2\rho c + \rho^2}$, where $c$ is the cosine of $x$ and $F$. It is at least $\sqrt{1 - \rho^2}$, with "
        r"equality at $c = -\rho$. (An identity of vectors.)",
        tested=r"Random vectors of {width} entries with $\rho$ = {ratio}, in random directions and at $c = -\rho$; {seeds} "
        "seeds.",
        judge=judge,
        controls={
            r"$\rho = 1.5$": {"ratio": 1.5},
            "the change in place of the stream": jd.swap(measured_cosine="changed", measured_bound="changed"),
        },
        rivals={
            "the stream does not change": jd.swap(predicted_cosine="start", predicted_bound="start"),
            r"$1 - \rho$": jd.swap(predicted_bound="linear"),
            r"$1 - \rho^2 / 4$": jd.swap(predicted_bound="parabola"),
        },
        plot=plot,
        caption="Cosine between a stream and the next one against the relative size of the change; dashed: bound. "
        "One point per run.",
    ),
)
