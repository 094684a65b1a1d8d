"""Homogeneous networks and StableMax: identities for random networks, nothing is trained.

They are on the inner product of every layer with its gradient, and on losses at other scales of the weights.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.prieto import dynamics, model

FACTORS = (0.5, 2.0, 3.0)  # of the scale of the weights


@jd.setting
class Identities:
    """A random network on all pairs, in float64.

    Args:
        size: of the weights over the standard start.
        shift: biases of the hidden nodes, a breach.
        modulus: p.
        nodes: m.
    """

    size: jd.Swept = jd.field(3.0, above=0)
    shift: jd.Swept = 0.0
    modulus: int = jd.field(7, at_least=2)
    nodes: int = jd.field(16, at_least=1)


def trial(s: Identities, key: PRNGKeyArray) -> jd.Observables:
    """By automatic differentiation of the whole network and from its logits alone; softmax first, then StableMax."""
    # the whole network, by differentiation and at other scales
    weights = tuple(s.size * w for w in model.init(key, s.modulus, s.nodes, "float64"))
    a, b, answers = model.pairs(s.modulus)
    z = model.outputs(weights, a, b, s.shift)

    def loss(w: model.Weights, stable: bool) -> Float[Array, ""]:
        out = model.outputs(w, a, b, s.shift)
        return jnp.mean(model.losses(model.signed_log(out) if stable else out, answers))

    def along(stable: bool) -> Float[Array, " layer"]:
        return jnp.stack([jnp.vdot(g, w) for g, w in zip(jax.grad(loss)(weights, stable), weights, strict=True)])

    def scaled(stable: bool) -> Float[Array, " factor"]:
        return jnp.stack([loss(tuple(c * w for w in weights), stable) for c in FACTORS])

    # from its logits alone
    def powers(stable: bool, degree: int) -> Float[Array, " factor"]:
        right = (jnp.arange(z.shape[0]), answers)
        return jnp.stack([-jnp.mean(jnp.log(dynamics.probabilities(c**degree * z, stable)[right])) for c in FACTORS])

    def both(values: list[Array], axes: str) -> jd.Named:
        return jd.named(jnp.stack(values), f"kind {axes}")

    # softmax first, then StableMax
    kinds = (False, True)
    inner = [jnp.broadcast_to(dynamics.along_weights(z, answers, k), (3,)) for k in kinds]
    other = [jnp.broadcast_to(dynamics.along_weights(z, answers, not k), (3,)) for k in kinds]
    return jd.observables(
        predicted={"along": both(inner, "layer"), "scaled": both([powers(k, 3) for k in kinds], "factor")},
        measured={"along": both([along(k) for k in kinds], "layer"), "scaled": both([scaled(k) for k in kinds], "factor")},
        recorded={
            "squares": both([powers(k, 2) for k in kinds], "factor"),
            "exchanged": both(other, "layer"),
            "exchanged_scaled": both([powers(not k, 3) for k in kinds], "factor"),
        },
        coords={"kind": ("softmax", "stablemax"), "layer": (1, 2, 3), "factor": FACTORS},
    )


ROUNDING = 1e-12  # sums of some hundred terms in float64


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Every layer's inner product with its gradient, and the loss at every scale of the weights."""
    jd.need(ds, seed=8)
    return [
        jd.at_most("relative error of the inner products", jd.relative_error(ds, "along"), ROUNDING),
        jd.at_most("relative error of losses at other scales", jd.relative_error(ds, "scaled"), ROUNDING),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Inner products and losses, both sides."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_along, ds.measured_along, "layers", log=False)
    plotting.scatter(right, ds.predicted_scaled, ds.measured_scaled, "losses")
    left.set(xlabel="from the logits alone", ylabel="matrix times gradient")
    right.set(xlabel=r"loss of the logits $c^3z$", ylabel=r"loss of weights times $c$")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Identities),
    paper=jd.grid(Identities, modulus=23, nodes=64),
    seeds=8,
    paper_seeds=8,
    evidence="algebra",
    source="arXiv:2501.04697, sections 3 and 4",
    plot=plot,
    caption="Left: inner product of every matrix with its gradient against the mean over samples of logits times their "
    "gradients. Right: loss of scaled weights against that of scaled logits. Softmax and StableMax.",
)

CLAIMS = (
    STUDY.claim(
        id="prieto.scale",
        title="Logits of three matrices without biases scale like the weights' cube",
        bounds="derived: float64 rounding of sums of some hundred terms",
        statement=r"For random networks of three matrices with ReLU and without biases, on the cross-entropy $\ell$ after the "
        r"softmax or StableMax, the inner product of each of the matrices with the loss's gradient by it is the mean over samples "
        r"of $\sum_c z_c\,\partial\ell/\partial z_c$ over logits $z$; and weights that are $c$ times as large have the loss of "
        r"the logits $c^3 z$. These are identities, evaluated at random weights; nothing is trained.",
        tested="Networks with {nodes} nodes and random weights of {size} times the standard size, on all sums modulo "
        "{modulus}; {seeds} seeds. One side by automatic differentiation of the network, the other from its logits alone.",
        judge=judge,
        controls={"biases": jd.Control({"shift": 0.1}, every_seed=True)},
        rivals={
            "softmax and StableMax exchanged": jd.swap(predicted_along="exchanged", predicted_scaled="exchanged_scaled"),
            "logits grow like the square": jd.swap(predicted_scaled="squares"),
        },
    ),
)
