r"""The output of attention after eviction: its error, an equality for it, and a bound that is attained.

.. math:: o - o_K = \epsilon\, (\bar v_{K^c} - \bar v_K), \qquad \|o - o_K\| \le 2 \epsilon \max_j \|v_j\|

Letters: K kept keys, :math:`\epsilon` the weight of all others, :math:`\bar v` means of values by weight.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn import attention


@jd.setting
class Eviction:
    """Attention with random logits and values, and how much of it is kept."""

    kept: jd.Swept = jd.field(6.0, at_least=1)  # keys that are not evicted
    spread: jd.Swept = jd.field(2.0, at_least=0)  # standard deviation of the logits
    opposed: jd.Swept = 0.0  # 1: kept keys share one value, all others have its negative
    keys: int = jd.field(24, at_least=2)  # keys before eviction

    def __post_init__(self) -> None:
        jd.require(self, self.kept < self.keys, "kept is below keys", "kept", "keys")


def trial(s: Eviction, key: PRNGKeyArray) -> jd.Observables:
    """The size of the error with renormalised weights, by attention itself, and what is said of it."""
    # attention, and what is kept of it
    k_a, k_v, k_k = jax.random.split(key, 3)
    a = s.spread * jax.random.normal(k_a, (s.keys,), jnp.float64)
    v = jax.random.normal(k_v, (s.keys, 4), jnp.float64)
    kept = jnp.argsort(jnp.argsort(jax.random.uniform(k_k, (s.keys,), jnp.float64))) < s.kept
    v = jnp.where(s.opposed > 0.5, jnp.where(kept, 1.0, -1.0)[:, None] * v[:1], v)
    p = attention.weights(a[None])[0]
    left = attention.weights(a[None], mask=kept[None])[0]
    # the error, and what is said of it
    error = jnp.linalg.norm(p @ v - left @ v)
    inside, outside = (jnp.where(part, p, 0) for part in (kept, ~kept))
    lost = jnp.sum(outside)
    apart = jnp.linalg.norm(outside @ v / lost - inside @ v / jnp.sum(inside))
    size = jnp.linalg.norm(v, axis=1)
    largest = jnp.max(size)
    return jd.observables(
        predicted={"error": lost * apart, "bound": 2 * lost * largest},
        measured={"error": error, "bound": error},
        recorded={
            "plain": jnp.linalg.norm(p @ v - inside @ v),
            "half": lost * largest,
            "without_mass": 2 * largest,
            "nothing": jnp.zeros((), jnp.float64),
        },
        assumed={"lost": lost},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The equality, the bound, and that opposed values attain it."""
    jd.need(ds, opposed=(0.0, 1.0))
    ratio = ds.measured_bound / ds.predicted_bound
    return [
        jd.at_most("size of the error by the equality: relative error", jd.relative_error(ds, "error"), 1e-11),
        jd.at_most("error over its bound", ratio, 1 + 1e-12),
        jd.at_least("error over its bound, opposed values of one size", ratio.sel(opposed=1.0), 1 - 1e-11),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Errors against the equality and against the bound."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_error, ds.measured_error, label="runs", color="measured")
    left.set(xlabel=r"$\epsilon \|\bar v_{K^c} - \bar v_K\|$", ylabel=r"$\|o - o_K\|$")
    for value, label, color in ((0.0, "random values", "measured"), (1.0, "opposed values", "third")):
        part = ds.sel(opposed=value) if "opposed" in ds.dims else ds
        ratio = part.measured_bound / part.predicted_bound
        points = right.plot(part.assumed_lost.values.ravel(), ratio.values.ravel(), ".", label=label, color=plotting.COLORS[color])
        plotting.of_runs(points, ratio)
    right.axhline(1, color=plotting.COLORS["theory"], linestyle="--")
    right.set(xlabel=r"weight $\epsilon$ of what was evicted", ylabel="error over its bound")
    right.legend()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Eviction, kept=[3.0, 6.0, 18.0], opposed=[0.0, 1.0]),
        paper=jd.grid(Eviction, kept=[3.0, 6.0, 18.0], opposed=[0.0, 1.0], spread=[0.3, 2.0, 5.0]),
        seeds=128,
        paper_seeds=512,
        evidence="algebra",
        bounds="derived: float64 rounding, over a lost weight of at least .01",
        assumes=jd.above("lost", 0.01),  # of less, double precision does not tell the change to twelve digits
        source="derived, for the renormalised eviction of arXiv:2306.14048",
    ).claim(
        id="h2o.error_bound",
        title="How much the output of attention changes when keys are evicted",
        statement=r"If all keys but a set $K$ are evicted, whose softmax weights add up to $\epsilon$, and the remaining weights "
        r"are renormalised, the output of attention changes by $\epsilon \|\bar v_{K^c} - \bar v_K\|$, where $\bar v$ is the "
        r"weighted mean of the values $v_j$ in and outside of $K$; so it changes by at most $2 \epsilon \max_j \|v_j\|$. The "
        "bound is attained where the keys in $K$ have one value and the others its negative. (An identity, on random logits and "
        "values.)",
        tested=r"{keys} random keys and values, of which {kept} are kept, with $\epsilon > 0.01$; {seeds} seeds.",
        judge=judge,
        controls={"weights are not renormalised": jd.swap(measured_error="plain", measured_bound="plain")},
        rivals={
            "nothing is lost": jd.swap(predicted_error="nothing", predicted_bound="nothing"),
            r"at most $\epsilon \max_j \|v_j\|$": jd.swap(predicted_bound="half"),
            r"at most $2 \max_j \|v_j\|$, whatever the weight": jd.swap(predicted_bound="without_mass"),
        },
        plot=plot,
        caption="Left: size of the change of the output against the equality. Right: that size over its bound, against the "
        "weight of the evicted keys; one point per run.",
    ),
)
