r"""Claims on memorisation: one target, whose pairs have different probabilities, and the nodes that climb towards it.

One trial: nodes climb the uncentred class sum from random starts with all s_g > 0 (the centred energy of a single target is zero).
Letters as in ``dynamics/memory.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.groups import parse
from jaxdyn.errors import given
from jaxdyn.theories.li2.dynamics import memory as theory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "OneTarget", "distinct", "trial"]

SOURCE = "arXiv:2509.21519, theorem 5"
KINDS = ("square", "relu", "silu", "tanh", "cube")
FALLING = KINDS[1:4]
APART = 1e-3  # ends nearer to one another are the same optimum


@jd.setting
class OneTarget:
    """Pairs of one target with probabilities in steps from one to ``ratio``, moved by up to 5% and shuffled."""

    ratio: jd.Swept = 3.0
    group: str = "5"
    starts: int = 512
    steps: int = 400

    def __post_init__(self) -> None:
        """Refuse equal probabilities, which leave x^2 without a single maximum, and groups whose steps the moves would blur."""
        order = parse(self.group).order
        if self.ratio < 2 or not 2 <= order <= 8:
            raise jd.UsageError("ratio is at least 2 and the group has 2 to 8 elements, " + given(self, "ratio", "group"))
        if self.starts < 2 or self.steps < 1:
            raise jd.UsageError("starts is at least 2 and steps at least 1, " + given(self, "starts", "steps"))


def trial(s: OneTarget, key: PRNGKeyArray) -> jd.Observables:
    """Ends of all ascents against the formula, and how many different ends there are."""
    group = parse(s.group)
    k_p, k_order, k_start = jax.random.split(key, 3)
    m = group.order
    p = (1 + (s.ratio - 1) * jnp.arange(m) / (m - 1)) * (1 + 0.05 * jax.random.uniform(k_p, (m,), jnp.float64))
    p = jax.random.permutation(k_order, p / jnp.sum(p))
    # of widely different sizes: for x^3 an improbable pair wins only where it starts well ahead
    start = jnp.exp(1.5 * jax.random.normal(k_start, (2 * m, s.starts), jnp.float64))
    ends = {kind: theory.strengths(theory.ascend(start, p, group, kind, s.steps), group) for kind in KINDS}
    said = {"square": theory.winner(p), **{kind: theory.spread(p, kind) for kind in FALLING}}
    # the end that is farthest from the prediction stands for all
    far = {kind: ends[kind][:, jnp.argmax(jnp.max(jnp.abs(ends[kind] - x[:, None]), 0))] for kind, x in said.items()}
    count = jnp.asarray([1.0, 1.0, 1.0, 1.0, m], jnp.float64)
    return jd.observables(
        predicted={
            "strength": jd.named(jnp.stack(list(said.values())), "activation pair"),
            "optima": jd.named(jnp.stack([count, jnp.ones_like(count)]), "form kind"),
        },
        measured={
            "strength": jd.named(jnp.stack([far[kind] for kind in said]), "activation pair"),
            "optima": jd.named(jnp.stack([distinct(ends[kind]) for kind in KINDS]), "kind"),
        },
        recorded={
            "p": jd.named(p, "pair"),
            "wins": jd.named(jnp.sum(jnp.argmax(ends["cube"], 0)[:, None] == jnp.arange(m), 0), "pair"),
        },
        coords={"form": ("derived", "printed"), "activation": tuple(said), "kind": KINDS},
    )


def distinct(s: Float[Array, "M K"]) -> Float[Array, ""]:
    """How many columns have no earlier one near them."""
    near = jnp.max(jnp.abs(s[:, :, None] - s[:, None]), 0) < APART
    earlier = jnp.arange(s.shape[1])[:, None] < jnp.arange(s.shape[1])
    return jnp.sum(~jnp.any(near & earlier, 0)).astype(jnp.float64)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The worst end of every activation."""
    return [jd.at_most("strength of a pair, error", abs(ds.measured_strength - ds.predicted_strength), 1e-5)]


def judge_unique(ds: xr.Dataset) -> list[jd.Check]:
    """The number of optima of every activation."""
    return [jd.at_most("number of optima, error", abs(ds.measured_optima - ds.predicted_optima), 0.0)]


def swapped(ds: xr.Dataset) -> xr.Dataset:
    """A breach: every activation has the strengths of the next."""
    return ds.assign(predicted_strength=ds.predicted_strength.roll(activation=1, roll_coords=False))


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Strength against probability: ends, and the formula."""
    ax = fig.subplots()
    p = np.broadcast_to(ds.p.transpose(..., "pair").values, ds.measured_strength.isel(activation=0).transpose(..., "pair").shape)
    for kind, color in zip(ds.activation.values, plotting.CYCLE, strict=False):
        said, seen = (
            ds[f"{side}_strength"].sel(activation=kind).transpose(..., "pair").values for side in ("predicted", "measured")
        )
        order = np.argsort(p.ravel())
        ax.plot(p.ravel(), seen.ravel(), "o", color=color, alpha=0.6, label=f"{kind}: ends")
        ax.plot(p.ravel()[order], said.ravel()[order], "_", color=color, markersize=9)
    ax.plot([], [], "k_", label="formula")
    ax.set(xlabel="probability of the pair", ylabel=r"$s_g$")


def plot_unique(ds: xr.Dataset, fig: Figure) -> None:
    """Number of optima by activation."""
    ax = fig.subplots()
    seen = ds.measured_optima.transpose("kind", ...).values.reshape(ds.sizes["kind"], -1)
    said = ds.predicted_optima
    said = (said.isel(form=0) if "form" in said.dims else said).transpose("kind", ...).values.reshape(ds.sizes["kind"], -1)
    x = np.arange(len(seen))[:, None] + np.linspace(-0.2, 0.2, seen.shape[1])
    ax.plot(x.ravel(), seen.ravel(), "o", color=plotting.COLORS["measured"], label="distinct ends")
    for i, level in enumerate(said[:, 0]):
        ax.plot([i - 0.35, i + 0.35], [level, level], color=plotting.COLORS["theory"], label="predicted" if i == 0 else None)
    ax.set_xticks(range(len(seen)), [str(k) for k in ds.kind.values])
    ax.set(xlabel="activation", ylabel="optima", ylim=(0, seen.max() + 1))


_SHARED = {
    "source": SOURCE,
    "trial": trial,
    "quick": jd.grid(OneTarget),
    "paper": jd.grid(OneTarget, ratio=[3.0, 5.0], starts=1024),
    "seeds": 8,
    "paper_seeds": 32,
}

CLAIMS = (
    jd.Claim(
        id="li2.thm5",
        statement=r"A node that climbs a single target, whose pairs have probabilities $p_g$, maximises $\sum_g p_g \sigma(s_g)$ "
        r"over $\sum_g s_g^2 = 2$: for $x^2$ all goes to the most probable pair; where $\varphi = \sigma'/x$ falls, "
        r"$s_g = \varphi^{-1}(2\lambda/p_g)$ (relu: $s \propto p$).",
        judge=judge,
        controls={"another activation's strengths": swapped},
        form="derived",
        plot=plot,
        **_SHARED,
    ),
    jd.Claim(
        id="li2.thm5_unique",
        statement=r"From starts with all $s_g > 0$ there is one optimum for $x^2$ and where $\varphi$ falls; for $x^3$, with "
        r"$\varphi(0) = 0$, every pair is an optimum of its own.",
        judge=judge_unique,
        controls={"one optimum for every activation": lambda ds: ds.assign(predicted_optima=1 + 0 * ds.predicted_optima)},
        form="derived",
        plot=plot_unique,
        **_SHARED,
    ),
    jd.Claim(
        id="li2.thm5_unique_as_printed",
        statement=r"As printed: there is no other local optimum. For $x^3$ there are as many as pairs.",
        judge=judge_unique,
        form="printed",
        expected="refuted",
        counterpart="derived",
        plot=plot_unique,
        **_SHARED,
    ),
)
