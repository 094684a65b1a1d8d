"""The averages of the published tables of mathematics against the cells of which they are averages."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.assort import published

FORMS = ("printed", "derived")
HALF = 0.05  # of a unit of the last printed digit, of the average and of every cell


@jd.setting
class Tables:
    """The tables.

    Args:
        sets: the first of the seven sets to average over.
    """

    sets: jd.Swept = jd.field(7.0, at_least=1, at_most=7, whole=True)


def trial(s: Tables, key: PRNGKeyArray) -> jd.Observables:
    """Averages as printed and corrected, and the means of the cells."""
    del key
    cells = jnp.asarray([row for row, _ in published.AVERAGES.values()], jnp.float64)
    taken = jnp.arange(cells.shape[1]) < s.sets
    printed = [average for _, average in published.AVERAGES.values()]
    corrected = [published.CORRECTED.get(name, average) for name, (_, average) in published.AVERAGES.items()]
    by_row = lambda x: jd.named(jnp.asarray(x, jnp.float64), "row")  # noqa: E731
    return jd.observables(
        predicted={"average": jd.named(jnp.asarray([printed, corrected], jnp.float64), "form row")},
        measured={"average": by_row(jnp.sum(jnp.where(taken, cells, 0), 1) / jnp.sum(taken))},
        recorded={"median": by_row(jnp.median(cells, 1)), "in_domain": by_row(jnp.mean(cells[:, :2], 1))},
        coords={"form": FORMS, "row": tuple(published.AVERAGES)},
    )


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The worst row of either table; rounding of cells and of the average may add up."""
    apart = abs(ds.measured_average - ds.predicted_average)
    tables = {name: apart.sel(row=[r for r in ds.row.values.tolist() if r.startswith(name)]) for name in ("accuracy", "tokens")}
    return [jd.at_most(f"average minus the mean of its cells, {name}", rows, 2 * HALF + 1e-9) for name, rows in tables.items()]


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Printed averages minus the means of cells, by row."""
    ax = fig.subplots()
    apart = (ds.predicted_average - ds.measured_average).isel(
        {d: 0 for d in ds.predicted_average.dims if d not in ("row", "form")}, drop=True
    )
    ax.barh(np.arange(ds.sizes["row"]), apart.transpose("row", ...).values.reshape(ds.sizes["row"], -1)[:, 0])
    ax.axvspan(-2 * HALF, 2 * HALF, color=plotting.COLORS["theory"], alpha=0.4)
    ax.set_yticks(np.arange(ds.sizes["row"]), ds.row.values, fontsize=6)
    ax.set(xlabel="average minus the mean of its cells")


CORRECTED = jd.Study(
    trial=trial,
    quick=jd.grid(Tables),
    evidence="numbers",
    bounds="derived: half a unit of the last printed digit, of the average and of its cells",
    form="derived",
    source="arXiv:2502.03275, main tables of accuracy and of generated tokens on seven sets of mathematics",
    tested="Published figures against each other; nothing is trained.",
    plot=plot,
    caption="Averages minus the means of their seven cells, by row; shaded: what rounding to one decimal can do.",
).claim(
    id="assort.table_means",
    title="With six corrections the Llama tables' averages are means of cells",
    statement="In the tables of accuracy and of generated tokens on seven sets of mathematics the average of each row is the "
    "mean of its cells within rounding, if it is 13.6 and 17.4 (1B, text and latent codes), 25.8 and 28.7 (3B) for "
    "accuracies, and 357.7 (3B, pause tokens) and 513.6 (8B, latent codes) for tokens. The rows of tokens for the solution "
    "alone, which repeat accuracies, are left out.",
    talks=("practical:assort-accuracy-averages", "practical:assort-tokens-averages"),
    judge=judge,
    controls={"averages over the first six sets": {"sets": 6.0}, "other rows' cells": jd.rolled(measured_average="row")},
    rivals={
        "averages are over both sets of the training's domain": jd.swap(predicted_average="in_domain"),
        "averages are medians": jd.swap(predicted_average="median"),
    },
)

CLAIMS = (
    CORRECTED,
    CORRECTED.as_printed(
        id="assort.table_means_as_printed",
        title="All printed averages of the Llama tables are means of their cells",
        form="printed",
        printed="talk practical, Better Performance: averages of all sets, $14.1$ (CoT) and $17.8$ (Latent) at 1B, $25.2$ and "
        "$28.1$ at 3B; Shorter CoT: $354.7$ (Pause Token, 3B) and $513.7$ (Latent, 8B)",
        talks=("practical:assort-accuracy-averages", "practical:assort-tokens-averages"),
        statement="In the tables of accuracy and of generated tokens on seven sets of mathematics the printed average of "
        "each row is the mean of its cells within rounding, rows of tokens for the solution alone left out.",
    ),
)
