r"""The energy of a node as a canonical-correlation analysis of inputs and targets.

With classes of one size, n pairs and M classes, the columns of :math:`\tilde Y` are orthogonal up to their mean, so that

.. math:: \tfrac12 \|\tilde Y^\top f\|^2 = \frac{n}{2M}\, \|\tilde f\|^2 \rho^2(f, \tilde Y), \qquad
    \max_{w^\top \tilde X^\top \tilde X w = 1} \tfrac12 \|\tilde Y^\top X w\|^2 = \frac{n}{2M}\, \rho_1^2(X, Y)

for any output f of a node, with :math:`\rho` its multiple correlation with the targets, and for linear nodes with
:math:`\rho_1` the first canonical correlation.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import linalg, plotting


@jd.setting
class Sample:
    """Random inputs, labels that depend on them, and a node; ``uneven`` is a breach."""

    activation: jd.Code = jd.code("linear", "quadratic", "relu")  # of the random node; quadratic is x^2
    uneven: int = 0  # 1: all classes but the first have a single sample
    classes: int = jd.field(5, at_least=2)  # M, classes of the labels
    each: int = jd.field(12, at_least=2)  # samples per class, on average if uneven
    inputs: int = jd.field(6, at_least=1)  # dimensions of a random input

    def __post_init__(self) -> None:
        """Refuse inputs that cannot be whitened."""
        samples = self.classes * self.each
        jd.require(self, self.inputs < samples, f"inputs is below {samples}, the number of samples", "inputs", "classes", "each")


def one_hot(s: Sample, x: Float[Array, "n i"], key: PRNGKeyArray) -> Float[Array, "n M"]:
    """Labels by the rank of a noisy linear score, so that classes have the wanted sizes."""
    k_w, k_noise = jax.random.split(key)
    n = x.shape[0]
    score = x @ jax.random.normal(k_w, (s.inputs,), jnp.float64) + jax.random.normal(k_noise, (n,), jnp.float64)
    rank = jnp.argsort(jnp.argsort(score))
    sizes = np.full(s.classes, s.each) if not s.uneven else np.array([n - s.classes + 1] + [1] * (s.classes - 1))
    return jax.nn.one_hot(jnp.searchsorted(jnp.asarray(np.cumsum(sizes)), rank, side="right"), s.classes, dtype=jnp.float64)


def centred(a: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Columns minus their means."""
    return a - jnp.mean(a, 0, keepdims=True)


def energy(y: Float[Array, "n M"], f: Float[Array, " n"]) -> Float[Array, ""]:
    r""":math:`\frac12 \|\tilde Y^\top f\|^2`."""
    return 0.5 * jnp.sum(jnp.square(centred(y).T @ f))


def canonical(x: Float[Array, "n k"], y: Float[Array, "n M"]) -> Float[Array, " c"]:
    """Canonical correlations of some variables with the classes: singular values between orthonormal bases of their spans."""
    q_x, q_y = linalg.qr(centred(x)), linalg.qr(centred(y)[:, :-1])
    return linalg.singular_values(q_x[0].T @ q_y[0])


def trial(s: Sample, key: PRNGKeyArray) -> jd.Observables:
    """A random node's energy, and the largest energy of a linear node with whitened inputs."""
    k_x, k_y, k_w = jax.random.split(key, 3)
    n = s.classes * s.each
    x = jax.random.normal(k_x, (n, s.inputs), jnp.float64)
    y, z = one_hot(s, x, k_y), x @ jax.random.normal(k_w, (s.inputs,), jnp.float64)
    f = jnp.select([s.activation == "linear", s.activation == "quadratic"], [z, jnp.square(z)], jax.nn.relu(z))
    values, vectors = linalg.eigh(centred(x).T @ centred(x))
    white = centred(x) @ (vectors / jnp.sqrt(values)) @ vectors.T
    reached = linalg.eigvalsh((centred(y).T @ white).T @ (centred(y).T @ white))[-1] / 2
    share, spread = n / (2 * s.classes), jnp.sum(jnp.square(f - jnp.mean(f)))
    return jd.observables(
        predicted={
            "energy": share * spread * jnp.square(canonical(f[:, None], y)[0]),
            "largest": share * jnp.square(canonical(x, y)[0]),
        },
        measured={"energy": energy(y, f), "largest": reached},
        recorded={"spread": share * spread, "share": jnp.float64(share)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """A node's energy and the largest one, against correlations."""
    return [
        jd.at_most("relative error of a node's energy", jd.relative_error(ds, "energy"), 1e-9),
        jd.at_most("relative error of the largest energy of linear nodes", jd.relative_error(ds, "largest"), 1e-9),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Energies over what correlations say."""
    for ax, name, label in zip(
        fig.subplots(1, 2), ("energy", "largest"), ("a node's energy", "largest energy, linear nodes"), strict=True
    ):
        plotting.scatter(ax, ds[f"predicted_{name}"], ds[f"measured_{name}"], label="runs")
        ax.set(xlabel="by correlations", ylabel=label)


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Sample, activation=["linear", "quadratic", "relu"]),
        seeds=100,
        evidence="algebra",
        source="arXiv:2509.21519, theorem 1; Hotelling 1936",
        tested="{classes} classes of {each} random inputs in {inputs} dimensions, labels by a noisy linear score; nodes with "
        "random weights, {activation}; canonical correlations from orthonormal bases; {seeds} seeds.",
        plot=plot,
        caption="A random node's energy, and the largest energy of linear nodes with whitened inputs, over their values by "
        "correlations; a point is a run.",
    ).claim(
        id="li2.cca",
        title="A node's energy measures its correlation with the targets",
        statement=r"An identity: with $M$ classes of one size and $n$ samples, a node's energy is $\frac{n}{2M} \|\tilde f\|^2 "
        r"\rho^2$, with $\tilde f$ its output without the mean and $\rho$ its multiple correlation with the targets, for any "
        r"activation; the largest energy of linear nodes of norm 1 on whitened inputs $\tilde X$ ($\tilde X^\top \tilde X = I$) "
        r"is $\frac{n}{2M} \rho_1^2$, with $\rho_1$ the first canonical correlation of inputs and targets.",
        talks=("grokking:li2-cca",),
        bounds="derived: float64 rounding of singular value decompositions",
        judge=judge,
        controls={"classes of different sizes": {"uneven": 1}},
        rivals={
            "the energy is the variance alone": jd.swap(predicted_energy="spread", predicted_largest="share"),
            "correlations count once, not squared": jd.swap(
                predicted_energy=lambda ds: np.sqrt(ds.predicted_energy * ds.spread),
                predicted_largest=lambda ds: np.sqrt(ds.predicted_largest * ds.share),
            ),
        },
    ),
)
