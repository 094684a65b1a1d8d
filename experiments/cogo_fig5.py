"""CoGO, Figure 5: the free angles of the constructions that trained networks consist of (512 nodes, decay 5e-5).

xi of order-4 frequencies (published: peaks at odd multiples of pi/4), nu, alpha and beta of order-6 ones (nu: near +-pi/3, +-2pi/3
and +-pi/2; alpha and beta: no single peak). An angle is known up to the symmetries of its construction; ten bins, as published.
Paper: arXiv 2410.01779.
"""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from cogo_sweep import GROUPS, classes, networks
from matplotlib.figure import Figure

from jaxdyn import experiment, plotting
from jaxdyn.theories.cogo.classify import NAMES

LRS = (0.01, 0.002)
DECAY = 5e-5
BINS = 10


def angles(classified: xr.Dataset) -> dict[str, np.ndarray]:
    """All angles of one kind, in (-pi, pi]."""
    label = {name: i for i, name in enumerate(NAMES)}
    kinds = {
        "xi": [(part, "angle", ("xi",), 4) for part in ("first", "second")],
        "nu": [("first", "angle", ("nu", "nu=i"), 6)],
        "alpha": [("second", "angle", ("syn,alpha,beta",), 6)],
        "beta": [("second", "beta", ("syn,alpha,beta",), 6)],
    }
    values = {}
    for name, places in kinds.items():
        chosen = []
        for part, field, names, order in places:
            named = (
                classified[f"{part}_label"].isin([label[n] for n in names]) & (classified.order == order) & classified.factorable
            )
            x = classified[f"{part}_{field}"].where(named).values.ravel()
            chosen.append(x[np.isfinite(x)])
        values[name] = np.concatenate(chosen)
    return values


def near(values: np.ndarray, centres: tuple[float, ...], width: float = np.pi / 12) -> float | None:
    """Percentage of angles within pi/12 of one of these."""
    if values.size == 0:
        return None
    gaps = [np.abs(np.angle(np.exp(1j * (values - c)))) for c in centres]
    return 100 * float(np.mean(np.min(gaps, 0) < width))


def summary(values: dict[str, np.ndarray]) -> list[dict]:
    """How many angles, and how many of them near the published peaks; an even spread has the last column."""
    quarter, third = np.pi / 4, np.pi / 3
    peaks = {
        "xi": tuple(c * quarter for c in (-3, -1, 1, 3)),
        "nu": (*(c * third for c in (-2, -1, 1, 2)), -np.pi / 2, np.pi / 2),
        "alpha": (),
        "beta": (),
    }
    lines = []
    for name, x in values.items():
        even = 100 * len(peaks[name]) / 12 if peaks[name] else None
        share = near(x, peaks[name]) if peaks[name] else None
        lines.append({"angle": name, "count": x.size, "within pi/12 of a published peak (%)": share, "even spread (%)": even})
    return lines


def draw(values: dict[str, np.ndarray], fig: Figure) -> None:
    """Four histograms in units of pi."""
    for ax, (name, x) in zip(fig.subplots(1, 4), values.items(), strict=True):
        ax.hist(x / np.pi, np.linspace(-1, 1, BINS + 1), color=plotting.COLORS["measured"])
        ax.set(xlabel=rf"$\arg\,\{name}\,/\,\pi$", title=f"{x.size} values")
        for c in {"xi": (-0.75, -0.25, 0.25, 0.75), "nu": (-2 / 3, -1 / 3, 1 / 3, 2 / 3)}.get(name, ()):
            ax.axvline(c, color=plotting.COLORS["theory"], linestyle="--", linewidth=1)


def run(scale: str, out: Path) -> None:
    """Train or load, classify, collect the angles of all networks."""
    each = [angles(classes(networks(out, g, lrs=LRS, decays=(DECAY,)), g)) for g in GROUPS[scale]]
    values = {name: np.concatenate([x[name] for x in each]) for name in each[0]}
    experiment.table(
        out, "angles", summary(values), "Angles in trained networks, both rates, 5 seeds (dashed in the figure: published peaks)"
    )
    experiment.figure(out, "cogo_fig5", lambda fig: draw(values, fig), (12.0, 3.2))


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
