"""The form of gradients: exact for reversible networks with squared errors, of first order for the softmax.

Gradients of trained chains of layers against their form, and of the cross-entropy at small logits.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting, stats, train
from jaxdyn.theories.galore import dynamics, model

POINTS = 8


@jd.setting
class Chain:
    """A chain of layers, trained by gradient descent on random targets."""

    layer: jd.Code = jd.code(*model.LAYERS)  # bias: ReLU with biases; softmax: entries times their softmax
    lr: jd.Swept = jd.field(0.01, above=0)  # step size of gradient descent
    depth: int = jd.field(3, at_least=2)  # L, weight matrices
    width: int = jd.field(6, at_least=2)  # d, entries of every layer
    steps: int = jd.field(100, at_least=1)  # steps of training


@jd.setting
class Logits:
    """A random ReLU chain with small logits."""

    size: jd.Swept = jd.field(0.01, above=0)  # standard deviation of the logits before amplification
    amplify: jd.Swept = jd.field(1.0, above=0)  # factor on the logits; 1 in the theorem
    depth: int = jd.field(3, at_least=2)  # L, weight matrices
    classes: int = jd.field(10, at_least=2)  # K, also the width of all layers


def chain_trial(s: Chain, key: PRNGKeyArray) -> jd.Observables:
    """The gradient of every layer after training, by differentiation and by the form."""
    k_w, k_x, k_y, k_b = jax.random.split(key, 4)
    x, y = (jax.random.normal(k, (POINTS, s.width), jnp.float64) for k in (k_x, k_y))
    bias = jax.random.normal(k_b, (s.depth, s.width), jnp.float64)

    def loss(w: jax.Array) -> jax.Array:
        return model.squared(w, x, y, s.layer.index, bias)

    start = model.init(k_w, s.depth, s.width)
    tx = optax.sgd(s.lr)
    step = train.make_step(loss, tx)
    trained = jax.lax.fori_loop(0, s.steps, lambda _, state: step(state), train.init(tx, start)).params
    shift = jnp.where(s.layer == "bias", 1.0, 0.0) * bias
    a, b = dynamics.squared_parts(trained, x, y, s.layer.index, shift)
    return jd.observables(
        predicted={"gradient": jd.named(a - b, "place row col")},
        measured={"gradient": jd.named(-jax.grad(loss)(trained), "place row col")},
        recorded={"targets_alone": jd.named(a, "place row col"), "loss": loss(trained) / loss(start)},
        status=train.finite_status(trained),
    )


def logits_trial(s: Logits, key: PRNGKeyArray) -> jd.Observables:
    """Gradients of the cross-entropy, their form, and the best gamma."""
    k_w, k_x, k_y = jax.random.split(key, 3)
    x = jax.random.normal(k_x, (POINTS, s.classes), jnp.float64)
    y = jax.nn.one_hot(jax.random.randint(k_y, (POINTS,), 0, s.classes), s.classes, dtype=jnp.float64)
    w = model.init(k_w, s.depth, s.classes)
    zero = jnp.zeros((s.depth, s.classes), jnp.float64)
    out = jax.vmap(lambda x: model.chain(w, x, 0, zero))(x)
    w = w.at[-1].multiply(s.size * s.amplify / jnp.std(out))
    a, b = dynamics.softmax_parts(w, x, y)
    g = -jax.grad(model.cross_entropy)(w, x, y)
    return jd.observables(
        predicted={"linear": jd.named(b, "place row col")},
        measured={"linear": jd.named(a - g, "place row col")},
        recorded={"gradient": jd.named(g, "place row col")},
    )


ENTRIES = "place row col"
SIZES = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1]


def judge_chain(ds: xr.Dataset) -> list[jd.Check]:
    """The gradients of all layers; gate: training has lowered the loss, on average over runs."""
    return [
        jd.gate("loss after training over loss before, mean over runs", ds.loss.mean("seed"), at_most=0.99),
        jd.at_most("error of the gradients over their first term", form_error(ds), 1e-10),
    ]


def form_error(ds: xr.Dataset) -> xr.DataArray:
    """Distance from the form over the size of its first term: training sends the gradient to zero, but neither of its terms."""
    return _size(ds.measured_gradient - ds.predicted_gradient) / _size(ds.targets_alone)


def _size(x: stats.Labelled) -> xr.DataArray:
    return np.sqrt((x**2).sum(["row", "col"], min_count=1))


def residual(ds: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """The best gamma, and what the linear term with it leaves, relative to what it should be."""
    product = (ds.measured_linear * ds.predicted_linear).sum(ENTRIES.split(), min_count=1)
    norm = (ds.predicted_linear**2).sum(ENTRIES.split(), min_count=1)
    gamma = xr.where(norm == 0, 0.0, product / norm)  # no multiple of a linear term that vanishes explains anything
    size = (ds.measured_linear**2).sum(ENTRIES.split(), min_count=1)
    rest = ((ds.measured_linear - gamma * ds.predicted_linear) ** 2).sum(ENTRIES.split(), min_count=1)
    return gamma, (rest / size) ** 0.5


def judge_logits(ds: xr.Dataset) -> list[jd.Check]:
    """Gamma at small logits, and the order of the remainder in the size of the logits."""
    jd.need(ds, size=SIZES)
    gamma, rest = residual(ds)
    slopes = stats.loglog_slope(ds["size"], rest, "size")
    return [
        jd.mean_within("best gamma at logits of size 0.01", gamma.sel(size=0.01), over="seed", low=0.99, high=1.01),
        jd.mean_within("order of the remainder in the size of the logits", slopes, over="seed", low=0.9, high=1.1),
    ]


def plot_chain(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the gradients, form against differentiation; errors by depth."""
    left, right = fig.subplots(1, 2)
    one = ds.isel(seed=slice(0, 8))
    plotting.scatter(left, one.predicted_gradient, one.measured_gradient, label="entries of the gradients", color="measured")
    left.set(xlabel="form", ylabel="differentiation")
    error = form_error(ds)
    for i, depth in enumerate(np.atleast_1d(ds.depth.values)):
        part = error.sel(depth=depth) if "depth" in error.dims else error
        values = part.values.ravel()
        values = values[np.isfinite(values)]
        right.plot(np.full(values.size, i), np.maximum(values, 1e-18), "o", color=plotting.COLORS["measured"], alpha=0.3)
    right.axhline(1e-10, color=plotting.COLORS["theory"], linestyle="--", label="bound")
    right.set_xticks(range(np.size(ds.depth.values)), [str(d) for d in np.atleast_1d(ds.depth.values)])
    right.set(yscale="log", xlabel="layers", ylabel="error / size of the first term")


def plot_logits(ds: xr.Dataset, fig: Figure) -> None:
    """The remainder over the size of the logits, and gamma."""
    left, right = fig.subplots(1, 2)
    gamma, rest = residual(ds)
    size = ds["size"].values
    plotting.band(left, size, rest.transpose(..., "size"), "remainder", "measured")
    left.plot(size, 0.4 * size, "--", color=plotting.COLORS["theory"], label="slope 1")
    left.set(xscale="log", yscale="log", xlabel="standard deviation of the logits", ylabel="remainder / linear term")
    plotting.band(right, size, gamma.transpose(..., "size"), r"best $\gamma$", "measured")
    right.axhline(1, color=plotting.COLORS["theory"], linestyle="--")
    right.set(xscale="log", xlabel="standard deviation of the logits", ylabel=r"$\gamma$")


CHAINS = jd.Study(
    trial=chain_trial,
    quick=jd.grid(Chain, depth=[2, 5], layer=["relu", "leaky"]),
    paper=jd.grid(Chain, depth=[2, 3, 4, 5], layer=["relu", "leaky"], width=16, steps=1000),
    seeds=128,
    paper_seeds=128,
    evidence="network",
    bounds="derived: float64 rounding of sums over the points",
    source="arXiv:2403.03507, theorem 3.2",
    tested="{steps} steps of gradient descent at rate {lr} on squared errors at 8 random points; {depth} layers of width {width} "
    "without biases, ReLU or leaky ReLU units; {seeds} seeds.",
)
LOGITS = jd.Study(
    trial=logits_trial,
    quick=jd.grid(Logits, size=SIZES),
    paper=jd.grid(Logits, size=SIZES, depth=[2, 3, 5]),
    seeds=128,
    paper_seeds=256,
    evidence="algebra",
    bounds="derived: the next order in the size of the logits",
    source="arXiv:2403.03507, lemma 3.3; the remainder's order: derived",
    tested="Automatic differentiation at random weights of ReLU networks of {depth} layers, {classes} classes, 8 random points, "
    "logits of standard deviation {size}; {seeds} seeds.",
)

CLAIMS = (
    CHAINS.claim(
        id="galore.grad_form_l2",
        title="Gradients have the form that GaLore assumes, for squared errors",
        statement=r"In networks without biases, with ReLU or leaky ReLU units and trained by gradient descent on squared errors, "
        r"the negative gradient of every layer's weights $W_l$ is $\frac1N \sum_i (J^\top y - J^\top J\, W_l f_{l-1}) "
        r"f_{l-1}^\top$ to $10^{-10}$ of the size of its first term, with targets $y$, layer inputs $f_{l-1}$ at $N$ points and "
        r"$J$ the derivative of the output by $W_l f_{l-1}$, the product of the later weights and of the slopes of the units "
        r"(the last layer has none). It is an identity, at random weights and along training.",
        holds={"lr": (0.001, 0.01)},
        judge=judge_chain,
        decides={"every layer": ("error of the gradients over their first term", "biases")},
        controls={
            "biases": {"layer": "bias"},
            "layer norm": {"layer": "layernorm"},
            "units weighted by a softmax": jd.Control(
                {"layer": "softmax", "lr": 1e-3}, why="At the others' rate these networks diverge in long training."
            ),
        },
        rivals={"the gradient does not feel the weights: targets alone": jd.off(predicted_gradient="targets_alone")},
        plot=plot_chain,
        caption="Left: entries of all layers' gradients, form against differentiation, 8 seeds. Right: error of every "
        "layer's gradient over the size of the first term, by the number of layers, one point per layer and run (below 1e-18 "
        "shown there); dashed: the bound.",
    ),
    LOGITS.claim(
        id="galore.grad_form_softmax",
        title="Gradients have the form that GaLore assumes, at small logits",
        statement="In random ReLU networks at small logits, the negative gradient of the cross-entropy of $K > 2$ classes is "
        r"$\frac1N \sum_i (J^\top P y - \frac{\gamma}{K} J^\top P J\, W_l f_{l-1}) f_{l-1}^\top$ with $P = I - "
        r"11^\top/K$, one-hot targets $y$, layer inputs $f_{l-1}$ at $N$ points and $J$ the product of the weights and "
        "active units after layer $l$, up to a remainder of first order in the size of the logits, relative to the "
        r"second term; $\gamma$ is 1 within 1% on average at logits of standard deviation 0.01. (An identity to "
        "first order, at random weights; no training.)",
        holds={"classes": (5, 30)},
        judge=judge_logits,
        controls={"logits 1000 times as large": {"amplify": 1000.0}},
        rivals={
            "the gradient does not feel the weights": jd.swap(predicted_linear=0.0),
            "without the factor 1/K": jd.scaled(predicted_linear=10.0),
        },
        plot=plot_logits,
        caption=r"Left: what the linear term with the best $\gamma$ leaves, relative to that term, against the logits' standard "
        r"deviation; median and central 90% of the runs, and slope 1. Right: the best $\gamma$.",
    ),
)
