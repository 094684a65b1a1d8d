"""CoGO, Table 2: of which constructions do trained networks consist? Every published cell next to ours, mean and standard error.

512 hidden nodes, decay 5e-5, 5 seeds, for the rate .01 of the authors' logs and the .002 of their read-me. Quick: d = 23; paper:
23, 71, 127. Next to the thresholds stand the distances: how far the unnamed factors are from a construction.
Paper: arXiv 2410.01779.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from cogo_sweep import GROUPS, classes, networks, shares

from jaxdyn import experiment
from jaxdyn.data.abelian import parse
from jaxdyn.theories.cogo import classify, published

TALKS = ("training:cogo-table", "training:cogo-constructed")

LRS = (0.01, 0.002)
DECAY = 5e-5


def cell(values: xr.DataArray) -> str:
    """Mean and standard error over seeds; seeds without such a frequency are left out."""
    x = values.values[np.isfinite(values.values)]
    if x.size == 0:
        return "none"
    return f"{x.mean():.2f} ± {x.std(ddof=1) / x.size**0.5:.2f}" if x.size > 1 else f"{x.mean():.2f}"


def published_row(row: published.Row) -> dict[str, tuple[float, float]]:
    """A published row under the names of :func:`shares`."""
    named = {"other orders": row.other_orders}
    for i, n in enumerate((4, 6)):
        named |= {f"o{n} not factorable": row.not_factorable[i], f"err o{n} (1e-2)": row.error[i]}
    return named | dict(zip(classify.COLUMNS, row.columns, strict=True))


def rows(classified: xr.Dataset, d: int) -> list[dict]:
    """The published row, and ours for every rate."""
    known = published_row(published.TABLE[d])
    lines = [{"d": d, "by": "paper"} | {name: f"{mean:.2f} ± {error:.2f}" for name, (mean, error) in known.items()}]
    ours = shares(classified)
    for lr in classified.lr.values:
        lines.append({"d": d, "by": f"ours, rate {lr:g}"} | {name: cell(ours[name].sel(lr=lr, decay=DECAY)) for name in known})
    return lines


def unnamed(classified: xr.Dataset, d: int) -> list[dict]:
    """Every factorable frequency without a name: order, error, and its distances from the constructions."""
    lines = []
    flat = classified.stack(place=("lr", "decay", "seed", "frequency"))
    others = flat.where(flat.column == classify.COLUMNS.index("others"), drop=True)
    for i in range(others.sizes.get("place", 0)):
        one = others.isel(place=i)
        names = [classify.NAMES[int(one[f"{part}_label"])] for part in ("first", "second")]
        line = {"d": d, "rate": float(one.lr), "seed": int(one.seed), "k": int(one.frequency) + 1, "order": int(one.order)}
        line |= {"err": float(one.err), "first": names[0], "second": names[1]}
        line |= {
            "first |a+b|": float(one.first_opposite),
            "first |c-+i|": float(one.first_c_i),
            "first |c-1|": float(one.first_c_one),
        }
        lines.append(line | {"second to syn": float(one.second_syn), "second c-phases": float(one.second_phases)})
    return lines


def run(scale: str, out: Path) -> None:
    """Train or load, classify, print both tables, save the classification."""
    lines, others = [], []
    for group in GROUPS[scale]:
        d = parse(group).order
        ds = networks(out, group, lrs=LRS, decays=(DECAY,))
        classified = classes(ds, group)
        lines += rows(classified, d)
        others += unnamed(classified, d)
        experiment.table(out, "table2", lines, "Percentages; mean and standard error over 5 seeds")
        experiment.save(out, f"cogo_table2_{d}", classified)
    if others:
        experiment.table(
            out, "unnamed", others, "Factorable frequencies without a name, and their distances (threshold .1; .17 to syn)"
        )


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
