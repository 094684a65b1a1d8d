r"""Claims on the local maxima of a node's energy: their values, their Fourier blocks, the dimension of the sets they form.

Letters as in ``dynamics/energy.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.data.groups import parse
from jaxdyn.data.irreps import decompose
from jaxdyn.theories.li2.claims.maxima_trial import Maxima, trial
from jaxdyn.theories.li2.dynamics import energy

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

__all__ = ["CLAIMS"]

SOURCE = "arXiv:2509.21519, theorem 2"
LEAST = 100  # starts on every group


def _enough(ds: xr.Dataset) -> None:
    if (count := ds.sizes["seed"] * ds.sizes["start"]) < LEAST:
        raise jd.Inconclusive(f"{count} starts on each group are too few to find all maxima: at least {LEAST} are needed")


def _error(ds: xr.Dataset, name: str) -> xr.DataArray:
    return abs(ds[f"measured_{name}"] - ds[f"predicted_{name}"])


def judge_values(ds: xr.Dataset) -> list[jd.Check]:
    """Energies and irreps of all ends, that they are maxima, and that all irreps are found."""
    _enough(ds)
    hits = ds.hit.sum("seed", min_count=1)
    exist = ds.peak < ds.peaks.max("start").max("seed")
    return [
        jd.at_most("energy at the end, relative error", jd.relative_error(ds, "energy"), 1e-6),
        jd.at_most("share outside of one irrep", _error(ds, "purity"), 1e-6),
        jd.at_most("largest eigenvalue of the Hessian, in parts of the largest modulus", ds.largest, 1e-4),
        jd.at_least("starts that end in each irrep", hits.where(exist), 1.0),
    ]


def judge_set(ds: xr.Dataset) -> list[jd.Check]:
    """Blocks of one rank with a common direction, halves of the norm, and the energy of members that are no maxima."""
    _enough(ds)
    return [
        jd.at_most("singular values of the blocks, error", _error(ds, "values"), 1e-5),
        jd.at_most("alignment of the blocks of u and v, error", _error(ds, "aligned"), 1e-6),
        jd.at_most("squared norm of u, error", _error(ds, "balance"), 1e-6),
        jd.at_most("energy of a random u in the irrep with v = u, relative error", jd.relative_error(ds, "mixture"), 1e-10),
    ]


def judge_flatness(ds: xr.Dataset) -> list[jd.Check]:
    """The number of zero eigenvalues at every end."""
    _enough(ds)
    return [jd.at_most("number of zero eigenvalues, error", _error(ds, "zeros"), 0.0)]


def judge_cyclic(ds: xr.Dataset) -> list[jd.Check]:
    """Purity in frequency and energy on cyclic groups, of odd and of even order."""
    _enough(ds)
    names = _cyclic(ds)
    if {int(name) % 2 for name in names} != {0, 1}:
        raise jd.Inconclusive("cyclic groups of odd and of even order are needed")
    ds = ds.sel(group=names)
    return [
        jd.at_most("share outside of one frequency, of u and of v", _error(ds, "purity"), 1e-6),
        jd.at_most("energy at the end, relative error", jd.relative_error(ds, "energy"), 1e-6),
    ]


def _cyclic(ds: xr.Dataset) -> list[str]:
    return [str(name) for name in ds.group.values if str(name).isdigit()]


def with_values(**values: Callable[[xr.Dataset], xr.DataArray]) -> Callable[[xr.Dataset], xr.Dataset]:
    """A breach: these variables take other values of the same runs."""
    return lambda ds: ds.assign({name: value(ds) for name, value in values.items()})


def _places(ds: xr.Dataset) -> list[tuple[str, int, np.ndarray]]:
    """Group, irrep and the mask of its ends."""
    place = ds.place.transpose("group", ...).values.reshape(ds.sizes["group"], -1)
    return [
        (str(g), int(k), place[i] == k) for i, g in enumerate(ds.group.values) for k in np.unique(place[i][np.isfinite(place[i])])
    ]


def _flat(values: xr.DataArray) -> np.ndarray:
    return values.transpose("group", ...).values.reshape(values.sizes["group"], -1)


def plot_values(ds: xr.Dataset, fig: Figure) -> None:
    """Energies at the ends in every group, over the predicted levels."""
    ax = fig.subplots()
    seen, said = _flat(ds.measured_energy), _flat(ds.predicted_energy)
    for i in range(len(seen)):
        ax.plot(
            i + np.linspace(-0.3, 0.3, seen.shape[1]),
            seen[i],
            ".",
            color=plotting.COLORS["measured"],
            alpha=0.5,
            label="end of an ascent" if i == 0 else None,
        )
        for level in np.unique(np.round(said[i], 9)):
            ax.plot(
                [i - 0.4, i + 0.4],
                [level, level],
                color=plotting.COLORS["theory"],
                linewidth=1,
                zorder=1.5,
                label="predicted" if i == 0 and level == np.round(said[i], 9).min() else None,
            )
    ax.set_xticks(range(len(seen)), [str(g) for g in ds.group.values])
    ax.set(xlabel="group", ylabel="energy", ylim=(0, None))


def plot_cyclic(ds: xr.Dataset, fig: Figure) -> None:
    """The same for the cyclic groups."""
    plot_values(ds.sel(group=_cyclic(ds)), fig)


def plot_set(ds: xr.Dataset, fig: Figure) -> None:
    """Second singular values at ends and of random members; energies of members."""
    left, right = fig.subplots(1, 2)
    wide = [i for i, g in enumerate(ds.group.values) if decompose(parse(str(g))).degrees.max() > 1]
    part = ds.isel(group=wide)
    for name, color, label in (("measured_values", "measured", "end of an ascent"), ("member", "control", "random u in the irrep")):
        values = np.maximum(_flat(part[name].isel(rank=1)), 1e-17)
        x = np.arange(len(wide))[:, None] + np.linspace(-0.3, 0.3, values.shape[1])
        left.plot(x.ravel(), values.ravel(), ".", color=plotting.COLORS[color], alpha=0.5, label=label)
    left.axhline(0.5**0.5, linestyle=":", color=plotting.COLORS["theory"], label="quaternionic")
    left.set_xticks(range(len(wide)), [str(g) for g in part.group.values])
    left.set(yscale="log", xlabel="group", ylabel="second singular value", ylim=(1e-18, 30))
    plotting.scatter(right, part.predicted_mixture, part.measured_mixture, "random u in the irrep, v = u")
    right.set(xlabel=r"$(2M/d)\sum_i s_i^4$", ylabel="energy")


def plot_zeros(ds: xr.Dataset, fig: Figure) -> None:
    """Counts at the ends against the dimension of the set of maxima."""
    ax = fig.subplots()
    said, seen = _flat(ds.predicted_zeros), _flat(ds.measured_zeros)
    names = []
    for i, (group, k, mask) in enumerate(_places(ds)):
        row = [str(g) for g in ds.group.values].index(group)
        peak = energy.peaks(decompose(parse(group)))[k]
        names.append(f"{group}\n{peak.kind[0].upper()}{peak.degree}")
        ax.plot(
            i + np.linspace(-0.25, 0.25, mask.sum()),
            seen[row][mask],
            ".",
            color=plotting.COLORS["measured"],
            alpha=0.5,
            label="end of an ascent" if i == 0 else None,
        )
        ax.plot(
            [i - 0.4, i + 0.4], [said[row][mask][0]] * 2, color=plotting.COLORS["theory"], label="predicted" if i == 0 else None
        )
    ax.set_xticks(range(len(names)), names, fontsize=7)
    ax.set(xlabel="group; type and degree of the irrep", ylabel="zero eigenvalues of the Hessian")


_SHARED = {
    "source": SOURCE,
    "trial": trial,
    "quick": jd.grid(Maxima),
    "paper": jd.grid(
        Maxima,
        groups=("7", "8", "15", "2x2x2", "S3", "D4", "D5", "Q8", "A4", "Q12", "D6", "S4", "SL2:3", "F7:3", "H3", "F5:4"),
        starts=32,
    ),
    "seeds": 8,
    "paper_seeds": 16,
    "form": "derived",
}
_PRINTED = _SHARED | {"form": "printed", "expected": "refuted", "counterpart": "derived"}
_RELU = {"activation": "relu", "groups": ("S3",)}

CLAIMS = (
    jd.Claim(
        id="li2.maxima_values",
        statement=r"On the unit sphere, with all pairs and $\sigma = x^2$, every local maximum of a node's energy lies in one "
        r"irrep or a pair of conjugate ones, with $E^* = M/2d$ for real type and $M/4d$ for a pair or quaternionic type; "
        r"random starts reach each of them, and nothing else.",
        judge=judge_values,
        controls={
            "relu": _RELU,
            "quaternionic type taken for real": with_values(
                predicted_energy=lambda ds: ds.predicted_energy * (1 + (ds.predicted_aligned < 1))
            ),
        },
        plot=plot_values,
        **_SHARED,
    ),
    jd.Claim(
        id="li2.maxima_values_as_printed",
        statement=r"As printed: $E^* = M/8d$, and $M/16d$ for a pair. The factor 2 of the cross term $2uv$ is lost, and "
        r"quaternionic type is not told from real.",
        judge=judge_values,
        plot=plot_values,
        **_PRINTED,
    ),
    jd.Claim(
        id="li2.maxima_set",
        statement=r"The maxima are $\hat u_k = a r^*$, $\hat v_k = b r^*$ with $\|u\|^2 = \|v\|^2 = \frac12$, free directions a, b "
        r"and a common r (quaternionic: two equal singular values). Any other $u \in H_k$ is none: with v = u its energy is "
        r"$(2M/d) \sum_i s_i^4$, in the singular values of $\hat u_k$ (and of its conjugate).",
        judge=judge_set,
        controls={
            "random u in the irrep": with_values(measured_values=lambda ds: ds.member),
            "relu": _RELU,
        },
        plot=plot_set,
        **_SHARED,
    ),
    jd.Claim(
        id="li2.maxima_set_as_printed",
        statement=r"As printed: $[u; \pm Pu]$ is a local maximum for every $u \in H_k$, so that all of them have the energy "
        r"$E^*$. For $d \geq 2$ a random u has less, unless d = 2 and the type is quaternionic.",
        judge=judge_set,
        plot=plot_set,
        **_PRINTED,
    ),
    jd.Claim(
        id="li2.flatness",
        statement=r"The Hessian on the sphere has at a maximum as many zero eigenvalues as the set of maxima has dimensions: "
        r"$3(d-1)$ for real, $6d - 4$ for complex, $6d - 6$ for quaternionic type. A maximum in a real irrep of degree 1 "
        r"is strict.",
        judge=judge_flatness,
        controls={
            "v = u forced": with_values(predicted_zeros=lambda ds: ds.tied),
            "quaternionic type taken for complex": with_values(
                predicted_zeros=lambda ds: ds.predicted_zeros + 2 * (ds.predicted_aligned < 1)
            ),
        },
        plot=plot_zeros,
        **_SHARED,
    ),
    jd.Claim(
        id="li2.flatness_as_printed",
        statement=r"As printed: for $M > 2$ every local maximum is flat in some direction. Those in a real irrep of degree 1 (the "
        r"sign of $S_n$, $k = M/2$ for even M, all of $Z_2^m$) are not.",
        judge=judge_flatness,
        plot=plot_zeros,
        **(_PRINTED | {"source": "arXiv:2509.21519, corollary 1"}),
    ),
    jd.Claim(
        id="li2.cor2",
        statement=r"Modular addition: at a maximum u and v have one frequency, each with a phase of its own, and $E^* = M/4$; "
        r"for even M there is also $(-1)^m$, with $E^* = M/2$.",
        judge=judge_cyclic,
        controls={
            "energy of a pair for the alternating sign": with_values(
                predicted_energy=lambda ds: ds.predicted_energy * (1 + ds.frequency) / 2
            ),
            "starts instead of ends": with_values(measured_purity=lambda ds: ds.start_purity),
        },
        plot=plot_cyclic,
        **(_SHARED | {"source": "arXiv:2509.21519, corollary 2"}),
    ),
    jd.Claim(
        id="li2.cor2_as_printed",
        statement=r"As printed, the values of theorem 2 for modular addition: $M/16$ for a frequency and $M/8$ for $(-1)^m$, "
        r"a quarter of what the ascents reach.",
        judge=judge_cyclic,
        plot=plot_cyclic,
        **(_PRINTED | {"source": "arXiv:2509.21519, corollary 2"}),
    ),
)
