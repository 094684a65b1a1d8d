r"""Wide networks (Lemma 1): G_F becomes a multiple of :math:`\tilde Y \tilde Y^\top \tilde F`; its factor.

Two kinds of inputs: those of the lemma, of equal norm and equal inner products, and all pairs of a group, which are not.
Only the Gram matrix of the samples is stored, summed over blocks of nodes: with :math:`A = \tilde F \tilde F^\top`,
:math:`R = (A + \eta I)^{-1}`, :math:`S = \tilde Y \tilde Y^\top`, :math:`Q = RSR`

.. math:: \langle G_F, S\tilde F \rangle = \eta\,\mathrm{tr}(QAS), \qquad \|G_F\|^2 = \eta^2\,\mathrm{tr}(QAQ), \qquad
    \|S \tilde F\|^2 = \mathrm{tr}(SAS).

Letters as in ``dynamics/ridge.py``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import linalg, plotting, stats
from jaxdyn.data.groups import parse
from jaxdyn.theories.li2 import model
from jaxdyn.theories.li2.dynamics import ridge

SOURCE = "arXiv:2509.21519, Lemma 1"
FORMS = ("printed", "derived")
COUNTS = (5, 10, 20, 40)  # blocks after which the network is measured
TUNED = jd.tuned(on="0:8", confirmed_on="4000:4008")


@jd.setting
class Width:
    """All pairs of a group, Gaussian W of standard deviation ``spread``; ``assumed`` is a breach."""

    activation: jd.Code = jd.code(*model.STUDIED)  # sigma of the hidden nodes
    eta: jd.Swept = jd.field(1.0, above=0, role="none")  # ridge (weight decay) of the top layer
    spread: float = jd.field(1.0, above=0)  # standard deviation of the entries of W
    assumed: float = jd.field(1.0, above=0, role="breach")  # the standard deviation that the theory takes, in parts of spread
    group: str = "11"  # all of whose pairs are used; a number M is the residues modulo M
    block: int = jd.field(500, at_least=1)  # nodes in a block; widths are 5 to 40 blocks


@jd.setting
class Equal:
    """Inputs of the lemma: n of norm root 2, any two with the same inner product, 1 or 0, classes of one size; W as in Width."""

    activation: jd.Code = jd.code(*model.STUDIED)  # sigma of the hidden nodes
    eta: jd.Swept = jd.field(1.0, above=0, role="none")  # ridge (weight decay) of the top layer
    spread: float = jd.field(1.0, above=0)  # standard deviation of the entries of W
    assumed: float = jd.field(1.0, above=0, role="breach")  # the standard deviation that the theory takes, in parts of spread
    common: jd.Code = jd.code("no", "yes")  # whether all inputs have one operand in common
    inputs: int = jd.field(60, at_least=2)  # n, inputs of norm root 2
    classes: int = jd.field(6, at_least=2)  # of equal size
    block: int = jd.field(500, at_least=1)  # nodes in a block; widths are 5 to 40 blocks

    def __post_init__(self) -> None:
        """Refuse classes of several sizes."""
        jd.require(self, self.inputs % self.classes == 0, "inputs is a multiple of classes", "inputs", "classes")


def trial(s: Width, key: PRNGKeyArray) -> jd.Observables:
    """The factor, the angle and the size at every width, and the limit, on all pairs of a group."""
    group = parse(s.group)
    samples = model.pairs(group.order)
    measured, recorded = _grown(s, key, samples, model.targets(group, samples), 2 * group.order)
    c, loose = (_contrast(s, terms) for terms in ((1, -2, 1), (1, 0, -1)))
    derived = ridge.wide(recorded["hidden"], s.eta, c)
    recorded |= {"loose": ridge.wide(recorded["hidden"], s.eta, loose)}
    return jd.observables(
        predicted={"factor": jd.named(derived, "width"), "ratio": jd.named(derived, "width")},
        measured={name: jd.named(values, "width") for name, values in measured.items()},
        recorded={name: jd.named(values, "width") for name, values in recorded.items()},
    )


def equal_trial(s: Equal, key: PRNGKeyArray) -> jd.Observables:
    """The same for the lemma's inputs, and its factor as printed."""
    # operand i in the second place, with one of its own, or one that all share, in the first
    first = jnp.where(s.common == "yes", 0, jnp.arange(s.inputs))
    samples = jnp.stack([first, jnp.arange(s.inputs)], 1)
    y = jax.nn.one_hot(np.arange(s.inputs) % s.classes, s.classes, dtype=jnp.float64)
    measured, recorded = _grown(s, key, samples, y, 2 * s.inputs)
    apart, together = (_contrast(s, terms) for terms in ((1, 0, -1), (1, -1, 0)))
    c, hidden = jnp.where(s.common == "yes", together, apart), recorded["hidden"]
    forms = jnp.stack([ridge.wide_as_printed(hidden, s.inputs, s.eta, c, c), ridge.wide(hidden, s.eta, c)])
    return jd.observables(
        predicted={"factor": jd.named(forms, "form width")},
        measured={"factor": jd.named(measured["factor"], "width")},
        recorded={name: jd.named(values, "width") for name, values in recorded.items()},
        coords={"form": FORMS},
    )


def _grown(
    s: Width | Equal, key: PRNGKeyArray, samples: Int[Array, "n 2"], y: Float[Array, "n M"], rows: int
) -> tuple[dict[str, Float[Array, " width"]], dict[str, Float[Array, " width"]]]:
    """Factor and ratio of the sizes at every width; widths, cosine and sine of the angle."""
    # the signal, and the weights of all blocks
    signal = model.centred(y)
    signal = signal @ signal.T

    def sample_block(block: Int[Array, ""]) -> Float[Array, "D K"]:
        return s.spread * jax.random.normal(jax.random.fold_in(key, block), (rows, s.block), jnp.float64)

    weights = jax.vmap(sample_block)(jnp.arange(COUNTS[-1]))  # next to the samples they would be drawn anew for each of them

    # the Gram matrix of more and more blocks
    def add(block: Int[Array, ""], total: Float[Array, "n n"]) -> Float[Array, "n n"]:
        f = model.centred(model.features(weights[block], samples, s.activation))
        return total + f @ f.T

    def grow(total: Float[Array, "n n"], ends: Int[Array, " 2"]) -> tuple[Float[Array, "n n"], Float[Array, " 3"]]:
        total = jax.lax.fori_loop(ends[0], ends[1], add, total)
        return total, jnp.stack(sizes(total, signal, s.eta))

    ends = jnp.asarray([(0, *COUNTS[:-1]), COUNTS], jnp.int32).T
    both, sent, early = jax.lax.scan(grow, jnp.zeros((len(samples), len(samples)), jnp.float64), ends)[1].T
    cosine = both / (sent * early)
    hidden = jnp.asarray(COUNTS, jnp.float64) * s.block
    return (
        {"factor": both / early**2, "ratio": sent / early},
        {"hidden": hidden, "cosine": cosine, "apart": jnp.sqrt(1 - jnp.square(cosine))},
    )


def _contrast(s: Width | Equal, terms: tuple[int, int, int]) -> Float[Array, ""]:
    """The sum of k(2), k(1) and k(0) with these factors."""
    scale = s.assumed * s.spread
    each = [sum(x * ridge.kernel(a, t, scale) for x, t in zip(terms, (2, 1, 0), strict=True)) for a in model.STUDIED]
    return jnp.asarray(each, jnp.float64)[s.activation.index]


def sizes(
    a: Float[Array, "n n"], signal: Float[Array, "n n"], eta: float | Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """<G_F, S F~>, the norm of G_F, and that of S F~."""
    r = linalg.inv(a + eta * jnp.eye(len(a), dtype=a.dtype))
    q, early = r @ signal @ r, a @ signal
    both = eta * jnp.sum(q * early.T)
    return both, eta * jnp.sqrt(jnp.sum((q @ a) * q)), jnp.sqrt(jnp.sum(signal * early))


SMALL = 1.0  # ridge


def smallest(ds: xr.Dataset) -> xr.Dataset:
    """The runs at the smallest ridge."""
    return ds.isel(eta=0, drop=True) if "eta" in ds.dims else ds


def at_small_ridge(ds: xr.Dataset) -> xr.Dataset:
    """The runs at ridges far below K c, at every width."""
    small = np.atleast_1d(ds.eta.values) <= SMALL if "eta" in ds.coords else np.array([True])
    if not small.any():
        raise jd.Inconclusive(f"a ridge of at most {SMALL:g} is needed")
    return ds.isel(eta=np.flatnonzero(small)) if "eta" in ds.dims else ds


def judge_factor(ds: xr.Dataset) -> list[jd.Check]:
    """The factor and the angle at the largest width; the power of K in the part that is no multiple, at small ridge."""
    small = at_small_ridge(ds)
    widest = (ds.measured_factor / ds.predicted_factor).isel(width=-1)
    power = stats.loglog_slope(small.hidden, small.apart, "width")
    return [
        jd.mean_within("factor at the largest width over the predicted one, mean", widest, over="seed", low=0.95, high=1.05),
        jd.at_least("cosine of G_F and the signal, largest width", ds.cosine.isel(width=-1), 0.98),
        jd.mean_within("power of K in the sine of their angle, mean", power, over="seed", low=-0.6, high=-0.4),
    ]


def judge_equal(ds: xr.Dataset) -> list[jd.Check]:
    """The factor at the largest width, its power of K, and the angle."""
    widest = (ds.measured_factor / ds.predicted_factor).isel(width=-1)
    power = stats.loglog_slope(ds.hidden, ds.measured_factor, "width") - stats.loglog_slope(ds.hidden, ds.predicted_factor, "width")
    return [
        jd.mean_within("factor at the largest width over the predicted one, mean", widest, over="seed", low=0.95, high=1.05),
        jd.mean_within("power of K in the factor, minus the predicted one, mean", power, over="seed", low=-0.1, high=0.1),
        jd.at_least("cosine of G_F and the signal, largest width", ds.cosine.isel(width=-1), 0.98),
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
        plotting.band(left, hidden, part.measured_factor / part.predicted_factor, str(kind), color)
        plotting.band(right, hidden, part.apart, str(kind), color)
    left.axhline(1, color=plotting.COLORS["theory"], label=r"$\eta/(Kc + \eta)^2$")
    guide = float(ds.apart.isel(width=0).mean()) * np.sqrt(float(hidden[0]) / hidden)
    right.plot(hidden, guide, "--", color=plotting.COLORS["theory"], label=r"$K^{-1/2}$")
    for ax in (left, right):
        ax.set(xscale="log", yscale="log")
        ax.set_xticks(hidden.values, [f"{h:g}" for h in hidden.values])
        ax.set_xticks([], minor=True)
    left.set(xlabel="K", ylabel="factor over the corrected one", ylim=(0.5, 2))
    right.set(xlabel="K", ylabel=r"sine of the angle to $\tilde Y\tilde Y^\top\tilde F$")


def plot_equal(ds: xr.Dataset, fig: Figure) -> None:
    """The factor against the width, and both formulas, a panel per inner product."""
    hidden = plotting.first_run(ds).hidden
    panels = {"no": r"$x_i \cdot x_j = 0$", "yes": r"$x_i \cdot x_j = 1$"}
    axes = fig.subplots(1, 2, sharey=True)
    for ax, (common, title) in zip(axes, panels.items(), strict=True):
        for kind, color in zip(np.atleast_1d(ds.activation.values), ("measured", "third", "fourth"), strict=False):
            part = ds.sel(activation=kind, common=common)
            plotting.band(ax, hidden, part.measured_factor, str(kind), color, marker="o", linestyle="")
            for form, style in (("derived", "-"), ("printed", ":")):
                if form in np.atleast_1d(ds.get("form", "derived")):
                    predicted = part.predicted_factor.sel(form=form) if "form" in part.dims else part.predicted_factor
                    label = form if kind == model.STUDIED[0] else ""
                    plotting.band(ax, hidden, predicted, label, color, linestyle=style)
        ax.set(xscale="log", yscale="log", xlabel="K", title=title)
    axes[0].set(ylabel=r"factor of $\tilde Y \tilde Y^\top \tilde F$ in $G_F$")


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
    evidence="algebra",
    bounds=TUNED,
    tested="Gaussian weights of standard deviation {spread}, activations {activation}, on all pairs of the residues modulo "
    f"{{group}}, at ridge {{eta}}, with {COUNTS[0]} to {COUNTS[-1]} blocks of {{block}} nodes; {{seeds}} seeds.",
)

FACTOR = STUDY.claim(
    id="li2.lemma1",
    title="In wide layers the gradient is a known multiple of the early signal",
    statement="Beyond the lemma's assumptions, on all pairs of a group, whose inputs have unequal inner products: for "
    "Gaussian layers of many more nodes than pairs the gradient that the hidden layer receives at the ridge solution becomes "
    r"$G_F \to "
    r"\frac{\eta}{(Kc + \eta)^2} \tilde Y \tilde Y^\top \tilde F$, for K nodes, ridge $\eta$, features $\tilde F$ "
    r"and targets $\tilde Y$ without their means, with $c = k(2) - 2k(1) + k(0)$, where $k(t)$ is the mean product "
    r"of two activations that share t operands; where $Kc \gg \eta$ the sine of the angle between both sides falls "
    "as $K^{-1/2}$.",
    source=f"corrected from {SOURCE}",
    quick=STUDY.quick.replace(eta=[1.0, 300.0]),  # the second comparable with K c
    holds={"spread": (0.5, 2)},
    judge=judge_factor,
    controls={
        "a random layer with weights a tenth smaller than the theory takes": {"assumed": 1.1},
        "narrow layers": {"block": 10},
    },
    rivals={"the width changes nothing": CONSTANT, "k(2) - k(0) for c": jd.swap(predicted_factor="loose")},
    plot=plot_factor,
    caption=r"Over the width K, $\eta = 1$, a colour per activation, median and central 90% of the runs. Left: the factor of "
    r"$\tilde Y \tilde Y^\top \tilde F$ in $G_F$ over the corrected one. Right: the sine of the angle between both; dashed, "
    r"$K^{-1/2}$.",
)
EQUAL = jd.Study(
    trial=equal_trial,
    quick=jd.grid(Equal, activation=list(model.STUDIED), common=["no", "yes"]),
    paper=jd.grid(Equal, activation=list(model.STUDIED), common=["no", "yes"], block=2000),
    seeds=16,
    paper_seeds=32,
    source=SOURCE,
    form="derived",
    evidence="algebra",
    bounds=jd.tuned(on="0:16", confirmed_on="98000000:98000016"),
    tested="Gaussian weights of standard deviation {spread}, activations {activation}; {inputs} inputs of norm root 2 in {classes} "
    f"classes of one size, any two with inner product 0, or any two with 1; ridge {{eta}}, {COUNTS[0]} to {COUNTS[-1]} blocks of "
    "{block} nodes; {seeds} seeds.",
    plot=plot_equal,
    caption=r"Factor of $\tilde Y \tilde Y^\top \tilde F$ in $G_F$ over the width K: dots, random layers (median and central 90% "
    "of the runs); lines, the formulas. Left: orthogonal inputs; right: inputs that have an operand in common.",
)
LEMMA = EQUAL.claim(
    id="li2.lemma1_equal",
    talks=("grokking:li2-lemma-1", "grokking:li2-lemma-1-gram", "grokking:li2-component-dynamics"),
    title="On inputs of the lemma the factor falls with the square of the width",
    statement=r"Under the lemma's assumptions (Gaussian weights, n inputs of one norm and one inner product, width $K \gg n$) "
    r"the gradient that the hidden layer receives at the ridge solution becomes $G_F = \frac{\eta}{(Kc + \eta)^2} "
    r"\tilde Y \tilde Y^\top \tilde F$, for features $\tilde F$ and targets $\tilde Y$ without their means, where "
    "$c$ is an activation's mean square minus the mean product of two.",
    source=f"corrected from {SOURCE}",
    judge=judge_equal,
    holds={"eta": (1, 300), "spread": (0.5, 2)},
    controls={"Gaussian weights a tenth smaller than the theory takes": {"assumed": 1.1}, "narrow layers": {"block": 2}},
    rivals={
        "the width changes nothing": jd.initial("width", "predicted_factor"),
        "the first power of the width, whatever the constants": jd.swap(
            predicted_factor=lambda ds: ds.predicted_factor.isel(width=-1) * ds.hidden.isel(width=-1) / ds.hidden
        ),
    },
)

CLAIMS = (
    FACTOR,
    LEMMA,
    LEMMA.as_printed(
        id="li2.lemma1_as_printed",
        talks=("grokking:li2-lemma-1", "grokking:li2-lemma-1-gram"),
        title="Printed: the size of the gradient in wide layers",
        statement="As printed, under the lemma's assumptions: for Gaussian weights, n inputs of one norm and one inner "
        r"product and many nodes K, $G_F = \frac{\eta}{(K c_1 + \eta)(n c_2 + \eta)} \tilde Y \tilde Y^\top F$ at "
        r"ridge $\eta$, with the features $F$ and the targets $\tilde Y$ minus their means, here with $c_1 = c_2$, "
        "an activation's mean square minus the mean product of two. Whatever the constants, the factor would fall "
        "with the first power of K, not with the second: with more nodes than inputs the nodes' Gram matrix is of "
        "lower rank than any multiple of the identity.",
        printed=r"talk grokking, Lemma 1: $G_F = \frac{\eta}{(Kc_1 + \eta)(nc_2 + \eta)} \tilde{Y} \tilde{Y}^{\top} F$",
        source=f"{SOURCE}, as printed",
        form="printed",
    ),
    STUDY.claim(
        id="li2.K_limit",
        talks=("grokking:li2-wide",),
        title="Gradient over early signal falls as the inverse square of the width",
        statement=r"In Gaussian layers of many more nodes than pairs of group elements, all of which are trained on, with features "
        r"$\tilde F$ and targets $\tilde Y$ minus their means, the gradient $G_F$ that the hidden layer receives at the ridge "
        r"solution has $\|G_F\| / \|\tilde Y \tilde Y^\top \tilde F\| = \eta/(Kc + \eta)^2$ for K nodes and ridge $\eta$: for a "
        r"fixed $\eta \ll Kc$ this ratio vanishes as $K^{-2}$, the lazy limit. Here $c = k(2) - 2k(1) + k(0)$, where $k(t)$ is the "
        "mean product of two activations that share t operands.",
        source=f"derived from {SOURCE}",
        judge=judge_ratio,
        holds={"eta": (0.01, 10), "spread": (0.5, 2), "block": (500, 2000)},
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
