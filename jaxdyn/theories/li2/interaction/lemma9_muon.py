r"""The polar factor (Lemmas 2 and 9): its inner product with the gradient, and its effect on a column that others span.

Letters as in ``dynamics/muon.py``; Q has orthonormal columns, v is the column next to them, "along" its part in their span,
"across" the rest.
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
from jaxdyn.optim.muon import newton_schulz, polar
from jaxdyn.theories.li2.dynamics import muon

FORMS = ("printed", "derived")
MAPS = ("polar", "random", "newton_schulz")
SIZES = (0.0, 1e-3, 1.0, 1e3)
ALONG, ACROSS = (1e-3, 3e-3, 1e-2, 3e-2), (1e-3, 3e-2, 0.3, 3.0)  # norms of both parts of v


@jd.setting
class Polar:
    """A random gradient, and a column next to others; ``skew`` is a breach, ``map`` replaces the polar factor."""

    map: jd.Code = jd.code(*MAPS)  # factor of the gradient: polar, random orthogonal, or five Newton-Schulz steps
    skew: jd.Swept = 0.0  # size of a random mixing of Q's columns; 0: they are orthonormal
    rows: int = 16  # of the gradient, and dimensions of a column of Q
    columns: int = jd.field(8, at_least=2)  # of the gradient, and of Q

    def __post_init__(self) -> None:
        """Refuse columns that span the whole space."""
        jd.require(self, self.columns < self.rows, "columns is below rows", "columns", "rows")


def trial(s: Polar, key: PRNGKeyArray) -> jd.Observables:
    """Inner products of gradients of every size with their factors; the last column for every size of both parts of v."""
    # gradients of every size and their factors
    k_g, k_random, k_q, k_skew = jax.random.split(key, 4)
    g = jnp.asarray(SIZES, jnp.float64)[:, None, None] * jax.random.normal(k_g, (s.rows, s.columns), jnp.float64)
    other = polar(jax.random.normal(k_random, (s.rows, s.columns), jnp.float64))
    maps = (polar, lambda _: other, newton_schulz)
    factors = jax.vmap(lambda g: jnp.stack([f(g) for f in maps]))(g)
    inner = jnp.einsum("zmrc,zrc->mz", factors, g)
    nuclear = jnp.sum(jnp.sqrt(jnp.maximum(linalg.eigvalsh(jnp.swapaxes(g, 1, 2) @ g), 0)), 1)
    # a column next to others, and the error of Lemma 9's expansion
    column, predicted, alone = _appended(k_q, k_skew, s)
    along, across = jnp.asarray(ALONG, jnp.float64)[:, None], jnp.asarray(ACROSS, jnp.float64)
    derived = muon.appended_error(*jnp.broadcast_arrays(along, across))
    printed = jnp.broadcast_to(jnp.square(across), derived.shape)
    return jd.observables(
        predicted={
            "inner": jd.named(nuclear, "size"),
            "column": jd.named(predicted, "along across row"),
            "error": jd.named(jnp.stack([printed, derived]), "form along across"),
        },
        measured={
            "inner": jd.named(inner[s.map.index], "size"),
            "column": jd.named(column, "along across row"),
            "error": jd.named(jnp.linalg.norm(column - predicted, axis=-1), "along across"),
        },
        recorded={
            "alone": jd.named(alone, "along across row"),
            "share": jd.named(inner[:, 1:] / nuclear[1:], "factor nonzero"),
            "spectrum": jd.named(linalg.singular_values(factors[-1, -1]), "singular"),
        },
        coords={"size": SIZES, "along": ALONG, "across": ACROSS, "form": FORMS, "factor": MAPS, "nonzero": SIZES[1:]},
    )


def _appended(k_q: PRNGKeyArray, k_skew: PRNGKeyArray, s: Polar) -> tuple[Array, Array, Array]:
    """The last column of the polar factor of [Q, v], Lemma 9's, and v over its norm, over all sizes of both parts of v."""
    frame = linalg.qr(jax.random.normal(k_q, (s.rows, s.columns + 1), jnp.float64))[0]
    span, across = frame[:, :-1], frame[:, -1]
    mix = jax.random.normal(k_skew, (s.columns, s.columns), jnp.float64)
    along = span @ (mix[0] / jnp.linalg.norm(mix[0]))
    q = span @ (jnp.eye(s.columns, dtype=jnp.float64) + s.skew * mix)

    def last(a: Float[Array, ""], b: Float[Array, ""]) -> tuple[Array, Array, Array]:
        v = a * along + b * across
        g = jnp.concatenate([q, v[:, None]], 1)
        return polar(g)[:, -1], muon.appended(a * along, b * across), v / jnp.linalg.norm(v)

    sizes = jnp.asarray(ALONG, jnp.float64), jnp.asarray(ACROSS, jnp.float64)
    return jax.vmap(jax.vmap(last, (None, 0)), (0, None))(*sizes)


def judge_inner(ds: xr.Dataset) -> list[jd.Check]:
    """Inner product and nuclear norm, and that it is positive."""
    nonzero = ds.sel(size=list(SIZES[1:]))
    return [
        jd.at_most("relative error of the inner product", jd.relative_error(nonzero, "inner"), 1e-9),
        jd.at_least("inner product over the size of the matrix", nonzero.measured_inner / nonzero["size"], 1.0),
    ]


def _slope(y: xr.DataArray, dim: str) -> xr.DataArray:
    """Between the ends of an axis, on logarithmic scales."""
    return np.log(y.isel({dim: -1}, drop=True) / y.isel({dim: 0}, drop=True)) / np.log(float(y[dim][-1] / y[dim][0]))


def judge_column(ds: xr.Dataset) -> list[jd.Check]:
    """The power of either part of v in the error of Lemma 9's column, and the error's size."""
    measured, predicted = ds.measured_error, ds.predicted_error
    checks = [
        jd.within(
            f"power of v {part} in the error, minus the predicted one",
            _slope(measured, part) - _slope(predicted, part),
            -0.05,
            0.05,
        )
        for part in ("along", "across")
    ]
    return [
        *checks,
        jd.within("error over the predicted one", measured / predicted, 0.95, 1.05),
        jd.at_most("column's distance from Lemma 9's", jd.relative_error(ds, "column", "row").isel(along=0), 1e-5),
    ]


def plot_inner(ds: xr.Dataset, fig: Figure) -> None:
    """Inner products against the nuclear norm; singular values after the Newton-Schulz steps."""
    left, right = fig.subplots(1, 2)
    nonzero = ds.sel(size=list(SIZES[1:]))
    plotting.scatter(left, nonzero.predicted_inner, nonzero.measured_inner, "polar factor", log=True)
    nuclear = nonzero.predicted_inner.transpose("seed", "size").values
    steps = ds.share.sel(factor="newton_schulz").transpose("seed", "nonzero").values
    plotting.scatter(left, nuclear, nuclear * steps, "five Newton-Schulz steps", "third", log=True)
    left.set(xlabel="nuclear norm of G", ylabel=r"$\langle$factor, G$\rangle$")
    rows = ds.spectrum.transpose("seed", "singular").values
    plotting.band(right, np.arange(rows.shape[1]) + 1, rows, "Newton-Schulz", "third", marker="o")
    right.axhline(1, color=plotting.COLORS["measured"], label="polar factor")
    right.set(xlabel="singular value, largest first", ylabel="its size after the map", ylim=(0, None))


def plot_column(ds: xr.Dataset, fig: Figure) -> None:
    """The error of Lemma 9's column against the norm of either part of v, the other part fixed."""
    axes = fig.subplots(1, 2)
    for ax, part, other in zip(axes, ("along", "across"), ("across", "along"), strict=True):
        for place, color in ((0, "measured"), (-1, "third")):
            one, value = ds.isel({other: place}), float(ds[other][place])
            plotting.band(ax, ds[part], one.measured_error, f"{other}: {value:g}", color, marker="o", linestyle="")
            for form, style in (("derived", "-"), ("printed", ":")):
                label = form if place == 0 else ""
                plotting.band(ax, ds[part], one.predicted_error.sel(form=form), label, "theory", linestyle=style)
        ax.set(xscale="log", yscale="log", xlabel=f"norm of v {part}", ylabel="error of the last column")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Polar),
    paper=jd.grid(Polar, rows=128, columns=64),
    seeds=8,
    paper_seeds=32,
    source="arXiv:2509.21519",
    form="derived",
    evidence="algebra",
    bounds="derived: float64 rounding, and the next order of the expansion where the norm of the part in the span is at most .03",
    rivals={},
    tested="Gaussian gradients with {rows} rows and {columns} columns, of four sizes; random orthonormal columns with one more "
    f"whose part in their span has norms from {ALONG[0]:g} to {ALONG[-1]:g}, the other part from {ACROSS[0]:g} to {ACROSS[-1]:g}; "
    "{seeds} seeds.",
)

COLUMN = STUDY.claim(
    id="li2.lemma9",
    title="The polar factor suppresses what other columns span",
    statement=r"An expansion: next to orthonormal columns Q, the polar factor turns a column $v = v_\parallel + v_\perp$, with "
    r"$v_\parallel$ in the span of Q, into $v_\perp / \|v_\perp\| + v_\parallel / (1 + \|v_\perp\|) + O(\|v_\parallel\|^2)$: "
    r"what others span is suppressed. The error is $\|v_\parallel\|^2 / 2(1 + \|v_\perp\|)^2$ to leading order.",
    source="corrected from arXiv:2509.21519, Lemma 9",
    judge=judge_column,
    controls={"columns of Q that are not orthonormal": {"skew": 0.1}},
    rivals={
        "an error of the order of the other part's square": jd.swap(predicted_error=lambda ds: ds.across**2),
        "an error that the other part leaves as it is": jd.swap(predicted_error=lambda ds: ds.along**2 / 2),
        "nothing is suppressed, v is scaled to norm one": jd.swap(predicted_column="alone"),
    },
    plot=plot_column,
    caption=r"Error of Lemma 9's column over the norm of $v_\parallel$ (left) and of $v_\perp$ (right), a colour per norm of the "
    "other part: dots, random matrices (median and central 90% of the runs); lines, the error as derived (solid) and as printed "
    "(dotted).",
)

CLAIMS = (
    STUDY.claim(
        id="li2.lemma2",
        title="The polar factor of a gradient is a direction of descent",
        statement=r"An identity: the polar factor of a gradient $G \neq 0$, which Muon's step approximates, has the inner product "
        r"$\|G\|_*$ with G, its nuclear norm, which is positive.",
        source="arXiv:2509.21519, Lemma 2",
        judge=judge_inner,
        controls={
            "another orthogonal matrix": {"map": "random"},
            "five Newton-Schulz steps": jd.Control({"map": "newton_schulz"}, breaks="polar factor"),
        },
        plot=plot_inner,
        caption="Left: inner product of random gradients with their polar factor, and with five Newton-Schulz steps, against the "
        "nuclear norm; the line is equality. Right: singular values after the Newton-Schulz steps, median and central 90% of the "
        "runs, and of the polar factor.",
    ),
    COLUMN,
    COLUMN.as_printed(
        id="li2.lemma9_as_printed",
        title="Printed: the error of the polar factor's expansion",
        statement=r"As printed: next to orthonormal columns Q, the polar factor turns a column $v = v_\parallel + v_\perp$, "
        r"with $v_\parallel$ in the span of Q, into $v_\perp / \|v_\perp\| + v_\parallel / (1 + \|v_\perp\|) + "
        r"O(\|v_\perp\|^2)$.",
        printed=r"arXiv:2509.21519, Lemma 9: $v_\perp / \|v_\perp\| + v_\parallel / (1 + \|v_\perp\|) + O(\|v_\perp\|^2)$",
        source="arXiv:2509.21519, Lemma 9, as printed",
        form="printed",
    ),
)
