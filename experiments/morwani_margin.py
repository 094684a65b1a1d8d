"""Normalised margins of networks of squares trained on addition modulo p, with a penalty on cubes of norms, weight decay, or none.

For each modulus and penalty: the margin over the largest one, the most uneven share of a frequency, and the purity of nodes; means
and 95% intervals over seeds. Quick: p = 5, 7, 11, 13; paper: p = 23, 37, 59. Paper: arXiv 2311.07568.
"""

import sys
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting, stats
from jaxdyn.theories.morwani.margin import Trained, trial

CASES = {
    "quick": {"seeds": 8, "moduli": (5, 7, 11, 13), "nodes": 64, "steps": 6000},
    "paper": {"seeds": 8, "moduli": (23, 37, 59), "nodes": 512, "steps": 40_000},
}
PENALTIES = {"cubes": (3.0, 1e-4, "measured"), "weight decay": (2.0, 1e-4, "third"), "none": (3.0, 0.0, "control")}


def ends(ds: xr.Dataset) -> xr.Dataset:
    """Margin over the largest, unevenness of the shares, and purity, of every run."""
    uneven = abs(ds.measured_share / ds.predicted_share - 1).max("frequency")
    return xr.Dataset({"margin": ds.measured_margin / ds.predicted_margin, "unevenness": uneven, "purity": ds.measured_purity})


def rows(runs: xr.Dataset) -> list[dict]:
    """One line for each modulus and penalty."""
    lines = []
    for cell in runs.stack(cell=("prime", "penalty")).transpose("cell", "seed").cell.values:
        one = runs.sel(prime=cell[0], penalty=cell[1])
        line = {"p": int(cell[0]), "penalty": str(cell[1])}
        for name in one.data_vars:
            mean, low, high = (float(x) for x in stats.mean_interval(one[name], "seed"))
            line |= {str(name): mean, f"{name}, low": low, f"{name}, high": high}
        lines.append(line)
    return lines


def draw(runs: xr.Dataset, fig: Figure) -> None:
    """Margin over the largest, and the most uneven share, against the modulus; means and 95% intervals."""
    labels = {"margin": "normalised margin / largest", "unevenness": "largest |share / equal share - 1|"}
    for ax, (name, label) in zip(fig.subplots(1, 2), labels.items(), strict=True):
        for penalty, (_, _, color) in PENALTIES.items():
            mean, low, high = stats.mean_interval(runs[name].sel(penalty=penalty), "seed")
            ax.errorbar(
                runs.prime, mean, [mean - low, high - mean], fmt="o-", capsize=3, color=plotting.COLORS[color], label=penalty
            )
        ax.set(xlabel="modulus p", ylabel=label, ylim=(0, None))


def run(scale: str, out: Path) -> None:
    """Train, tabulate, draw, save."""
    case = CASES[scale]
    fields = {"nodes": case["nodes"], "steps": case["steps"], "power": [3.0, 2.0], "weight": [1e-4, 0.0]}
    sweeps = {
        p: ends(experiment.sweep(out, f"p{p}", trial, jd.grid(Trained, modulus=p, **fields), case["seeds"])) for p in case["moduli"]
    }
    every = xr.concat(list(sweeps.values()), xr.DataArray(list(sweeps), dims="prime", name="prime"))
    parts = [every.sel(power=power, weight=weight, drop=True) for power, weight, _ in PENALTIES.values()]
    runs = xr.concat(parts, xr.DataArray(list(PENALTIES), dims="penalty", name="penalty"))
    experiment.table(out, "margins", rows(runs), f"{case['seeds']} seeds a line; low and high: 95% interval of the mean")
    experiment.figure(out, "morwani_margin", lambda fig: draw(runs, fig), (9.0, 3.6))
    experiment.save(out, "morwani_margin", runs)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
