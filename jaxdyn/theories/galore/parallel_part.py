"""Descent where inputs lack dimensions: the part of the gradient that no weight feels stays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import linalg, plotting, train
from jaxdyn.theories.galore import model
from jaxdyn.theories.galore.dynamics import decay, varying
from jaxdyn.theories.galore.projection import positive


@jd.setting
class Free:
    r"""Parametric gradients :math:`A - \frac1N\sum_i B_i W f_i f_i^\top` with any A, and inputs that lack dimensions."""

    leak: jd.Swept = jd.field(0.0, at_least=0)  # standard deviation of a part in all dimensions; 0 in the theorem
    size: int = 8  # n, rows and columns of W
    span: int = jd.field(3, at_least=1, role="none")  # N', dimensions that the inputs span
    steps: int = 800  # steps of gradient descent

    def __post_init__(self) -> None:
        """Refuse inputs that span all dimensions."""
        jd.require(self, self.span < self.size, "span is below size", "span", "size")


def trial(s: Free, key: PRNGKeyArray) -> jd.Observables:
    """The gradient at the end of descent, and the part of A that no weight feels."""
    # inputs and coefficients
    k_f, k_mix, k_a, k_b, k_leak = jax.random.split(key, 5)
    count = 2 * s.size
    frame = linalg.qr(jax.random.normal(k_f, (s.size, s.span), jnp.float64))[0]
    mixed = linalg.qr(jax.random.normal(k_mix, (count, s.span), jnp.float64))[0]
    within = mixed * jnp.linspace(1, 2, s.span, dtype=jnp.float64) @ frame.T
    inputs = within + s.leak * jax.random.normal(k_leak, (count, s.size), jnp.float64)
    a = jax.random.normal(k_a, (s.size, s.size), jnp.float64)
    b, c = positive(k_b, count, s.size), jnp.einsum("ij,ik->ijk", inputs, inputs)
    eta = 1 / decay.modes(b, c).values[-1]

    def negative(w: Array) -> Array:
        return -jax.grad(model.linear_loss)(w, a, b, c)

    # the end of descent, and the part that stays
    last = jax.lax.fori_loop(0, s.steps, lambda _, w: w + eta * negative(w), jnp.zeros_like(a))
    end, left = negative(last), varying.remainder(a, within, s.span)
    values = linalg.singular_values(end)
    return jd.observables(
        predicted={"end": jd.named(left, "row col"), "rank": float(s.size - s.span)},
        measured={"end": jd.named(end, "row col"), "rank": jnp.sum(values > 1e-6 * values[0]).astype(jnp.float64)},
        recorded={
            "none": jd.named(jnp.zeros_like(a), "row col"),
            "start": jd.named(a, "row col"),
            "left": jnp.linalg.norm(end),
            "size": float(s.size),
        },
        status=train.finite_status(end),
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The gradient at the end against the part of A that no weight feels, and its rank."""
    return [
        jd.at_most("gradient at the end: relative error", jd.relative_error(ds, "end", "row col"), 1e-6),
        jd.at_most("|rank at the end - (n - N')|", abs(ds.measured_rank - ds.predicted_rank), 0.0),
    ]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Entries of the gradient at the end, and its singular values."""
    left, right = fig.subplots(1, 2)
    one = ds.isel(seed=slice(0, 16))
    plotting.scatter(left, one.predicted_end, one.measured_end, label="entries of the gradient", color="measured")
    left.set(xlabel=r"$A(I - \Pi)$", ylabel="end of descent")
    values = np.linalg.svd(one.measured_end.transpose(..., "row", "col").values.reshape(-1, *ds.measured_end.shape[-2:]))[1]
    right.plot(np.arange(values.shape[1]) + 1, values.T, color=plotting.COLORS["measured"], linewidth=0.8, alpha=0.5)
    right.axvline(float(ds.predicted_rank.max()) + 0.5, color=plotting.COLORS["theory"], linestyle="--", label="$n - N'$")
    right.set(yscale="log", xlabel="number of the singular value", ylabel="singular value at the end")
    right.legend()


CLAIMS = (
    jd.Study(
        trial=trial,
        quick=jd.grid(Free),
        paper=jd.grid(Free, span=[2, 3, 5]),
        seeds=128,
        paper_seeds=512,
        evidence="reduced",
        bounds="derived: the decay of all other parts over the steps; the rank is counted",
        source="arXiv:2403.03507, corollary to lemma 3.4, for A that is not of the parametric form; where it ends: derived",
    ).claim(
        id="galore.parallel_part",
        title="The part of the gradient that no input reaches stays",
        tested="{steps} steps of gradient descent, by differentiation of a quadratic loss: weights of {size} by {size}, a "
        "Gaussian A, inputs that span {span} dimensions, symmetric $B_i$ with eigenvalues from .5 to 1.5; {seeds} problems.",
        statement=r"In the reduced dynamics of gradient descent from zero weights, n by n, whose negative gradient is $A - "
        r"\frac1N\sum_i B_i W f_i f_i^\top$ with symmetric positive definite $B_i$, Gaussian $A$ and inputs $f_i$ that span $N' < "
        r"n$ dimensions, the gradient does not vanish: it ends at $A(I - \Pi)$, $\Pi$ the projection on the inputs' span, which "
        r"has rank $n - N'$.",
        judge=judge,
        controls={"inputs that span all dimensions": {"leak": 0.5}},
        rivals={
            "the gradient vanishes": jd.swap(predicted_end="none", predicted_rank=0.0),
            "nothing moves": jd.swap(predicted_end="start", predicted_rank="size"),
        },
        plot=plot,
        caption=r"Left: entries of the gradient at the end of descent against $A(I - \Pi)$. Right: its singular values, one line "
        r"per run; dashed: after the first $n - N'$. 16 runs.",
    ),
)
