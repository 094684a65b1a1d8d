"""Claims on the answering layer: it learns to read the thought and the candidates in a fixed proportion, whatever the rates."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import plotting
from jaxdyn.theories.emer.trials.answer import Reply, trial

__all__ = ["CLAIMS", "judge", "judge_sgd"]


def judge(ds: xr.Dataset) -> list[jd.Check]:
    """The path, the slopes over the last decade, and both numbers at the end."""
    error = abs(ds.measured_path - ds.predicted_path) / (1 + abs(ds.predicted_path))
    return [
        jd.at_most("both numbers against the equations, at all times, over 1 + their size", error, 1e-5),
        jd.at_most("dmu_A/dmu_R over the last decade, against the root of K, relative", jd.relative_error(ds, "ratio"), 1e-5),
        jd.at_most("both numbers at t = 1e12 against their leading terms, relative", jd.relative_error(ds, "late"), 1e-5),
    ]


def judge_sgd(ds: xr.Dataset) -> list[jd.Check]:
    """Both numbers along SGD against the theory's."""
    error = (ds.measured_sgd - ds.predicted_sgd) / (1 + abs(ds.predicted_sgd))
    return [jd.mean_within("both numbers of SGD less the theory's, over 1 + their size", error, over="seed", low=-0.03, high=0.03)]


def still(ds: xr.Dataset) -> xr.Dataset:
    """A rival: both numbers stay zero, and grow, if at all, alike."""
    zero = {name: xr.zeros_like(ds[name]) for name in ("predicted_path", "predicted_late", "predicted_sgd")}
    return ds.assign(zero | {"predicted_ratio": xr.ones_like(ds.predicted_ratio)})


def by_rates(ds: xr.Dataset) -> xr.Dataset:
    """A rival: the proportion is that of the first step, which the learning rates set for good."""
    first = (
        (ds.predicted_path.sel(number="mu_A") / ds.predicted_path.sel(number="mu_R"))
        .isel(time=1, drop=True)
        .drop_vars("number", errors="ignore")
    )
    slow = ds.predicted_sgd.sel(number="mu_R", drop=True)
    sgd = xr.concat([slow * first, slow], dim="number").assign_coords(number=ds.number)
    return ds.assign(predicted_ratio=first.transpose(*ds.predicted_ratio.dims), predicted_sgd=sgd.transpose(*ds.predicted_sgd.dims))


def exchanged(ds: xr.Dataset) -> xr.Dataset:
    """A control: both matrices exchanged."""
    names = [n for n in ("measured_path", "measured_late", "measured_sgd")]
    return ds.assign({n: ds[n].roll(number=1, roll_coords=False) for n in names} | {"measured_ratio": 1 / ds.measured_ratio})


def plot(ds: xr.Dataset, fig: Figure) -> None:
    """Both numbers of every run in their plane, and the slope against the root of K."""
    left, right = fig.subplots(1, 2)
    first = ds.isel(seed=0) if "seed" in ds.dims else ds
    dims = list(first.status.dims)
    for kind, color, style, label in (
        ("measured", "measured", "-", "flow of the matrices"),
        ("predicted", "theory", "--", "equations"),
    ):
        path = first[f"{kind}_path"].stack(every=dims) if dims else first[f"{kind}_path"].expand_dims("every")
        x, y = (path.sel(number=name).transpose("time", "every").values for name in ("mu_R", "mu_A"))
        lines = left.plot(x, y, style, color=plotting.COLORS[color], linewidth=1.2, alpha=0.7)
        lines[0].set_label(label)
    left.set(xlabel=r"$\mu_R$", ylabel=r"$\mu_A$")
    plotting.scatter(right, ds.predicted_ratio, ds.measured_ratio, label="runs", color="measured", log=False)
    right.set(xlabel=r"$\sqrt{K}$", ylabel=r"$d\mu_A/d\mu_R$ at $t = 10^{12}$")


RATES = {"inside": [2.0, 5.0], "rate_a": [0.1, 1.0], "rate_r": 0.3}
STUDY = jd.Study(
    trial=trial,
    quick=jd.grid(Reply, **RATES),
    seeds=8,
    paper_seeds=32,
    evidence="flow",
    bounds="derived",  # the terms that the law leaves out, and the solver's tolerance
    source="arXiv:2509.23365, Theorem 3; the offsets of the leading terms are derived",
    plot=plot,
    caption=r"Left: $\mu_A$ over $\mu_R$ along the flow of both matrices and by the two equations, one line a setting. Right: "
    r"$d\mu_A/d\mu_R$ over the last decade of time against $\sqrt K$.",
)
UNREACHABLE = {"the unreachable candidate is the label": {"label": "unreachable"}}

CLAIMS = (
    STUDY.claim(
        id="emer.direction",
        bounds=jd.looked(at="0:8", confirmed="61000000:61000008"),
        statement=r"In the gradient flow of the answering layer's two full matrices, from zero, averaged over names of the 7 "
        r"vertices, with K = 2 or 5 of them in the thought, and learning rates of which either is up to 3.3 times the other, "
        r"$\mu_A$ and $\mu_R$ follow their two equations within $10^{-5}$, relative to 1 plus their size, and their growth "
        r"$d\mu_A/d\mu_R$ over the last decade before $t = 10^{12}$ is $\sqrt K$, whatever the rates; there, both are their "
        r"leading terms $\sqrt K \ln(k_A t/K)$ and $\ln(k_R (K-1) t)$, all to a relative $10^{-5}$.",
        judge=judge,
        controls={**UNREACHABLE, "both matrices exchanged": exchanged},
        rivals={
            "nothing moves": still,
            "the learning rates set the proportion": by_rates,
            "the proportion is that of the numbers so far": jd.swap(predicted_ratio="now"),
        },
    ),
    STUDY.claim(
        id="emer.direction_sgd",
        statement=r"SGD on the answering layer's two full matrices (7 vertices, K = 2 or 5 of them in the thought, 8 random "
        r"namings a step, learning rates of which either is up to 3.3 times the other): at t = 100 and 1000 $\mu_A$ and $\mu_R$ "
        "are those of the two equations within 3% of 1 plus their size, on average over runs.",
        evidence="network",
        bounds=jd.looked(at="0:8", confirmed="7000:7008"),
        judge=judge_sgd,
        controls={"both matrices exchanged": exchanged},
        rivals={"nothing moves": still, "the learning rates set the proportion": by_rates},
    ),
)
