r"""Memorisation: a single target whose pairs have different probabilities, and the nodes that maximise it (theorem 5).

One trial: gradient ascent on the uncentred class sum from random starts with all s_g > 0 (the centred energy of one target is 0).
Letters as in ``dynamics/memory.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2.dynamics import memory as theory

SOURCE = "arXiv:2509.21519, theorem 5"
KINDS = ("square", "relu", "silu", "tanh", "cube")
FALLING = KINDS[1:4]
APART = 1e-3  # ends nearer to one another are the same optimum


@jd.setting
class OneTarget:
    """Pairs of one target with probabilities ``p``; if None, in steps from one to ``ratio``, moved by up to 5% and shuffled."""

    ratio: jd.Swept = 3.0  # largest probability of a pair over the smallest, without p
    p: tuple[float, ...] | None = None  # probabilities of the pairs (g, h/g), up to a factor; None: drawn
    group: str = "5"  # of M elements: the target has M pairs
    starts: int = jd.field(512, at_least=256)  # random positive starts; fewer may miss an optimum of x^3
    steps: int = jd.field(1500, at_least=1000)  # steps of ascent; fewer do not converge where two pairs are nearly as probable

    def __post_init__(self) -> None:
        """Refuse equal probabilities, for which x^2 has no single maximum, and steps between them as small as the moves."""
        order = parse(self.group).order
        if self.p is None:
            jd.require(self, self.ratio >= 2, "the largest probability is at least twice the smallest", "ratio")
            jd.require(self, 2 <= order <= 8, "the group has 2 to 8 elements, unless p is given", "group")
            return
        jd.require(self, len(self.p) == order, f"there is one probability for each of the {order} pairs", "p", "group")
        jd.require(self, min(self.p) > 0, "probabilities are positive", "p")
        jd.require(self, self.p.count(max(self.p)) == 1, "one pair is the most probable", "p")


def probabilities(s: OneTarget, keys: tuple[PRNGKeyArray, PRNGKeyArray]) -> Float[Array, " M"]:
    """The pairs' probabilities: given, or drawn."""
    k_p, k_order = keys
    if s.p is not None:
        return jnp.asarray(s.p, jnp.float64) / sum(s.p)
    m = parse(s.group).order
    p = (1 + (s.ratio - 1) * jnp.arange(m) / (m - 1)) * (1 + 0.05 * jax.random.uniform(k_p, (m,), jnp.float64))
    return jax.random.permutation(k_order, p / jnp.sum(p))


def trial(s: OneTarget, key: PRNGKeyArray) -> jd.Observables:
    """Ends of all ascents against the formula, and the number of distinct ends."""
    group = parse(s.group)
    k_p, k_order, k_start = jax.random.split(key, 3)
    m = group.order
    p = probabilities(s, (k_p, k_order))
    # of widely different sizes: for x^3 an improbable pair wins only where it starts well ahead
    start = jnp.exp(1.5 * jax.random.normal(k_start, (2 * m, s.starts), jnp.float64))
    ends = {kind: theory.strengths(theory.ascend(start, p, group, kind, s.steps), group) for kind in KINDS}
    predicted = {"square": theory.winner(p), **{kind: theory.spread(p, kind) for kind in FALLING}}
    # the end that is farthest from the prediction is compared
    far = {kind: ends[kind][:, jnp.argmax(jnp.max(jnp.abs(ends[kind] - x[:, None]), 0))] for kind, x in predicted.items()}
    optima = jnp.asarray([1.0, 1.0, 1.0, 1.0, m], jnp.float64)
    return jd.observables(
        predicted={
            "strength": jd.named(jnp.stack(list(predicted.values())), "activation pair"),
            "optima": jd.named(jnp.stack([optima, jnp.ones_like(optima)]), "form kind"),
        },
        measured={
            "strength": jd.named(jnp.stack([far[kind] for kind in predicted]), "activation pair"),
            "optima": jd.named(jnp.stack([distinct(ends[kind]) for kind in KINDS]), "kind"),
        },
        recorded={
            "p": jd.named(p, "pair"),
            "wins": jd.named(jnp.sum(jnp.argmax(ends["cube"], 0)[:, None] == jnp.arange(m), 0), "pair"),
        },
        coords={"form": ("derived", "printed"), "activation": tuple(predicted), "kind": KINDS},
    )


def distinct(s: Float[Array, "M K"]) -> Float[Array, ""]:
    """Number of columns that differ from all earlier ones."""
    near = jnp.max(jnp.abs(s[:, :, None] - s[:, None]), 0) < APART
    earlier = jnp.arange(s.shape[1])[:, None] < jnp.arange(s.shape[1])
    return jnp.sum(~jnp.any(near & earlier, 0)).astype(jnp.float64)


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The worst end for each activation."""
    return [jd.at_most("strength of a pair, error", abs(ds.measured_strength - ds.predicted_strength), 1e-5)]


def judge_unique(ds: xr.Dataset) -> list[jd.Check]:
    """The number of optima for each activation."""
    return [jd.at_most("number of optima, error", abs(ds.measured_optima - ds.predicted_optima), 0.0)]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Strength against probability: ends, and the formula."""
    ax = fig.subplots()
    p = np.broadcast_to(ds.p.transpose(..., "pair").values, ds.measured_strength.isel(activation=0).transpose(..., "pair").shape)
    for kind, color in zip(ds.activation.values, plotting.CYCLE, strict=False):
        predicted, measured = (
            ds[f"{side}_strength"].sel(activation=kind).transpose(..., "pair").values for side in ("predicted", "measured")
        )
        order = np.argsort(p.ravel())
        ax.plot(p.ravel(), measured.ravel(), "o", color=color, alpha=0.6, label=f"{kind}: ends")
        ax.plot(p.ravel()[order], predicted.ravel()[order], "_", color=color, markersize=9)
    ax.plot([], [], "k_", label="formula")
    ax.set(xlabel="probability of the pair", ylabel=r"$s_g$")


def plot_unique(ds: xr.Dataset, fig: Figure) -> None:
    """Number of optima by activation."""
    ax = fig.subplots()
    measured = ds.measured_optima.transpose("kind", ...).values.reshape(ds.sizes["kind"], -1)
    optima = ds.predicted_optima
    optima = (optima.isel(form=0) if "form" in optima.dims else optima).transpose("kind", ...).values
    predicted = optima.reshape(ds.sizes["kind"], -1)
    x = np.arange(len(measured))[:, None] + np.linspace(-0.2, 0.2, measured.shape[1])
    ax.plot(x.ravel(), measured.ravel(), "o", color=plotting.COLORS["measured"], label="distinct ends")
    for i, level in enumerate(predicted[:, 0]):
        ax.plot([i - 0.35, i + 0.35], [level, level], color=plotting.COLORS["theory"], label="predicted" if i == 0 else None)
    ax.set_xticks(range(len(measured)), [str(k) for k in ds.kind.values])
    ax.set(xlabel="activation", ylabel="optima", ylim=(0, measured.max() + 1))


TESTED = (
    "{starts} positive random starts on the {group} pairs of one target, whose probabilities lie up to a factor of {ratio} apart, "
    "followed for {steps} steps; {seeds} seeds. Of each run the end farthest from the prediction is compared."
)
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(OneTarget, ratio=[2.0, 5.0]),
    paper=jd.grid(OneTarget, ratio=[3.0, 5.0], starts=1024),
    seeds=8,
    paper_seeds=32,
    source=SOURCE,
    form="derived",
    evidence="reduced",
    bounds="derived: the convergence of the ascents; optima are counted",
    tested=TESTED,
)
ALL_ENDS = TESTED.replace("Of each run the end farthest from the prediction is compared.", "Different ends are counted.")

UNIQUE = STUDY.claim(
    id="li2.thm5_unique",
    title="Memorisation has one optimum, but for cubic activation",
    statement="In the reduced dynamics of one node that responds with strengths $s_g > 0$ to the pairs g of a single target, "
    r"of probabilities $p_g$, ascents of $\sum_g p_g \sigma(s_g)$ on the sphere end in one optimum for $x^2$, relu, silu and "
    "tanh, and for $x^3$ in as many as there are pairs.",
    tested=ALL_ENDS,
    judge=judge_unique,
    holds={"ratio": (2.0, 5.0)},  # beyond, so few starts do not find the optimum of the least probable pair for x^3
    controls={"another activation's ends": jd.rolled(measured_optima="kind")},
    rivals={
        "one optimum for each activation": jd.swap(predicted_optima=1.0),
        "an optimum for each pair, whatever the activation": jd.swap(
            predicted_optima=lambda ds: ds.predicted_optima.sel(kind="cube", drop=True)
        ),
    },
    plot=plot_unique,
    caption="Number of distinct ends of ascents from random starts for each activation: dots, runs; bars, the prediction.",
)

CLAIMS = (
    STUDY.claim(
        id="li2.thm5",
        title="With a single target a node memorises the most frequent pairs",
        statement="In the reduced dynamics of one node of norm 1 that responds with strengths $s_g$ to the pairs g of a single "
        r"target, of probabilities $p_g$, ascents of $\sum_g p_g \sigma(s_g)$ from positive $s_g$ end on $\sum_g s_g^2 = 2$ so: "
        r"for $x^2$ the most probable pair takes all; for relu, silu and tanh, where $\varphi = \sigma'/x$ falls, $s_g = "
        r"\varphi^{-1}(2\lambda/p_g)$ with one $\lambda$ for all pairs (relu: $s_g \propto p_g$).",
        judge=judge,
        holds={"ratio": (2.0, 20.0)},
        controls={
            "another activation's ends": jd.Control(jd.rolled(measured_strength="activation"), breaks="for relu, silu and tanh")
        },
        rivals={
            "all pairs alike": jd.swap(predicted_strength=lambda ds: np.sqrt(2 / ds.sizes["pair"])),
            "the most probable pair takes all": jd.swap(
                predicted_strength=lambda ds: ds.predicted_strength.sel(activation="square")
            ),
        },
        plot=plot,
        caption=r"Strength $s_g$ of each pair over its probability, a colour per activation: dots, the end of an ascent that is "
        "farthest from the prediction in each run; bars, the formula.",
    ),
    UNIQUE,
    UNIQUE.as_printed(
        id="li2.thm5_unique_beyond",
        title="Beyond the theorem: one optimum for cubic activation, too",
        statement=r"Theorem 5 beyond its assumption that $\sigma'/x$ falls or $\sigma = x^2$: in the reduced dynamics of one "
        "node that responds to a single target, ascents on the sphere have one optimum for $x^3$, too.",
        form="printed",
    ),
)
