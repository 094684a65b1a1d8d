r"""Claims on great width: G_F becomes a multiple of :math:`\tilde Y \tilde Y^\top \tilde F`, and by how much.

Only the Gram matrix of the samples is kept, summed over blocks of nodes: with :math:`A = \tilde F \tilde F^\top`,
:math:`R = (A + \eta I)^{-1}`, :math:`S = \tilde Y \tilde Y^\top`, :math:`Q = RSR`

.. math:: \langle G_F, S\tilde F \rangle = \eta\,\mathrm{tr}(QAS), \qquad \|G_F\|^2 = \eta^2\,\mathrm{tr}(QAQ), \qquad
    \|S \tilde F\|^2 = \mathrm{tr}(SAS).

Letters as in ``dynamics/ridge.py``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.errors import given
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Width", "trial"]

SOURCE = "arXiv:2509.21519, Lemma 1"
FORMS = ("printed", "derived")
KINDS = ("square", "relu", "silu")
COUNTS = (5, 10, 20, 40)  # blocks after which the network is looked at


@jd.setting
class Width:
    """All pairs of a group, random W of standard deviation ``spread``, for which the theory takes 1."""

    activation: jd.Code = jd.code(*KINDS)
    eta: jd.Swept = 1.0
    spread: jd.Swept = 1.0
    group: str = "11"
    block: int = 500

    def __post_init__(self) -> None:
        """Refuse empty blocks and no ridge."""
        if self.block < 1 or self.eta <= 0:
            raise jd.UsageError(f"block is at least 1 and eta positive, {given(self, 'block', 'eta')}")


def trial(s: Width, key: PRNGKeyArray) -> jd.Observables:
    """The factor, the angle and the size at every width, beside the limits."""
    group = parse(s.group)
    samples = model.pairs(group.order)
    n = len(samples)
    signal = model.centred(model.targets(group, samples))
    signal = signal @ signal.T

    def add(block: Array, total: Float[Array, "n n"]) -> Float[Array, "n n"]:
        w = s.spread * jax.random.normal(jax.random.fold_in(key, block), (2 * group.order, s.block), jnp.float64)
        kinds = [functools.partial(model.features, samples=samples, activation=a) for a in KINDS]
        f = model.centred(jax.lax.switch(s.activation, kinds, w))
        return total + f @ f.T

    def grow(total: Float[Array, "n n"], ends: Array) -> tuple[Array, Array]:
        total = jax.lax.fori_loop(ends[0], ends[1], add, total)
        return total, jnp.stack(_sizes(total, signal, s.eta))

    ends = jnp.asarray([(0, *COUNTS[:-1]), COUNTS], jnp.int32).T
    both, sent, early = jax.lax.scan(grow, jnp.zeros((n, n), jnp.float64), ends)[1].T
    hidden = jnp.asarray(COUNTS, jnp.float64) * s.block
    c, c1 = (jnp.asarray(v, jnp.float64)[s.activation] for v in _constants())
    derived, printed = ridge.wide(hidden, s.eta, c), ridge.wide_as_printed(hidden, n, s.eta, c1, c1)
    return jd.observables(
        predicted={
            "factor": jd.named(jnp.stack([printed, derived]), "form width"),
            "ratio": jd.named(derived, "width"),
        },
        measured={"factor": jd.named(both / early**2, "width"), "ratio": jd.named(sent / early, "width")},
        recorded={
            "hidden": jd.named(hidden, "width"),
            "loose": jd.named(ridge.wide(hidden, s.eta, c1), "width"),
            "cosine": jd.named(both / (sent * early), "width"),
            "apart": jd.named(jnp.sqrt(1 - jnp.square(both / (sent * early))), "width"),
        },
        coords={"form": FORMS},
    )


def _constants() -> tuple[list[float], list[float]]:
    """The constant c of every activation, and the printed one."""
    return [ridge.contrast(a) for a in KINDS], [ridge.kernel(a, 2) - ridge.kernel(a, 0) for a in KINDS]


def _sizes(a: Array, signal: Array, eta: Array) -> tuple[Array, Array, Array]:
    """<G_F, S F~>, the norm of G_F, and that of S F~."""
    r = linalg.inv(a + eta * jnp.eye(len(a), dtype=a.dtype))
    q, seen = r @ signal @ r, a @ signal
    both = eta * jnp.sum(q * seen.T)
    return both, eta * jnp.sqrt(jnp.sum((q @ a) * q)), jnp.sqrt(jnp.sum(signal * seen))


def judge_factor(ds: xr.Dataset) -> list[jd.Check]:
    """The factor and the angle of the widest networks; how the rest falls with the width."""
    widest = (ds.measured_factor / ds.predicted_factor).isel(width=-1).mean("seed")
    return [
        jd.within("factor of the widest over the predicted one, mean over seeds", widest, 0.97, 1.03),
        jd.at_least("cosine of G_F and the signal, widest", ds.cosine.isel(width=-1), 0.99),
        jd.within("power of K in the rest", stats.loglog_slope(ds.hidden, ds.apart, "width").mean("seed"), -0.6, -0.4),
    ]


def judge_ratio(ds: xr.Dataset) -> list[jd.Check]:
    """The power of K in the ratio of the sizes."""
    found, said = (np.log(v.isel(width=-1) / v.isel(width=0)) for v in (ds.measured_ratio, ds.predicted_ratio))
    stretch = np.log(ds.hidden.isel(width=-1) / ds.hidden.isel(width=0))
    return [
        jd.within("power of K in the ratio", stats.loglog_slope(ds.hidden, ds.measured_ratio, "width"), -2.1, -1.9),
        jd.within("power between the ends, less the predicted one", (found - said) / stretch, -0.1, 0.1),
        jd.within(
            "ratio of the widest over the predicted one", (ds.measured_ratio / ds.predicted_ratio).isel(width=-1), 0.95, 1.05
        ),
    ]


def plot_factor(ds: xr.Dataset, fig: Figure) -> None:
    """The factor, in parts of the corrected one; the rest against the width."""
    left, right = fig.subplots(1, 2)
    hidden = ds.hidden.isel({d: 0 for d in ds.hidden.dims if d != "width"})
    for kind, color in zip(np.atleast_1d(ds.activation.values), ("measured", "third", "fourth"), strict=False):
        part = ds.sel(activation=kind)
        derived, printed = (part.predicted_factor.sel(form=form) for form in ("derived", "printed"))
        plotting.band(left, hidden, part.measured_factor / derived, str(kind), color)
        plotting.band(left, hidden, printed / derived, "as printed" if kind == KINDS[0] else "", color, linestyle=":")
        plotting.band(right, hidden, part.apart, str(kind), color)
    left.axhline(1, color=plotting.COLORS["theory"], label=r"$\eta/(Kc + \eta)^2$")
    guide = float(ds.apart.isel(width=0).mean()) * np.sqrt(float(hidden[0]) / hidden)
    right.plot(hidden, guide, "--", color=plotting.COLORS["theory"], label=r"$K^{-1/2}$")
    for ax in (left, right):
        ax.set(xscale="log", yscale="log")
        ax.set_xticks(hidden.values, [f"{h:g}" for h in hidden.values])
        ax.set_xticks([], minor=True)
    left.set(xlabel="K", ylabel="in parts of the corrected factor", ylim=(None, 300))
    right.set(xlabel="K", ylabel=r"sine of the angle to $\tilde Y\tilde Y^\top\tilde F$")


def plot_ratio(ds: xr.Dataset, fig: Figure) -> None:
    """The ratio of the sizes against the width."""
    ax = fig.subplots()
    hidden = ds.hidden.isel({d: 0 for d in ds.hidden.dims if d != "width"})
    for kind, color in zip(np.atleast_1d(ds.activation.values), ("measured", "third", "fourth"), strict=False):
        part = ds.sel(activation=kind)
        plotting.band(ax, hidden, part.measured_ratio, str(kind), color, marker="o", linestyle="")
        plotting.band(ax, hidden, part.predicted_ratio, r"$\eta/(Kc + \eta)^2$" if kind == KINDS[-1] else "", "theory")
    ax.set(xscale="log", yscale="log", xlabel="K", ylabel=r"$\|G_F\| / \|\tilde Y \tilde Y^\top \tilde F\|$")


_SHARED = {
    "trial": trial,
    "quick": jd.grid(Width, activation=list(KINDS)),
    "paper": jd.grid(Width, activation=list(KINDS), block=2000),
    "seeds": 8,
    "paper_seeds": 32,
}
_FACTOR = {**_SHARED, "judge": judge_factor, "plot": plot_factor}

CLAIMS = (
    jd.Claim(
        id="li2.lemma1",
        statement=r"On full data and for very many random nodes, "
        r"$G_F \to \frac{\eta}{(Kc + \eta)^2} \tilde Y \tilde Y^\top \tilde F$ with $c = k(2) - 2k(1) + k(0)$, where $k(t)$ is the "
        r"mean product of two activations that share t operands; what is left falls as $K^{-1/2}$.",
        source=f"corrected from {SOURCE}",
        form="derived",
        controls={
            "weights a tenth larger than the theory takes them": {"spread": 1.1},
            "k(2) - k(0) for c": lambda ds: ds.assign(predicted_factor=ds.loose),
        },
        **_FACTOR,
    ),
    jd.Claim(
        id="li2.lemma1_as_printed",
        statement=r"For very many nodes $G_F \to \frac{\eta}{(K c_1 + \eta)(n c_2 + \eta)} \tilde Y \tilde Y^\top \tilde F$ with "
        r"$c_1 = c_2 = k(2) - k(0)$. Too large, and too slow in K: more than 40 times for $x^2$ at $M = 11$, $K = 20\,000$.",
        source=f"{SOURCE}, as printed",
        form="printed",
        counterpart="derived",
        expected="refuted",
        **_FACTOR,
    ),
    jd.Claim(
        id="li2.K_limit",
        statement=r"At a fixed ridge the hidden layer's signal dies out with the width: $\|G_F\| / "
        r"\|\tilde Y \tilde Y^\top \tilde F\| \propto K^{-2}$ once $Kc \gg \eta$ and $K \gg n$, the lazy limit.",
        source=f"derived from {SOURCE}",
        form="derived",
        judge=judge_ratio,
        controls={
            "a ridge far above K c": {"eta": 1e9},
            "nine tenths": lambda ds: ds.assign(predicted_ratio=0.9 * ds.predicted_ratio),
        },
        plot=plot_ratio,
        **_SHARED,
    ),
)
