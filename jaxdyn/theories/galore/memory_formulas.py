"""Entries of weights, optimizer states and bases for one matrix, by formula and as they are in real states."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.optim.axes import Matrix
from jaxdyn.optim.factors import lora
from jaxdyn.optim.projection import galore
from jaxdyn.optim.subspace import Subspace

METHODS, PARTS, FORMS = ("full", "adaptor", "galore"), ("states", "total"), ("corrected", "printed")
SHAPES = ((64, 96, 8), (48, 256, 16), (32, 32, 4), (128, 512, 64))  # m, n, r with m at most n


@jd.setting
class Formulas:
    """What is counted: the states of Adam, or of descent with momentum."""

    moments: int = 2  # 2: both moments of Adam, 1: the first alone

    def __post_init__(self) -> None:
        jd.require(self, self.moments in (1, 2), "moments is 1 or 2", "moments")


def formulas(m: int, n: int, r: int) -> dict[str, dict[str, tuple[int, int]]]:
    r"""States and total by form and method, in entries.

    .. math:: 3mn, \qquad mn + 3(mr + nr), \qquad mn + mr + 2nr

    Printed in one of the talks: :math:`2mn + 3mr + 3nr` for the adaptor, states :math:`mr + 2nr` and a total of
    :math:`mn + 2mr + 2nr` for GaLore.
    """
    adaptor = 2 * (m * r + n * r)
    right = {
        "full": (2 * m * n, 3 * m * n),
        "adaptor": (adaptor, m * n + m * r + n * r + adaptor),
        "galore": (2 * n * r, m * n + m * r + 2 * n * r),
    }
    printed = {
        "adaptor": (adaptor, 2 * m * n + 3 * m * r + 3 * n * r),
        "galore": (m * r + 2 * n * r, m * n + 2 * m * r + 2 * n * r),
    }
    return {"corrected": right, "printed": right | printed}


def real(m: int, n: int, r: int, moments: int) -> dict[str, tuple[int, int]]:
    """States and total by method, counted in the arrays that training with these optimizers holds (made for their shapes alone).

    A basis or a frozen weight is counted in the total, not among the states.
    """
    inner = optax.scale_by_adam() if moments == 2 else optax.trace(decay=0.9)
    params, dims = {"w": jnp.zeros((m, n))}, {"w": Matrix()}

    def entries(tree: Any) -> int:
        return sum(x.size for x in jax.tree.leaves(tree) if x.ndim == 2)

    def state_of(tx: optax.GradientTransformation) -> Any:
        return jax.eval_shape(tx.init, params)

    weight = entries(params)
    states = entries(state_of(inner))
    low = state_of(galore(inner, Subspace(rank=r), dims=dims))
    factors = state_of(lora(inner, r, dims=dims))
    return {
        "full": (states, weight + states),
        "adaptor": (entries(factors.inner), weight + entries(factors.factors) + entries(factors.inner)),
        "galore": (entries(low.inner), weight + entries(low.bases) + entries(low.inner)),
    }


def trial(s: Formulas, key: PRNGKeyArray) -> jd.Observables:
    """Entries by the formulas, printed and corrected, and in real states."""
    del key
    by_form = [[[formulas(*shape)[form][method] for method in METHODS] for shape in SHAPES] for form in FORMS]
    bases = np.array([[(0, m * r if method == "galore" else 0) for method in METHODS] for m, _, r in SHAPES])
    counted = [[real(*shape, s.moments)[method] for method in METHODS] for shape in SHAPES]
    return jd.observables(
        predicted={"entries": jd.named(jnp.asarray(by_form, jnp.float64), "form shape trainer part")},
        measured={"entries": jd.named(jnp.asarray(counted, jnp.float64), "shape trainer part")},
        recorded={"without_basis": jd.named(jnp.asarray(by_form[0], jnp.float64) - bases, "shape trainer part")},
        coords={"form": FORMS, "shape": tuple(" x ".join(map(str, shape)) for shape in SHAPES), "trainer": METHODS, "part": PARTS},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """States and totals of every method and shape against the count."""
    error = abs(ds.predicted_entries / ds.measured_entries - 1)
    return [jd.at_most(f"{part} by formula over the count, minus 1", error.sel(part=part), 1e-12) for part in PARTS]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Totals of the largest shape by method, counted and by formula."""
    ax, one = fig.subplots(), plotting.first_run(ds).isel(shape=-1).sel(part="total")
    place = np.arange(len(METHODS))
    ax.bar(place - 0.25, one.measured_entries, 0.25, color=plotting.COLORS["measured"], label="real states")
    given = one.predicted_entries
    for i, (form, color) in enumerate(zip(np.atleast_1d(given.form.values), ("theory", "control"), strict=False)):
        values = given.sel(form=form) if "form" in given.dims else given
        ax.bar(place + 0.25 * i, values, 0.25, color=plotting.COLORS[color], label=f"formula, {form}")
    ax.set_xticks(place, ["full rank", "adaptor", "GaLore"])
    ax.set_ylabel(f"entries, m x n, r: {SHAPES[-1][0]} x {SHAPES[-1][1]}, {SHAPES[-1][2]}")


STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Formulas),
    evidence="numbers",
    source="arXiv:2403.03507, table 1; the authors' talks",
    tested="Matrices of four shapes; entries are counted in the states of optax's Adam, in GaLore's and in the adaptor's around "
    "it, made for their shapes alone.",
    plot=plot,
    caption="Entries of weights, optimizer states and bases for the largest shape, by method: counted, and by the formulas.",
)
FORMULAS = STUDY.claim(
    id="galore.memory_formulas",
    title="The memory formulas of full rank, adaptors and GaLore are exact",
    statement=r"For an $m \times n$ matrix and rank $r \le m \le n$, training by Adam holds, without gradients, $3mn$ numbers at "
    r"full rank, $mn + 3(mr + nr)$ with a low-rank adaptor, and $mn + mr + 2nr$ with GaLore, of which $2mn$, $2(mr + nr)$ and "
    "$2nr$ are optimizer states: to the entry.",
    talks=("practical:galore-memory-formulas", "practical:galore-memory-adaptor", "practical:galore-memory-states"),
    form="corrected",
    bounds="derived: entries are counted",
    judge=judge,
    controls={"momentum alone, one moment": jd.Control({"moments": 1}, breaks="Adam")},
    rivals={
        "every method holds what full rank holds": jd.swap(
            predicted_entries=lambda ds: ds.predicted_entries.sel(trainer="full", drop=True)
        ),
        "GaLore's basis takes no memory": jd.swap(predicted_entries="without_basis"),
    },
)
CLAIMS = (
    FORMULAS,
    FORMULAS.as_printed(
        id="galore.memory_as_printed",
        title="A talk's totals for adaptors and GaLore, a term too many each",
        statement="For a matrix of $m$ by $n$ entries and rank $r$, training with a low-rank adaptor holds, without gradients, "
        "$2mn + 3mr + 3nr$ numbers, with GaLore $mn + 2mr + 2nr$, of which $mr + 2nr$ are optimizer states.",
        form="printed",
        printed="talk practical, Memory Saving with GaLore: totals $2mn+3mr+3nr$ and $mn+2mr+2nr$, states $mr+2nr$",
        talks=("practical:galore-memory-formulas", "practical:galore-memory-adaptor", "practical:galore-memory-states"),
    ),
)
