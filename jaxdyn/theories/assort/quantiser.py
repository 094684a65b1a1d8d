r"""The quantiser on random vectors: its choice, its gradients and a codebook of averages, next to formulas and differences.

Downstream of the quantiser is :math:`f(z) = \sum_i \tanh(A z_i) \cdot w`. Recorded as well are averages of a fixed assignment
after some steps of :func:`jaxdyn.nn.vq.averaged`, and their closed form, for decay :math:`\gamma`, n steps and sums m from
:math:`m_0` on:

.. math:: e_k = \frac{\gamma^n m_{0,k} + (1 - \gamma^n) \sum_{k(x) = k} x}{\gamma^n N_{0,k} + (1 - \gamma^n)\, n_k}

Letters: n vectors of d numbers, K codes.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.nn import vq

STEPS = (1, 4, 16, 64)  # of the averages
SMALL = 1e-6  # step of the finite differences


@jd.setting
class Quantiser:
    """Vectors, a codebook, and breaches.

    Args:
        choice: "nearest", or the code with the largest inner product.
        passing: "straight" through, or "hard": the gradient of the choice itself, which is zero.
        stopped: 1, or 0 for penalties in which no gradient is stopped.
        beta: factor of the commitment.
        decay: of the averages.
        vectors: n, to be quantised.
        width: d, numbers in a vector.
        codes: K, vectors of the codebook.
    """

    choice: jd.Code = jd.code("nearest", "product")
    passing: jd.Code = jd.code("straight", "hard")
    stopped: jd.Swept = 1.0
    beta: jd.Swept = jd.field(0.25, at_least=0)
    decay: jd.Swept = jd.field(0.9, at_least=0, below=1)
    vectors: int = jd.field(64, at_least=1)
    width: int = jd.field(6, at_least=1)
    codes: int = jd.field(16, at_least=1)
    dtype: str = "float64"


def brute(x: Float[Array, "n d"], codebook: Float[Array, "K d"]) -> Float[Array, "n K"]:
    """All distances, from differences."""
    return jnp.sqrt(jnp.sum(jnp.square(x[:, None] - codebook), -1))


def differences(f: Callable[[Array], Array], z: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """The gradient at each vector of f, which has a value for each, by central differences."""
    along = SMALL * jnp.eye(z.shape[1], dtype=z.dtype)
    return jax.lax.map(lambda h: (f(z + h) - f(z - h)) / (2 * SMALL), along).T


def selected(s: Quantiser, x: Float[Array, "n d"], codebook: Float[Array, "K d"]) -> Int[Array, " n"]:
    """The code of each vector."""
    product = jnp.argmax(x @ codebook.T, -1).astype(jnp.int32)
    return jnp.where(s.choice == "nearest", vq.nearest(x, codebook), product)


def penalty(s: Quantiser, x: Float[Array, "n d"], codebook: Float[Array, "K d"]) -> Float[Array, ""]:
    """Both penalties, with what the setting stops."""
    e = codebook[selected(s, x, codebook)]
    book, commitment = vq.penalties(x, e)
    free = jnp.sum(jnp.square(x - e), -1)
    return jnp.sum(jnp.where(s.stopped > 0, book + s.beta * commitment, (1 + s.beta) * free))


def averages(
    s: Quantiser, x: Float[Array, "n d"], codes: Int[Array, " n"], codebook: Float[Array, "K d"]
) -> tuple[Float[Array, "record K d"], Float[Array, "record K d"], Float[Array, "record K d"]]:
    """The codebook by closed form, by steps, and if each code went to the mean of its vectors whatever their number."""

    def advance(state: vq.Averages, _: None) -> tuple[vq.Averages, Float[Array, "K d"]]:
        return vq.averaged(state, x, codes, s.decay)

    moved = jax.lax.scan(advance, vq.started(codebook), None, STEPS[-1])[1][jnp.asarray(STEPS) - 1]
    left = (s.decay ** jnp.asarray(STEPS, s.dtype))[:, None, None]
    hits = (codes[:, None] == jnp.arange(s.codes)).astype(s.dtype)
    total, number = hits.T @ x, jnp.sum(hits, 0)[:, None]
    expected = (left * codebook + (1 - left) * total) / (left + (1 - left) * number)
    mean = jnp.where(number > 0, total / jnp.maximum(number, 1), codebook)
    return expected, moved, left * codebook + (1 - left) * mean


def trial(s: Quantiser, key: PRNGKeyArray) -> jd.Observables:
    """Choices, gradients, averages."""
    # vectors, codebook, and what is downstream
    k_x, k_book, k_a, k_w = jax.random.split(key, 4)
    x = jax.random.normal(k_x, (s.vectors, s.width), s.dtype)
    codebook = jax.random.normal(k_book, (s.codes, s.width), s.dtype)
    a = jax.random.normal(k_a, (s.width, s.width), s.dtype)
    w = jax.random.normal(k_w, (s.width,), s.dtype)
    f = lambda z: jnp.tanh(z @ a.T) @ w  # noqa: E731
    # choice and gradients
    away, codes = brute(x, codebook), selected(s, x, codebook)
    e = codebook[codes]
    passed = lambda x: jnp.where(s.passing == "straight", vq.straight(x, e), codebook[selected(s, x, codebook)])  # noqa: E731
    to_x, to_book = jax.grad(lambda x, book: penalty(s, x, book), argnums=(0, 1))(x, codebook)
    pull = jnp.zeros_like(codebook).at[codes].add(2 * (e - x))
    # a codebook of averages
    expected, moved, unweighted = averages(s, x, codes, codebook)
    numbers, entry, book = (lambda v: jd.named(v.astype(s.dtype), "vector")), "vector coordinate", "code coordinate"
    return jd.observables(
        predicted={
            "distance": numbers(jnp.min(away, 1)),
            "code": numbers(jnp.argmin(away, 1)),
            "again": numbers(codes),
            "gradient": jd.named(differences(f, e), entry),
            "commitment": jd.named(2 * s.beta * (x - e), entry),
            "pull": jd.named(pull, book),
            "average": jd.named(expected, f"record {book}"),
        },
        measured={
            "distance": numbers(jnp.take_along_axis(away, codes[:, None], 1)[:, 0]),
            "code": numbers(codes),
            "again": numbers(selected(s, e, codebook)),
            "gradient": jd.named(jax.grad(lambda x: jnp.sum(f(passed(x))))(x), entry),
            "commitment": jd.named(to_x, entry),
            "pull": jd.named(to_book, book),
            "average": jd.named(moved, f"record {book}"),
        },
        recorded={
            "start": jd.named(jnp.broadcast_to(codebook, moved.shape), f"record {book}"),
            "unweighted": jd.named(unweighted, f"record {book}"),
        },
        coords={"record": STEPS},
    )


EXACT = 1e-12  # some hundred sums in float64


def error(ds: xr.Dataset, name: str) -> xr.DataArray:
    """Absolute error of a measured quantity."""
    return abs(ds[f"measured_{name}"] - ds[f"predicted_{name}"])


def judge_quantiser(ds: xr.Dataset) -> list[jd.Check]:
    """Choice, idempotence, and the three gradients."""
    scale = max(float(abs(ds[f"{side}_gradient"]).max()) for side in ("predicted", "measured"))
    return [
        jd.at_most("codes that are not the nearest, by brute force", (error(ds, "code") > 0).sum("vector"), 0),
        jd.at_most("distance minus the smallest one", error(ds, "distance"), EXACT),
        jd.at_most("codes that change when quantised again", (error(ds, "again") > 0).sum("vector"), 0),
        jd.at_most("gradient at x against finite differences at q(x)", error(ds, "gradient") / scale, 1e-7),
        jd.at_most("gradient of the commitment: absolute error", error(ds, "commitment"), EXACT),
        jd.at_most("gradient of the codebook: absolute error", error(ds, "pull"), EXACT),
    ]


def judge_averages(ds: xr.Dataset) -> list[jd.Check]:
    """Vectors of the codebook after 1 to 64 steps."""
    return [jd.at_most("vectors of the codebook: absolute error", error(ds, "average"), EXACT)]


def plot_quantiser(ds: xr.Dataset, fig: Figure) -> None:
    """Gradients at the vectors against finite differences, and the commitment's against its formula."""
    for ax, name, label in zip(
        fig.subplots(1, 2), ("gradient", "commitment"), ("finite differences at $q(x)$", r"$2\beta(x - e)$"), strict=True
    ):
        x, y = (ds[f"{side}_{name}"].values.ravel() for side in ("predicted", "measured"))
        ax.plot(x, y, ".", ms=3, color=plotting.COLORS["measured"])
        ax.plot([x.min(), x.max()], [x.min(), x.max()], "--", color=plotting.COLORS["theory"])
        ax.set(xlabel=label, ylabel="gradient at $x$")


def plot_averages(ds: xr.Dataset, fig: Figure) -> None:
    """Distance of the codebook from its start, by steps."""
    ax = fig.subplots()
    for side, color, style in (("measured", "measured", "o"), ("predicted", "theory", "--")):
        moved = np.sqrt(((ds[f"{side}_average"] - ds.start) ** 2).sum("coordinate")).mean(("code", "seed"))
        for decay in np.atleast_1d(ds.decay.values):
            one = moved.sel(decay=decay) if "decay" in moved.dims else moved
            ax.plot(ds.record, one, style, color=plotting.COLORS[color])
    ax.set(xscale="log", xlabel="steps", ylabel="distance from the start")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Quantiser, beta=[0.25, 1.0]),
    paper=jd.grid(Quantiser, beta=[0.25, 1.0], vectors=1024, codes=256, width=64),
    seeds=8,
    paper_seeds=16,
    evidence="algebra",
    bounds="derived: float64 rounding of some hundred terms, and central differences at steps of 1e-6",
    source="arXiv:1711.00937, equations 1-3 and appendix A.1; arXiv:2502.03275, section 3.1",
    tested="No training: {vectors} random vectors of {width} numbers and {codes} random codes, {seeds} draws.",
)

CLAIMS = (
    STUDY.claim(
        id="assort.quantiser",
        title="The quantiser picks the nearest code and passes gradients through",
        statement="The quantiser $q$ replaces each vector $x$ by the nearest, $e$, of $K$ codes, as a search of all "
        "distances finds it, and leaves what is quantised as it is. Straight-through, the gradient of $f(q(x))$ at $x$ is "
        r"$\nabla f$ at $q(x)$, to a relative $10^{-7}$; that of the commitment $\beta\|x - \mathrm{sg}[e]\|^2$, in which sg "
        r"stops gradients, is $2\beta(x - e)$ and does not reach the codebook, whose own is $\sum_{x} 2(e_k - x)$ over the "
        "vectors with code $k$.",
        decides={"nearest": ("codes that are not the nearest, by brute force", "largest inner product instead of nearest")},
        talks=("practical:assort-figure-vqvae",),
        judge=judge_quantiser,
        controls={
            "largest inner product instead of nearest": {"choice": "product"},
            "gradient of the choice itself": {"passing": "hard"},
            "no gradient is stopped": {"stopped": 0.0},
            "chosen again: codes of other vectors": jd.rolled(measured_again="vector"),
        },
        rivals={"nothing comes back through the quantiser": jd.swap(predicted_gradient=0.0)},
        plot=plot_quantiser,
        caption="Entries of gradients at all vectors, through the quantiser against finite differences behind it, and of the "
        "commitment against the formula.",
    ),
    STUDY.claim(
        id="assort.averages",
        bounds="derived: float64 rounding of 64 steps",
        title="Codes kept as running averages follow a closed form",
        statement=r"Let each step keep the share $\gamma$ of a code's running sum and count, and add $1 - \gamma$ times the "
        "sum and the count of the vectors assigned to it. If the assignment is fixed, code $k$ starts at $e_k^0$ with count "
        r"1 and has $n_k$ vectors, whose sum is $s_k$, then after $n$ steps it is $e_k = (\gamma^n e_k^0 + (1 - \gamma^n)\, "
        r"s_k) / (\gamma^n + (1 - \gamma^n)\, n_k)$.",
        quick=jd.grid(Quantiser, decay=[0.8, 0.95]),
        paper=jd.grid(Quantiser, decay=[0.8, 0.95], vectors=1024, codes=256, width=64),
        source="derived, for arXiv:1711.00937, appendix A.1",
        talks=("practical:assort-figure-vqvae",),
        tested=r"No training: {vectors} random vectors of {width} numbers and {codes} random codes; 1 to 64 steps at $\gamma$ "
        "= {decay}; {seeds} draws.",
        judge=judge_averages,
        controls={"measured at the codes one further": jd.rolled(measured_average="code")},
        rivals={
            r"each code nears the mean of its vectors by $1 - \gamma$ a step": jd.swap(predicted_average="unweighted"),
            "the codebook stays": jd.swap(predicted_average="start"),
        },
        plot=plot_averages,
        caption="Mean distance of the codebook's vectors from their start after steps with a fixed assignment: steps (points) "
        "and closed form (dashed), for each decay.",
    ),
)
