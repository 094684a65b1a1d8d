r"""Small and large ridge: the gradient that the hidden layer receives at both ends of eta, and with an output scale.

Networks of one seed with different numbers of nodes share their first nodes.
Letters as in ``dynamics/ridge.py``; beta is the output scale.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge

SOURCE = "arXiv:2509.21519"
FORMS = ("printed", "derived")
SMALL, LARGE = (1e-7, 1e-6, 1e-5), (1e5, 1e6, 1e7)
ETAS = (*SMALL, *(10.0**p for p in range(-4, 5)), *LARGE)
BETAS = (2.0, 4.0, 8.0, 16.0)
WITHIN = 1e-12  # of the squared targets, outside the span of the features: rounding
FAR = 100.0  # ridge over squared singular values, or these over it: the next order of each limit is at most 3 / FAR
SHOWN = 5  # nodes whose gradients are compared entry by entry


@jd.setting
class Regimes:
    """All pairs of a group; the first ``nodes`` of ``capacity`` squared random features."""

    nodes: jd.Swept = jd.field(60.0, at_least=SHOWN, whole=True)  # nodes in use, the first of those sampled
    eta: jd.Swept = jd.field(1e-3, above=0, role="none")  # ridge of the top layer where the output scale beta varies
    group: str = "7"  # all of whose pairs are used; a number M is the residues modulo M
    capacity: int = 200  # nodes that are sampled

    def __post_init__(self) -> None:
        """Refuse more nodes than there are."""
        jd.require(self, self.nodes <= self.capacity, "nodes is at most capacity", "nodes", "capacity")


def trial(s: Regimes, key: PRNGKeyArray) -> jd.Observables:
    """G_F by differentiation at the ridge solution of every eta and beta, and the limits."""
    # the first nodes' features
    group = parse(s.group)
    samples = model.pairs(group.order)
    w = jax.random.normal(key, (2 * group.order, s.capacity), jnp.float64) / 2
    f = model.features(w, samples) * (jnp.arange(s.capacity) < s.nodes)
    y = model.targets(group, samples)
    etas, betas = jnp.asarray(ETAS, jnp.float64), jnp.asarray(BETAS, jnp.float64)

    # what is sent back at the ridge solution, by differentiation
    def sent(eta: Float[Array, ""], beta: Float[Array, ""]) -> Float[Array, "n K"]:
        v = ridge.solution(beta * f, y, eta)
        return -jax.grad(lambda f: model.theory_loss(v, beta * f, y, eta))(f)

    # the limits of small ridge, and the formula with an output scale
    without, coefficient = ridge.unridged(f, y)
    small = jnp.asarray(SMALL, jnp.float64)[:, None, None]
    vanishing, received = small * coefficient, jax.vmap(sent, (0, None))(etas, jnp.ones((), jnp.float64))
    scaled = jax.vmap(lambda b: ridge.fixed(f, y, s.eta / b**2))(betas)[..., :SHOWN]
    printed = scaled / betas[:, None, None]
    norms = _norm(received)
    outside, sizes = ridge.span(f, y)
    return jd.observables(
        predicted={
            "small": jd.named(jnp.stack([_norm(vanishing), _norm(without + vanishing)]), "form small"),
            "large": jd.named(jnp.linalg.norm(ridge.early(f, y)) / jnp.asarray(LARGE, jnp.float64), "large"),
            "scaled": jd.named(jnp.stack([printed, scaled]), "form beta sample node"),
        },
        measured={
            "small": jd.named(norms[: len(SMALL)], "small"),
            "large": jd.named(norms[-len(LARGE) :], "large"),
            "scaled": jd.named(jax.vmap(sent, (None, 0))(s.eta, betas)[..., :SHOWN], "beta sample node"),
        },
        recorded={
            "norm": jd.named(norms, "eta_values"),
            "vanishing": jd.named(_norm(vanishing), "small"),
            "outside": outside,
            "ridge": jnp.asarray(s.eta / BETAS[0] ** 2, jnp.float64),  # the largest over the square of a scale
            "least": jnp.square(jnp.min(sizes)),
            "most": jnp.square(jnp.max(jnp.where(jnp.isfinite(sizes), sizes, 0.0))),
        },
        coords={"form": FORMS, "small": SMALL, "large": LARGE, "beta": BETAS, "eta_values": ETAS},
    )


def _norm(g: jax.Array) -> jax.Array:
    return jnp.linalg.norm(g, axis=(-2, -1))


def _slope(y: xr.DataArray, dim: str) -> xr.DataArray:
    """Between the ends of an axis, on logarithmic scales."""
    first, last = y.isel({dim: 0}, drop=True), y.isel({dim: -1}, drop=True)
    return np.log(last / first) / np.log(float(y[dim][-1] / y[dim][0]))


def judge_eta(ds: xr.Dataset) -> list[jd.Check]:
    """Slopes and sizes at ridges far from all singular values; a maximum between where the targets are in the features' span."""
    checks = []
    far = {"small": ds.small * FAR <= ds.least, "large": ds.large >= FAR * ds.most}
    for end, words in (("small", "smallest"), ("large", "largest")):
        measured, predicted = ds[f"measured_{end}"].where(far[end]), ds[f"predicted_{end}"]
        off = _slope(measured, end) - _slope(predicted, end)
        checks += [
            jd.within(f"slope at the {words} eta, minus the predicted one", off, -0.05, 0.05),
            jd.within(f"size at the {words} eta over the predicted one", measured / predicted, 0.95, 1.05),
        ]
    ends = np.maximum(ds.norm.isel(eta_values=0), ds.norm.isel(eta_values=-1))
    both = far["small"].isel(small=0, drop=True) & far["large"].isel(large=-1, drop=True)
    peak = (ds.norm.max("eta_values") / ends).where(both & (ds.outside < WITHIN))
    return [*checks, jd.at_least("maximum over both ends, targets in the span", peak, 10.0)]


def judge_beta(ds: xr.Dataset) -> list[jd.Check]:
    """The formula, and the power of beta where the targets are in the span of the features."""
    measured = _slope(_size(ds.measured_scaled), "beta")
    small = ds.ridge * FAR <= ds.least
    return [
        *judge_scaled(ds),
        jd.within("power of beta, targets in the span", measured.where(small & (ds.outside < WITHIN)), -2.02, -1.98),
    ]


def judge_scaled(ds: xr.Dataset) -> list[jd.Check]:
    """Every entry at every scale, and the power of beta, against the formula."""
    measured, predicted = (_slope(_size(ds[name]), "beta") for name in ("measured_scaled", "predicted_scaled"))
    return [
        jd.at_most("relative error of G_F", jd.relative_error(ds, "scaled", "sample node"), 1e-7),
        jd.within("power of beta, minus the predicted one", measured - predicted, -0.02, 0.02),
    ]


def _size(g: stats.Labelled) -> xr.DataArray:
    return np.sqrt((g**2).sum(["sample", "node"]))


def plot_eta(ds: xr.Dataset, fig: Figure) -> None:
    """The size of G_F against eta for every number of nodes."""
    ax = fig.subplots()
    counts = np.atleast_1d(ds.nodes.values)
    for count, color in zip(counts, ("measured", "third", "fourth", "fifth", "failed"), strict=False):
        part = ds.sel(nodes=count)
        plotting.band(ax, ds.eta_values, part.norm, f"{count:g} nodes", color)
        plotting.band(
            ax, ds.small, part.predicted_small.sel(form="derived"), "limit" if count == counts[-1] else "", "theory", linestyle=":"
        )
    plotting.band(ax, ds.large, part.predicted_large, r"$\|\tilde Y \tilde Y^\top \tilde F\| / \eta$", "theory", linestyle="--")
    ax.set(xscale="log", yscale="log", xlabel=r"ridge $\eta$", ylabel=r"$\|G_F\|$ at the ridge solution")


def plot_beta(ds: xr.Dataset, fig: Figure) -> None:
    """The size of G_F against beta."""
    ax = fig.subplots()
    counts = np.unique(ds.nodes.values)
    shown = counts[np.unique(np.linspace(0, len(counts) - 1, 3).round().astype(int))]
    for count, color in zip(shown, ("fourth", "measured", "third"), strict=False):
        part = ds.sel(nodes=count)
        size, predicted = (_size(part[f"{side}_scaled"]) for side in ("measured", "predicted"))
        plotting.band(ax, ds.beta, size, f"{count:g} nodes", color, marker="o", linestyle="")
        for form, style in (("derived", "-"), ("printed", ":")):
            label = form if count == shown[-1] else ""
            plotting.band(ax, ds.beta, predicted.sel(form=form), label, "theory", linestyle=style)
    ax.set(xscale="log", yscale="log", xlabel=r"output scale $\beta$", ylabel=r"$\|G_F\|$, first nodes")


CONSTANT = jd.swap(  # neither the ridge nor the output scale changes what the hidden layer receives
    predicted_small=lambda ds: ds.predicted_small.isel(small=0, drop=True),
    predicted_large=lambda ds: ds.predicted_large.isel(large=0, drop=True),
    predicted_scaled=lambda ds: ds.predicted_scaled.isel(beta=0, drop=True),
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Regimes, nodes=[10, 20, 40, 60, 200]),
    seeds=8,
    paper_seeds=64,
    source=SOURCE,
    form="derived",
    evidence="algebra",
    bounds="derived: float64 rounding, and the next order of each limit at the smallest and the largest ridge",
    tested="The first {nodes} of random nodes with squared activation, on all pairs of the residues modulo {group}; ridges from "
    f"{ETAS[0]:g} to {ETAS[-1]:g}, output scales from {BETAS[0]:g} to {BETAS[-1]:g} at a ridge of {{eta}}; {{seeds}} seeds.",
)

ETA = STUDY.claim(
    id="li2.eta_regimes",
    talks=(
        "grokking:li2-no-decay",
        "grokking:li2-large-decay",
        "grokking:li2-regime",
    ),
    title="How the hidden layer's gradient depends on weight decay of the top",
    statement=r"Limits at the ridge solution of the top layer: for a ridge $\eta$ far above the squared singular values of the "
    r"features $\tilde F$ the gradient $G_F$ that the hidden layer receives falls as $\|\tilde Y \tilde Y^\top \tilde F\| / "
    r"\eta$. Far below them it tends to $\|(I - \Pi)\tilde Y \tilde Y^\top \tilde F^{+\top}\|$, $\tilde F^+$ being the "
    r"pseudoinverse of the features and $\Pi$ the projector on their span; if the targets $\tilde Y$ are in this span it vanishes "
    r"like $\eta$, with a maximum in between.",
    source=f"corrected from {SOURCE}, Lemma 1",
    judge=judge_eta,
    controls={"a maximum in between for any number of nodes": jd.swap(outside=0.0)},
    rivals={
        "the ridge changes nothing": CONSTANT,
        "for large ridge as its inverse square": jd.swap(
            predicted_large=lambda ds: ds.predicted_large * ds.large.isel(large=0, drop=True) / ds.large
        ),
        "for small ridge nothing, for any number of nodes": jd.swap(predicted_small="vanishing"),
    },
    plot=plot_eta,
    caption=r"Size of $G_F$ at the ridge solution over the ridge $\eta$, a colour per number of nodes, median and central 90% of "
    r"the runs. Dotted: the limit of small ridge; dashed: $\|\tilde Y \tilde Y^\top \tilde F\| / \eta$.",
)
BETA = STUDY.claim(
    id="li2.beta",
    title="Scaling the outputs acts like changing the ridge",
    statement=r"An identity at the ridge solution: with outputs scaled by $\beta$ the hidden layer receives what it would at "
    r"$\beta = 1$ and ridge $\eta/\beta^2$; where the targets are in the span of the features and $\eta/\beta^2$ is far below "
    r"their squared singular values it falls as $\beta^{-2}$.",
    source=f"corrected from {SOURCE}, equation 69",
    judge=judge_beta,
    controls={"the same power for fewer nodes": jd.swap(outside=0.0)},
    rivals={
        "the scale changes nothing": CONSTANT,
        "without the chain rule": jd.swap(predicted_scaled=lambda ds: ds.predicted_scaled / ds.beta),
    },
    plot=plot_beta,
    caption=rf"Size of $G_F$ on the first {SHOWN} nodes over the output scale $\beta$, a colour per number of nodes: dots, by "
    "differentiation of the loss; lines, the formulas as derived (solid) and as printed (dotted). Medians and central 90% of the "
    "runs.",
)

CLAIMS = (
    ETA,
    ETA.as_printed(
        id="li2.eta_regimes_beyond",
        title="Without decay the gradient vanishes for any number of nodes",
        statement="Lemma 1 beyond its assumption of many nodes: at the ridge solution the gradient that the hidden layer "
        r"receives vanishes with the ridge $\eta$ also for fewer nodes than samples.",
        source=f"{SOURCE}, Lemma 1, beyond its assumptions",
        form="printed",
    ),
    BETA,
    BETA.as_printed(
        id="li2.beta_as_printed",
        title="Printed: scaled outputs send back the gradient over their scale",
        statement=r"As printed: with outputs scaled by $\beta$ the gradient that is sent back is $1/\beta$ of that at ridge "
        r"$\eta/\beta^2$.",
        printed=r"arXiv:2509.21519, equation 69: $G_F = E V^\top$ at output scale $\beta$, without the factor $\beta$ of the "
        r"chain rule",
        source=f"{SOURCE}, equation 69, as printed",
        form="printed",
        judge=judge_scaled,
    ),
)
