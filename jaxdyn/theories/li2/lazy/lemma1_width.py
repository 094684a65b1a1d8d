r"""Wide networks (Lemma 1): G_F becomes a multiple of :math:`\tilde Y \tilde Y^\top \tilde F`; its factor.

Only the Gram matrix of the samples is stored, summed over blocks of nodes: with :math:`A = \tilde F \tilde F^\top`,
:math:`R = (A + \eta I)^{-1}`, :math:`S = \tilde Y \tilde Y^\top`, :math:`Q = RSR`

.. math:: \langle G_F, S\tilde F \rangle = \eta\,\mathrm{tr}(QAS), \qquad \|G_F\|^2 = \eta^2\,\mathrm{tr}(QAQ), \qquad
    \|S \tilde F\|^2 = \mathrm{tr}(SAS).

Letters as in ``dynamics/ridge.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray

import jaxdyn as jd
from jaxdyn import linalg, plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "Width", "trial"]

SOURCE = "arXiv:2509.21519, Lemma 1"
FORMS = ("printed", "derived")
COUNTS = (5, 10, 20, 40)  # blocks after which the network is measured
LOOKED = jd.looked(at="0:8", confirmed="4000:4008")


@jd.setting
class Width:
    """All pairs of a group, random W of standard deviation ``spread``, for which the theory takes 1."""

    activation: jd.Code = jd.code(*model.STUDIED)
    eta: jd.Swept = jd.field(1.0, above=0)
    spread: jd.Swept = 1.0
    group: str = "11"
    block: int = jd.field(500, at_least=1)


def trial(s: Width, key: PRNGKeyArray) -> jd.Observables:
    """The factor, the angle and the size at every width, and the limits."""
    # the signal, and the weights of all blocks
    group = parse(s.group)
    samples = model.pairs(group.order)
    n = len(samples)
    signal = model.centred(model.targets(group, samples))
    signal = signal @ signal.T

    def sample_block(block: Int[Array, ""]) -> Float[Array, "D K"]:
        return s.spread * jax.random.normal(jax.random.fold_in(key, block), (2 * group.order, s.block), jnp.float64)

    weights = jax.vmap(sample_block)(jnp.arange(COUNTS[-1]))  # next to the samples they would be drawn anew for each of them

    # the Gram matrix of more and more blocks
    def add(block: Int[Array, ""], total: Float[Array, "n n"]) -> Float[Array, "n n"]:
        f = model.centred(model.features(weights[block], samples, s.activation))
        return total + f @ f.T

    def grow(total: Float[Array, "n n"], ends: Int[Array, " 2"]) -> tuple[Float[Array, "n n"], Float[Array, " 3"]]:
        total = jax.lax.fori_loop(ends[0], ends[1], add, total)
        return total, jnp.stack(sizes(total, signal, s.eta))

    ends = jnp.asarray([(0, *COUNTS[:-1]), COUNTS], jnp.int32).T
    both, sent, early = jax.lax.scan(grow, jnp.zeros((n, n), jnp.float64), ends)[1].T
    # the limits
    hidden = jnp.asarray(COUNTS, jnp.float64) * s.block
    c, c1 = (jnp.asarray(v, jnp.float64)[s.activation.index] for v in _constants())
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
    """The constant c of each activation, and the printed one."""
    return [ridge.contrast(a) for a in model.STUDIED], [ridge.kernel(a, 2) - ridge.kernel(a, 0) for a in model.STUDIED]


def sizes(
    a: Float[Array, "n n"], signal: Float[Array, "n n"], eta: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """<G_F, S F~>, the norm of G_F, and that of S F~."""
    r = linalg.inv(a + eta * jnp.eye(len(a), dtype=a.dtype))
    q, early = r @ signal @ r, a @ signal
    both = eta * jnp.sum(q * early.T)
    return both, eta * jnp.sqrt(jnp.sum((q @ a) * q)), jnp.sqrt(jnp.sum(signal * early))


def smallest(ds: xr.Dataset) -> xr.Dataset:
    """The runs at the smallest ridge."""
    return ds.isel(eta=0, drop=True) if "eta" in ds.dims else ds


def judge_factor(ds: xr.Dataset) -> list[jd.Check]:
    """The factor and the angle at the largest width; the power of K in the part that is no multiple, at the smallest ridge."""
    small = smallest(ds)
    widest = (ds.measured_factor / ds.predicted_factor).isel(width=-1)
    power = stats.loglog_slope(small.hidden, small.apart, "width")
    return [
        jd.mean_within("factor at the largest width over the predicted one, mean", widest, over="seed", low=0.95, high=1.05),
        jd.at_least("cosine of G_F and the signal, largest width", ds.cosine.isel(width=-1), 0.98),
        jd.mean_within("power of K in the sine of their angle, mean", power, over="seed", low=-0.6, high=-0.4),
    ]


def judge_ratio(ds: xr.Dataset) -> list[jd.Check]:
    """The power of K in the ratio of the sizes."""
    measured, predicted = (np.log(v.isel(width=-1) / v.isel(width=0)) for v in (ds.measured_ratio, ds.predicted_ratio))
    stretch = np.log(ds.hidden.isel(width=-1) / ds.hidden.isel(width=0))
    return [
        jd.within("power of K in the ratio", stats.loglog_slope(ds.hidden, ds.measured_ratio, "width"), -2.1, -1.9),
        jd.within("power between the ends, minus the predicted one", (measured - predicted) / stretch, -0.1, 0.1),
        jd.within(
            "ratio at the largest width over the predicted one", (ds.measured_ratio / ds.predicted_ratio).isel(width=-1), 0.95, 1.05
        ),
    ]


def plot_factor(ds: xr.Dataset, fig: Figure) -> None:
    """The factor over the corrected one, and the sine of the angle, against the width."""
    left, right = fig.subplots(1, 2)
    ds = smallest(ds)
    hidden = plotting.first_run(ds).hidden
    for kind, color in zip(np.atleast_1d(ds.activation.values), ("measured", "third", "fourth"), strict=False):
        part = ds.sel(activation=kind)
        derived, printed = (part.predicted_factor.sel(form=form) for form in ("derived", "printed"))
        plotting.band(left, hidden, part.measured_factor / derived, str(kind), color)
        plotting.band(left, hidden, printed / derived, "as printed" if kind == model.STUDIED[0] else "", color, linestyle=":")
        plotting.band(right, hidden, part.apart, str(kind), color)
    left.axhline(1, color=plotting.COLORS["theory"], label=r"$\eta/(Kc + \eta)^2$")
    guide = float(ds.apart.isel(width=0).mean()) * np.sqrt(float(hidden[0]) / hidden)
    right.plot(hidden, guide, "--", color=plotting.COLORS["theory"], label=r"$K^{-1/2}$")
    for ax in (left, right):
        ax.set(xscale="log", yscale="log")
        ax.set_xticks(hidden.values, [f"{h:g}" for h in hidden.values])
        ax.set_xticks([], minor=True)
    left.set(xlabel="K", ylabel="factor over the corrected one", ylim=(None, 300))
    right.set(xlabel="K", ylabel=r"sine of the angle to $\tilde Y\tilde Y^\top\tilde F$")


def plot_ratio(ds: xr.Dataset, fig: Figure) -> None:
    """The ratio of the sizes against the width."""
    ax = fig.subplots()
    hidden = plotting.first_run(ds).hidden
    for kind, color in zip(np.atleast_1d(ds.activation.values), ("measured", "third", "fourth"), strict=False):
        part = ds.sel(activation=kind)
        plotting.band(ax, hidden, part.measured_ratio, str(kind), color, marker="o", linestyle="")
        plotting.band(ax, hidden, part.predicted_ratio, r"$\eta/(Kc + \eta)^2$" if kind == model.STUDIED[-1] else "", "theory")
    ax.set(xscale="log", yscale="log", xlabel="K", ylabel=r"$\|G_F\| / \|\tilde Y \tilde Y^\top \tilde F\|$")


CONSTANT = jd.initial("width", "predicted_factor", "predicted_ratio")  # the width changes nothing
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Width, activation=list(model.STUDIED)),
    paper=jd.grid(Width, activation=list(model.STUDIED), block=2000),
    seeds=8,
    paper_seeds=32,
    source=SOURCE,
    form="derived",
    evidence="algebra",
    bounds=LOOKED,
    tested="Gaussian weights, activations {activation}, on all pairs of the residues modulo {group}, at ridge {eta}, with "
    f"{COUNTS[0]} to {COUNTS[-1]} blocks of {{block}} nodes; {{seeds}} seeds.",
)

FACTOR = STUDY.claim(
    id="li2.lemma1",
    slides=("grokking:li2-lemma-1",),
    title="In wide layers the gradient is a known multiple of the early signal",
    statement=r"For wide random layers at the ridge solution the gradient that the hidden layer receives becomes "
    r"$G_F \to \frac{\eta}{(Kc + \eta)^2} \tilde Y \tilde Y^\top \tilde F$, for K nodes and ridge $\eta$, with "
    r"$c = k(2) - 2k(1) + k(0)$, where $k(t)$ is the mean product of two activations that share t operands; where $Kc \gg \eta$ "
    r"the sine of the angle between both sides falls as $K^{-1/2}$.",
    source=f"corrected from {SOURCE}",
    quick=STUDY.quick.replace(eta=[1.0, 300.0]),  # the second comparable with K c
    judge=judge_factor,
    controls={
        "weights a tenth larger than the theory assumes": {"spread": 1.1},
        "narrow layers": {"block": 10},
    },
    rivals={"the width changes nothing": CONSTANT, "k(2) - k(0) for c": jd.swap(predicted_factor="loose")},
    plot=plot_factor,
    caption=r"Over the width K, $\eta = 1$, a colour per activation, median and central 90% of the runs. Left: the factor of "
    r"$\tilde Y \tilde Y^\top \tilde F$ in $G_F$ over the corrected one; dotted, the printed one. Right: the sine of the angle "
    r"between both; dashed, $K^{-1/2}$.",
)

CLAIMS = (
    FACTOR,
    FACTOR.as_printed(
        id="li2.lemma1_as_printed",
        slides=("grokking:li2-lemma-1",),
        title="Printed: the size of the gradient in wide layers",
        statement=r"As printed: for wide random layers at the ridge solution the gradient that the hidden layer receives becomes "
        r"$G_F \to \frac{\eta}{(K c_1 + \eta)(n c_2 + \eta)} \tilde Y \tilde Y^\top \tilde F$ for K nodes, n samples and ridge "
        r"$\eta$, with $c_1 = c_2 = k(2) - k(0)$, where $k(t)$ is the mean product of two activations that share t operands.",
        printed=r"talk grokking, Lemma 1: $G_F = \frac{\eta}{(Kc_1 + \eta)(nc_2 + \eta)} \tilde{Y} \tilde{Y}^{\top} F$",
        source=f"{SOURCE}, as printed",
        form="printed",
    ),
    STUDY.claim(
        id="li2.K_limit",
        slides=("grokking:li2-wide",),
        title="The gradient falls as the inverse square of the width",
        statement=r"In random layers at a fixed ridge $\eta$ the gradient at the ridge solution vanishes with the number of "
        r"nodes K: $\|G_F\| / \|\tilde Y \tilde Y^\top \tilde F\| \propto K^{-2}$, the lazy limit, and is $\eta/(Kc + \eta)^2$ "
        "with c as in Lemma 1.",
        source=f"derived from {SOURCE}",
        judge=judge_ratio,
        controls={"a ridge far above K c": {"eta": 1e9}},
        rivals={
            "the width changes nothing": CONSTANT,
            "the first power of the width": jd.swap(
                predicted_ratio=lambda ds: ds.predicted_ratio.isel(width=0) / (ds.hidden / ds.hidden.isel(width=0))
            ),
        },
        plot=plot_ratio,
        caption=r"$\|G_F\| / \|\tilde Y \tilde Y^\top \tilde F\|$ over the width K, a colour per activation: dots, random "
        r"networks (median and central 90% of the runs); lines, $\eta/(Kc + \eta)^2$.",
    ),
)
