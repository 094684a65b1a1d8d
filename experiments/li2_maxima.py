"""Li2: a gallery of the maxima of a node's energy, group by group (arXiv:2509.21519, theorem 2 and its corollaries, corrected).

Nodes climb from random starts on every group; each end is compared with the maxima of the irrep it lies in: energy, purity,
singular values of its Fourier blocks and zero eigenvalues of the Hessian. Irreps of one type and degree share a line. The column
"paper" has the printed energies.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.dynamics import ascent, energy
from jaxdyn.theories.li2.features.maxima_flatness import Maxima, trial

TALKS = ("grokking:li2-theorem-2-all",)

GROUPS = "7 8 15 2x2x2 4x3 S3 D4 D5 D6 Q8 Q12 A4 S4 SL2:3 F7:3 F5:4".split()
MORE = "23 Q16 S3x3 Q20 H3 F9:2 A5 Q8xS3 F11:5".split()
SCALES = {"quick": (GROUPS, 16, 8), "paper": (GROUPS + MORE, 64, 16)}  # groups, starts of a run, seeds
SHOWN = {
    "15": ("complex", 1),
    "8": ("real", 1),
    "S3": ("real", 2),
    "S4": ("real", 3),
    "Q8": ("quaternionic", 2),
    "F7:3": ("complex", 3),
}


def run(scale: str, out: Path) -> None:
    names, starts, seeds = SCALES[scale]
    rows, runs = [], {}
    for name in names:
        steps = 300 if parse(name).order < 30 else 800
        runs[name] = experiment.sweep(out, "climb", trial, jd.grid(Maxima, groups=(name,), starts=starts, steps=steps), seeds)
        rows += lines(name, runs[name].isel(group=0))
    experiment.table(out, "maxima", rows, f"Maxima found from {starts * seeds} starts on each group")
    experiment.figure(out, "li2_maxima_energies", lambda fig: draw_energies(fig, runs), (max(8.0, 0.6 * len(names)), 4.0))
    experiment.figure(out, "li2_maxima", draw_nodes, (11.0, 5.5))
    for name, ds in runs.items():
        experiment.save(out, "maxima_" + name.replace(":", "_"), ds)


def lines(name: str, ds: xr.Dataset) -> list[dict]:
    """One line for all irreps of one type and degree."""
    peaks = energy.peaks(decompose(parse(name)))
    place = ds.place.values.astype(int)
    table = []
    for kind, degree in dict.fromkeys((p.kind, p.degree) for p in peaks):
        same = [i for i, p in enumerate(peaks) if (p.kind, p.degree) == (kind, degree)]
        peak, here = peaks[same[0]], np.isin(place, same)
        row = {"group": name, "M": parse(name).order, "type": kind, "d": degree, "irreps": len(same), "E*": peak.energy}
        row |= {"paper E*": peak.energy / (2 if kind == "quaternionic" else 4), "ends": int(here.sum())}
        table.append(row | (found(ds, here) if here.any() else dict.fromkeys(FOUND)) | {"zeros": peak.dimension})
    return table


FOUND = ("E found", "largest error", "purity", "largest value", "2nd", "3rd", "zeros found")


def found(ds: xr.Dataset, here: np.ndarray) -> dict:
    """What the ends among the mask have in common, by the worst of them."""
    at = ds.measured_energy.values[here]
    predicted = ds.predicted_energy.isel(form=0).values[here]
    singular = np.pad(ds.measured_values.values, [(0, 0), (0, 0), (0, 3)])[here]
    zeros = np.unique(ds.measured_zeros.values[here]).astype(int)
    largest = (float(singular[:, 0].min()), float(singular[:, 1].max()), float(singular[:, 2].max()))
    values = (float(at.mean()), float(abs(at / predicted - 1).max()), float(ds.measured_purity.values[here].min()), *largest)
    return dict(zip(FOUND, (*values, ", ".join(map(str, zeros))), strict=True))


def draw_energies(fig: Figure, runs: dict[str, xr.Dataset]) -> None:
    """Energies at the ends in parts of M over the levels 1/2d and 1/4d, and the printed levels."""
    ax = fig.subplots()
    for i, (name, ds) in enumerate(runs.items()):
        m = parse(name).order
        at = ds.measured_energy.values.ravel() / m
        first = i == 0
        ax.plot(i + np.linspace(-0.3, 0.3, at.size), at, ".", color=plotting.COLORS["measured"], alpha=0.4, markersize=3,
                label="end of an ascent" if first else None)  # fmt: skip
        for form, color, label in ((0, "theory", "predicted"), (1, "control", "printed")):
            levels = np.unique(np.round(ds.predicted_energy.isel(form=form).values / m, 9))
            for j, level in enumerate(levels):
                ax.plot([i - 0.42, i + 0.42], [level, level], color=plotting.COLORS[color], linewidth=1,
                        label=label if first and j == 0 else None)  # fmt: skip
    ax.set_xticks(range(len(runs)), list(runs))
    ax.set(xlabel="group", ylabel="energy over M", ylim=(0, 0.6))
    ax.legend(loc="upper right", ncols=3)


def draw_nodes(fig: Figure) -> None:
    """Functions u and v of one end in each of some irreps, over the elements of the group."""
    for ax, (name, kind) in zip(fig.subplots(2, 3).ravel(), SHOWN.items(), strict=True):
        peaks = energy.peaks(decompose(parse(name)))
        number = next(i for i, peak in enumerate(peaks) if (peak.kind, peak.degree) == kind)
        u, v, peak = one_end(name, number)
        x = np.arange(len(u))
        ax.axhline(0, color=plotting.COLORS["control"], linewidth=0.6)
        for values, color, label, shift in ((u, "measured", "u", -0.12), (v, "theory", "v", 0.12)):
            ax.vlines(x + shift, 0, values, color=plotting.COLORS[color], linewidth=1.2)
            ax.plot(x + shift, values, "o", color=plotting.COLORS[color], markersize=3.5, label=label)
        ax.set_title(f"{name}: {peak.kind}, d = {peak.degree}, E = {peak.energy:g}")
        ax.set(xlabel="element", ylabel="weight", xticks=x[:: 1 + len(x) // 10])


def one_end(name: str, number: int) -> tuple[np.ndarray, np.ndarray, energy.Peak]:
    """The functions of the first node of a climb that ends in the irrep of this number among the peaks."""
    group, irreps = parse(name), decompose(parse(name))
    peaks = energy.peaks(irreps)
    with jax.enable_x64(True):
        w = ascent.climb(ascent.directions(jax.random.key(0), group, 256, 2), group)
        u, v = energy.split(w, group)
        mass = energy.masses(u, irreps)
        place = np.asarray(jnp.argmax(jnp.stack([jnp.sum(mass[:, list(p.irreps)], 1) for p in peaks], 1), 1))
        first = int(np.flatnonzero(place == number)[0])
        return np.asarray(u[:, first]), np.asarray(v[:, first]), peaks[number]


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
