r"""Emergence of superposition: phase portrait of the answering layer, and the growth of the searching layer in its four regimes.

Left: the field at equal rates in the plane of mu_R and mu_A, and paths of trained networks (SGD on both full matrices) from zero
at learning rates that differ tenfold. Middle: mu along the gradient flow of the full matrix's diagonal. Right: SGD against the
theory's equations. The table has mu_A/mu_R for K = 9 of 23 vertices next to an independent integration. Paper: arXiv 2509.23365.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import jaxdyn as jd
from jaxdyn import experiment, plotting
from jaxdyn.theories.emer import direction, search
from jaxdyn.theories.emer import dynamics as theory

SCALES = {"quick": {"vertices": 11, "inside": 4.0}, "paper": {"vertices": 23, "inside": 9.0}}
SEEDS = {"quick": 2, "paper": 8}
RATES = [0.2, 2.0]
REGIMES = {
    r"Coconut, $F(0) < d_p < d_{max}$": {"target": "middle", "density": 0.2},
    r"Coconut, $d_p = d_{max}$": {"target": "top", "density": 0.2},
    "Coconut-BFS": {"loss": "bfs", "density": 0.2},
    r"Coconut, $d_p < F(0)$": {"target": "low", "density": 0.8},
}
COLORS = ("measured", "theory", "third", "failed")


def ratios() -> list[dict]:
    """mu_A/mu_R at unit rates along time, its limit, and the same by an independent integration."""
    size = direction.RATIO_SIZE
    with jax.enable_x64(True):
        law = theory.AnswerLaw(size["vertices"], size["inside"], 1.0, 1.0, True)
        ys = np.asarray(theory.solve_answer(law, jnp.asarray([0.0, *direction.RATIOS], jnp.float64)).ys)[1:]
    return [
        {"t": t, "mu_A": float(y[0]), "mu_R": float(y[1]), "mu_A/mu_R": float(y[0] / y[1]), "independent": ratio, "limit": 3.0}
        for (t, ratio), y in zip(direction.RATIOS.items(), ys, strict=True)
    ]


def trained(ds: xr.Dataset) -> list[dict]:
    """Slopes of the networks at the end of SGD and of the flow, for every pair of learning rates."""
    lines = []
    for a in ds.rate_a.values:
        for r in ds.rate_r.values:
            part = ds.sel(rate_a=a, rate_r=r)
            last = part.measured_sgd.diff("moment").isel(moment=-1)
            slope = last.sel(number="mu_A") / last.sel(number="mu_R")
            line = {"rate of M_A": float(a), "rate of M_R": float(r), "SGD, t = 100 to 1000": float(slope.mean())}
            lines.append(
                line | {"flow, t = 1e12": float(part.measured_ratio.mean()), "root of K": float(part.predicted_ratio.mean())}
            )
    return lines


def portrait(ds: xr.Dataset, scale: str, ax: object) -> None:
    """The field, the direction of the largest margin, and the networks' paths."""
    size = SCALES[scale]
    high = 1.1 * float(ds.trained.sel(number="mu_R").max()), 1.1 * float(ds.trained.sel(number="mu_A").max())
    x, y = np.meshgrid(np.linspace(0, high[0], 25), np.linspace(0, high[1], 25))
    with jax.enable_x64(True):
        law = theory.AnswerLaw(size["vertices"], size["inside"], 1.0, 1.0, True)
        field = jax.vmap(lambda p: theory.answer_field(0.0, p, law))(jnp.stack([y.ravel(), x.ravel()], -1))
    u, v = (np.asarray(field[:, i]).reshape(x.shape) for i in (1, 0))
    ax.streamplot(x, y, u, v, color=plotting.COLORS["control"], linewidth=0.6, density=0.9, arrowsize=0.7)
    colors = iter(COLORS)
    for a in ds.rate_a.values:
        for r in ds.rate_r.values:
            path, color = ds.trained.sel(rate_a=a, rate_r=r), plotting.COLORS[next(colors)]
            for seed in range(path.sizes["seed"]):
                one = path.isel(seed=seed)
                label = f"SGD, rates {a:g} and {r:g}" if seed == 0 else None
                ax.plot(one.sel(number="mu_R"), one.sel(number="mu_A"), color=color, label=label)
    line = np.array([0, min(high[0], high[1] / size["inside"] ** 0.5)])
    ax.plot(line, size["inside"] ** 0.5 * line, ":", color="black", label=r"slope $\sqrt{K}$")
    ax.set(xlabel=r"$\mu_R$", ylabel=r"$\mu_A$", xlim=(0, high[0]), ylim=(0, high[1]), title="answering layer")


def draw(ds: xr.Dataset, flows: dict[str, xr.Dataset], sgd: dict[str, xr.Dataset], scale: str, fig: Figure) -> None:
    """The portrait, mu along the flow in each regime, and SGD next to the equations."""
    left, middle, right = fig.subplots(1, 3)
    portrait(ds, scale, left)
    for (name, part), color in zip(flows.items(), COLORS, strict=True):
        runs = part.measured_mu.isel(time=slice(1, None)).stack(every=part.status.dims).transpose("time", "every")
        lines = middle.semilogx(part.time.values[1:], runs, color=plotting.COLORS[color], linewidth=1)
        lines[0].set_label(name)
    middle.set(xlabel="t", ylabel=r"$\mu$", title="searching layer, gradient flow")
    for (name, part), color in zip(sgd.items(), (COLORS[0], COLORS[1], COLORS[3]), strict=True):
        part = part.isel({d: 0 for d in part.status.dims})
        right.plot(part.t, part.predicted_mu, color=plotting.COLORS[color], label=f"equations: {name}")
        right.plot(part.t, part.measured_mu, "o", color=plotting.COLORS[color])
    right.plot([], [], "o", color="black", label="SGD")
    right.set(xlabel="t", ylabel=r"$\mu$", title="searching layer, SGD")


def run(scale: str, out: Path) -> None:
    """Train both layers, print the ratios and slopes, draw, and save."""
    seeds = SEEDS[scale]
    ds = experiment.sweep(
        out, "answer", direction.trial, jd.grid(direction.Reply, rate_a=RATES, rate_r=RATES, **SCALES[scale]), seeds
    )
    flows = {
        name: experiment.sweep(out, f"flow{i}", search.flow_trial, jd.grid(search.SearchFlow, train="diagonal", **fields), seeds)
        for i, (name, fields) in enumerate(REGIMES.items())
    }
    sgd = {
        name: experiment.sweep(out, f"sgd{i}", search.sgd_trial, jd.grid(search.SearchSgd, records=8, span=20.0, **fields), 1)
        for i, (name, fields) in enumerate((name, fields) for name, fields in REGIMES.items() if "loss" not in fields)
    }
    experiment.table(out, "ratios", ratios(), "mu_A/mu_R at unit rates, K = 9 of 23 vertices; the limit is the root of K")
    experiment.table(out, "slopes", trained(ds), f"dmu_A/dmu_R of trained networks, {seeds} seeds")
    experiment.figure(out, "sup_phase_portrait", lambda fig: draw(ds, flows, sgd, scale, fig), (13.0, 4.0))
    experiment.save(out, "answer", ds)


if __name__ == "__main__":
    sys.exit(experiment.main(run, __doc__))
