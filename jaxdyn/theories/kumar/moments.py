"""Expected loss and tangent kernel of random networks from two statistics of the weights: identities, nothing is trained.

Measured are both by cubature and differentiation. Cubature has three nodes in every dimension, exact for the fourth degree of the
squared error in each input.
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
from jaxdyn.theories.kumar import dynamics, model

POINTS = 6  # inputs of the kernel


@jd.setting
class Moments:
    """A random network.

    Args:
        law: of every input, with variance 1 / D: "normal", or "uniform", a breach.
        alpha: output scale.
        epsilon: quadratic part of the nodes.
        dimension: D.
        nodes: N.
    """

    law: jd.Code = jd.code("normal", "uniform")
    alpha: jd.Swept = jd.field(2.0, above=0)
    epsilon: jd.Swept = jd.field(0.5, above=0)
    dimension: int = jd.field(4, at_least=1, at_most=8)  # the cubature has 3^D nodes
    nodes: int = jd.field(10, at_least=1)


def cubature(kind: str, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of variance 1 / D in every dimension, and their weights."""
    if kind == "normal":
        at, weight = np.polynomial.hermite_e.hermegauss(3)
    else:
        at, weight = np.polynomial.legendre.leggauss(3)
        at = at * 3**0.5
    grid = np.stack(np.meshgrid(*[at] * dimension, indexing="ij"), -1).reshape(-1, dimension)
    weights = np.stack(np.meshgrid(*[weight / weight.sum()] * dimension, indexing="ij"), -1).reshape(-1, dimension)
    return grid / dimension**0.5, weights.prod(1)


def trial(s: Moments, key: PRNGKeyArray) -> jd.Observables:
    """The two sides of the loss, and of the kernel at a few inputs."""
    k_first, k_inputs = jax.random.split(key)
    w = model.init(k_first, s.nodes, s.dimension, 1.0, "float64")
    net = model.Network(s.alpha, s.epsilon, w, 0.0)
    laws = [cubature(kind, s.dimension) for kind in s.law.names]
    at, weight = (jnp.asarray(np.stack(v))[s.law.index] for v in zip(*laws, strict=True))
    loss = jnp.sum(weight * jnp.square(model.outputs(net, w, at) - model.target(at)))
    x = model.inputs(k_inputs, POINTS, s.dimension, "float64")
    slopes = jax.jacobian(lambda v: model.outputs(net, v, x))(w).reshape(POINTS, -1)

    def terms() -> Float[Array, " term"]:
        return dynamics.expected_terms(w, s.alpha, s.epsilon)

    straight = x @ x.T
    return jd.observables(
        predicted={"loss": jnp.sum(terms()), "kernel": jd.named(dynamics.kernel(w, s.epsilon, x, x), "point other")},
        measured={"loss": loss, "kernel": jd.named(slopes @ slopes.T * s.nodes / s.alpha**2, "point other")},
        recorded={
            "without_linear": jnp.sum(terms()[:2]),
            "without_alignment": terms()[0] + terms()[2],
            "linear_kernel": jd.named(straight, "point other"),
        },
    )


ROUNDING = 1e-12  # sums of some hundred terms in float64


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """Relative errors of loss and kernel."""
    jd.need(ds, seed=8)
    return [
        jd.at_most("relative error of the loss", jd.relative_error(ds, "loss"), ROUNDING),
        jd.at_most("relative error of the kernel", jd.relative_error(ds, "kernel", "point other"), ROUNDING),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Losses and kernels, both sides."""
    left, right = fig.subplots(1, 2)
    plotting.scatter(left, ds.predicted_loss, ds.measured_loss, "losses")
    plotting.scatter(right, ds.predicted_kernel, ds.measured_kernel, "entries of the kernel", log=False)
    left.set(xlabel="loss from the statistics of the weights", ylabel="expected squared error")
    right.set(xlabel="kernel from the statistics of the weights", ylabel="kernel of the network")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Moments),
    paper=jd.grid(Moments, dimension=7, nodes=100),
    seeds=8,
    paper_seeds=8,
    evidence="algebra",
    tested="Random networks with {nodes} nodes on {dimension} normal inputs: the loss by cubature, the kernel by automatic "
    "differentiation at six inputs; {seeds} seeds.",
    source="arXiv:2310.06110, polynomial regression",
    plot=plot,
    caption="Expected squared error and tangent kernel of random networks against the formulas; a point is a run, or an entry.",
)

CLAIMS = (
    STUDY.claim(
        id="kumar.moments",
        title="Loss and kernel follow from two moments of the weights",
        bounds="derived: float64 rounding of sums of some hundred terms",
        statement=r"For a network $\frac{\alpha}{N}\sum_i \varphi(w_i\cdot x)$ with $\varphi(h) = h + "
        r"\frac{\epsilon}{2}h^2$, the target $\frac12(\beta\cdot x)^2$ and $x \sim N(0, I/D)$, the expected squared error is "
        r"the sum of $\frac14(|\beta|^2 - \alpha\epsilon\,\mathrm{tr}M)^2/D^2$, $\|\alpha\epsilon M - "
        r"\beta\beta^\top\|_F^2/2D^2$ and $\alpha^2|\bar w|^2/D$, and the tangent kernel over $\alpha^2/N$ is $(x\cdot x')[1 "
        r"+ \epsilon\,\bar w\cdot(x + x') + \epsilon^2 x^\top M x']$, with the mean $\bar w$ and the second moments $M$ of "
        r"the nodes' weights $w_i$. These are identities, evaluated at random weights; nothing is trained.",
        judge=judge,
        controls={"uniform inputs": jd.Control({"law": "uniform"}, every_seed=True)},
        rivals={
            "no linear power": jd.swap(predicted_loss="without_linear"),
            "no error of alignment": jd.swap(predicted_loss="without_alignment"),
            "the kernel of linear nodes": jd.swap(predicted_kernel="linear_kernel"),
        },
    ),
)
